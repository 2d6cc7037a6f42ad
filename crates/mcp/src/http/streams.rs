//! Routes the outgoing messages of one session: each open POST takes the messages of its request,
//! the standing stream takes the rest. Knows ids and routes, nothing of HTTP.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::event_log::{EventId, EventLog, LogReader, ReplayRoom, STANDING};
use crate::error::{ErrorObject, OVERLOADED};
use crate::id::Id;
use crate::limits;
use crate::message::{Message, Response};
use crate::peer::{ConnectionClosed, MessageRoute, Outbox, lock};
use crate::task;

/// An HTTP client waits for a response even to a cancelled request; the code is that of LSP.
const REQUEST_CANCELLED: i64 = -32800;

pub(super) struct Streams {
    /// The session's part of its event ids, unlike that of any other session of this process.
    number: u64,
    posts: Mutex<Posts>,
    pub(super) standing: Arc<EventLog>,
    room: Arc<ReplayRoom>,
    this: Weak<Streams>,
}

struct Posts {
    /// Entries last from the POST until the response, even when the client has gone: the id is in
    /// use that long.
    open: BTreeMap<Id, Post>,
    /// The event streams of POSTs by their numbers, for clients whose connection broke: those that
    /// run, and the latest of those that have ended.
    kept: BTreeMap<u64, Arc<EventLog>>,
    streams: u64,
    /// True while a task waits for the end of what is kept.
    is_expiring: bool,
    used: Instant,
    ended: bool,
}

struct Post {
    way: AnswerQueue,
    takes: AnswerForm,
}

/// The queue to a POST. Most requests get their response on the spot, with nothing before it, so
/// the queue is created for the first message that needs one.
enum AnswerQueue {
    Unused(oneshot::Sender<LogReader>),
    Open(Arc<EventLog>),
}

impl AnswerQueue {
    fn open(self, room: &Arc<ReplayRoom>) -> Arc<EventLog> {
        match self {
            AnswerQueue::Unused(waiting) => {
                let (log, reader) = EventLog::opened(room);
                // If no task waits for the reader, it is dropped, and the log is closed.
                let _ = waiting.send(reader);
                log
            }
            AnswerQueue::Open(log) => log,
        }
    }
}

/// The messages that a POST's response may carry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerForm {
    Everything,
    AnswerOnly,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PostRejection {
    IdInUse,
    Ended,
}

/// The reason that a stream cannot be resumed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ResumeRejection {
    /// The id is not one of this session's events.
    Foreign,
    /// The events are no longer kept.
    Expired,
}

impl Streams {
    pub(super) fn new(room: &Arc<ReplayRoom>) -> Arc<Self> {
        static SESSIONS: AtomicU64 = AtomicU64::new(1);
        let posts = Posts {
            open: BTreeMap::new(),
            kept: BTreeMap::new(),
            streams: STANDING,
            is_expiring: false,
            used: Instant::now(),
            ended: false,
        };
        Arc::new_cyclic(|this| Streams {
            number: SESSIONS.fetch_add(1, Ordering::Relaxed),
            posts: Mutex::new(posts),
            standing: EventLog::kept(room),
            room: room.clone(),
            this: this.clone(),
        })
    }

    /// Registers a request. Its messages arrive through the returned answers.
    pub(super) fn register(&self, id: &Id, takes: AnswerForm) -> Result<Answers, PostRejection> {
        let mut posts = lock(&self.posts);
        posts.used = Instant::now();
        if posts.ended {
            return Err(PostRejection::Ended);
        }
        if posts.open.contains_key(id) {
            return Err(PostRejection::IdInUse);
        }
        let (sender, waiting) = oneshot::channel();
        posts.open.insert(id.clone(), Post { way: AnswerQueue::Unused(sender), takes });
        Ok(Answers { id: id.clone(), waiting: Some(waiting), reader: None })
    }

    /// Frees the id of a request that was answered on the spot.
    pub(super) fn answered(&self, id: &Id) {
        let mut posts = lock(&self.posts);
        posts.used = Instant::now();
        posts.open.remove(id);
    }

    pub(super) fn touch(&self) {
        lock(&self.posts).used = Instant::now();
    }

    /// Returns the time since which nothing has been active; `None` while something is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let posts = lock(&self.posts);
        let is_read = posts.kept.values().any(|log| log.is_open());
        let busy = !posts.open.is_empty() || is_read || self.standing.is_open();
        (!busy).then(|| self.standing.left().map_or(posts.used, |left| left.max(posts.used)))
    }

    /// Ends every stream; requests still running get an error response.
    pub(super) fn end(&self, reason: &str) {
        let mut posts = lock(&self.posts);
        posts.ended = true;
        for (id, post) in std::mem::take(&mut posts.open) {
            // Without a queue, the POST itself notices that nothing will come.
            if let AnswerQueue::Open(log) = post.way {
                let _ = log.push(session_ended(&id).into());
                log.end(reason);
            }
        }
        posts.kept.clear();
        self.standing.end(reason);
    }

    /// Turns the response to a request into an event stream, which can be resumed from now on.
    pub(super) fn stream(&self, mut answers: Answers) -> NumberedReader {
        let mut posts = lock(&self.posts);
        if let Some(post) = posts.open.remove(&answers.id) {
            let log = post.way.open(&self.room);
            posts.open.insert(answers.id.clone(), Post { way: AnswerQueue::Open(log), ..post });
        }
        let reader = answers.take_reader().unwrap_or_else(|| {
            // The session has ended, and the request with it.
            let (log, reader) = EventLog::opened(&self.room);
            let _ = log.push(session_ended(&answers.id).into());
            log.end("the session has ended");
            reader
        });
        reader.log().keep();
        posts.streams += 1;
        let stream = posts.streams;
        if !posts.ended {
            posts.kept.insert(stream, reader.log().clone());
        }
        self.bound(&mut posts);
        NumberedReader { reader, session: self.number, stream }
    }

    /// Opens the standing stream.
    pub(super) fn listen(&self) -> NumberedReader {
        NumberedReader { reader: self.standing.read(), session: self.number, stream: STANDING }
    }

    /// Opens the stream of an event again, behind that event.
    pub(super) fn resume(&self, event: &str) -> Result<NumberedReader, ResumeRejection> {
        let id = EventId::parse(event).filter(|id| id.session == self.number);
        let EventId { session, stream, event } = id.ok_or(ResumeRejection::Foreign)?;
        let log = {
            let mut posts = lock(&self.posts);
            self.bound(&mut posts);
            match stream {
                STANDING => self.standing.clone(),
                stream if stream > posts.streams => return Err(ResumeRejection::Foreign),
                stream => posts.kept.get(&stream).cloned().ok_or(ResumeRejection::Expired)?,
            }
        };
        let reader = log.read_after(event).ok_or(ResumeRejection::Foreign)?;
        Ok(NumberedReader { reader, session, stream })
    }

    async fn send_within(&self, id: &Id, message: Message) -> Result<(), ConnectionClosed> {
        let Some(log) = self.log_for(id, &message) else {
            return undeliverable(&message);
        };
        match &message {
            Message::Response(_) => {
                self.finish(&log, message);
                return Ok(());
            }
            Message::Request(_) if !log.is_open() => return undeliverable(&message),
            Message::Request(_) | Message::Notification(_) => {}
        }
        if !log.has_room().await {
            if let Some(post) = lock(&self.posts).open.get_mut(id) {
                post.takes = AnswerForm::AnswerOnly;
            }
            return undeliverable(&message);
        }
        log.push(message)
    }

    /// Adds the response to the messages of a request, after which nothing follows.
    fn finish(&self, log: &EventLog, response: Message) {
        let _ = log.push(response);
        log.end("the request has been answered");
        self.bound(&mut lock(&self.posts));
    }

    /// Adds the response of a request that was answered on the spot, but not before other messages.
    pub(super) fn answer_last(&self, response: Response) {
        let response = Message::from(response);
        let Message::Response(Response { id: Some(id), .. }) = &response else { return };
        if let Some(log) = self.log_for(&id.clone(), &response) {
            self.finish(&log, response);
        }
    }

    /// The response is the last message of its request: it frees the id.
    fn log_for(&self, id: &Id, message: &Message) -> Option<Arc<EventLog>> {
        let mut posts = lock(&self.posts);
        match message {
            Message::Response(_) => {
                posts.used = Instant::now();
                Some(posts.open.remove(id)?.way.open(&self.room))
            }
            Message::Request(_) | Message::Notification(_) => {
                let post = posts.open.remove(id)?;
                let takes = post.takes;
                let (way, log) = match takes {
                    AnswerForm::Everything => {
                        let log = post.way.open(&self.room);
                        (AnswerQueue::Open(log.clone()), Some(log))
                    }
                    AnswerForm::AnswerOnly => (post.way, None),
                };
                posts.open.insert(id.clone(), Post { way, takes });
                log
            }
        }
    }

    /// Forgets the streams that have ended and are too old, too many or too large, the oldest first.
    fn bound(&self, posts: &mut Posts) {
        let now = Instant::now();
        let mut ended: Vec<(u64, Instant, usize)> = posts
            .kept
            .iter()
            .filter_map(|(number, log)| Some((*number, log.ended()?, log.bytes())))
            .collect();
        ended.sort_by_key(|(_, at, _)| *at);
        let mut bytes: usize = ended.iter().map(|(_, _, bytes)| bytes).sum();
        let mut count = ended.len();
        let mut first = None;
        for (number, at, size) in ended {
            let has_excess = count > limits::REPLAY_ANSWERS_MAX
                || bytes > limits::REPLAY_BYTES_MAX && count > 1
                || self.room.is_full();
            if has_excess || now.duration_since(at) >= limits::REPLAY_TIME {
                posts.kept.remove(&number);
                bytes -= size;
                count -= 1;
            } else {
                first = first.or(Some(at));
            }
        }
        if let Some(first) = first.filter(|_| !posts.is_expiring) {
            posts.is_expiring = true;
            self.expire(first + limits::REPLAY_TIME);
        }
    }

    /// Forgets what is kept when its time is over, so that a session without requests frees it too.
    fn expire(&self, mut at: Instant) {
        let this = self.this.clone();
        task::spawn(async move {
            loop {
                tokio::time::sleep_until(at).await;
                let Some(streams) = this.upgrade() else { return };
                let mut posts = lock(&streams.posts);
                streams.bound(&mut posts);
                match posts.kept.values().filter_map(|log| log.ended()).min() {
                    Some(first) => at = first + limits::REPLAY_TIME,
                    None => {
                        posts.is_expiring = false;
                        return;
                    }
                }
            }
        });
    }
}

/// A reader that knows the ids of its events.
pub(super) struct NumberedReader {
    reader: LogReader,
    session: u64,
    stream: u64,
}

impl NumberedReader {
    /// Returns the id of the event before the next one.
    pub(super) fn position(&self) -> String {
        self.id(self.reader.position())
    }

    /// Returns the next event with its id.
    pub(super) async fn next(&self) -> Option<(String, Arc<Message>)> {
        let event = self.reader.next().await?;
        Some((self.id(event.number), event.message))
    }

    fn id(&self, event: u64) -> String {
        EventId { session: self.session, stream: self.stream, event }.to_string()
    }
}

/// Fails a request at once if it cannot reach the client; drops any other message.
fn undeliverable(message: &Message) -> Result<(), ConnectionClosed> {
    match message {
        Message::Request(_) => {
            Err(ConnectionClosed("the client accepts no messages within this request".to_owned()))
        }
        Message::Notification(_) | Message::Response(_) => Ok(()),
    }
}

impl Outbox for Streams {
    fn send(
        &self,
        message: Message,
        route: MessageRoute,
    ) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
        async move {
            match route {
                MessageRoute::Standing => self.standing.push(message),
                MessageRoute::Within(id) => self.send_within(&id, message).await,
            }
        }
        .boxed()
    }

    /// Batches arrive here as single requests, and their POST assembles the responses.
    fn send_batch(&self, responses: Vec<Response>) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
        async move {
            for response in responses {
                if let Some(id) = response.id.clone() {
                    self.send_within(&id, response.into()).await?;
                }
            }
            Ok(())
        }
        .boxed()
    }

    fn withheld(&self, id: Id) -> BoxFuture<'_, ()> {
        async move {
            let _ = self.send_within(&id, cancelled(id.clone()).into()).await;
        }
        .boxed()
    }
}

/// The response to a cancelled request.
pub(super) fn cancelled(id: Id) -> Response {
    let error = ErrorObject::new(REQUEST_CANCELLED, "request cancelled");
    Response { id: Some(id), outcome: Err(error) }
}

fn session_ended(id: &Id) -> Response {
    let error = ErrorObject::new(OVERLOADED, "the session ended before the answer");
    Response { id: Some(id.clone()), outcome: Err(error) }
}

/// The messages of one request, the response last.
pub(super) struct Answers {
    id: Id,
    /// `Some` until the queue exists.
    waiting: Option<oneshot::Receiver<LogReader>>,
    reader: Option<LogReader>,
}

impl Answers {
    /// Returns the response if it is the first message; `None` once there is another. May be dropped
    /// before completion without losing a message.
    pub(super) async fn first(&mut self) -> Option<Response> {
        if let Some(waiting) = &mut self.waiting {
            self.reader = waiting.await.ok();
            self.waiting = None;
        }
        let Some(reader) = &self.reader else { return Some(session_ended(&self.id)) };
        match reader.peek().await.as_deref() {
            Some(Message::Response(response)) => Some(response.clone()),
            Some(Message::Request(_) | Message::Notification(_)) => None,
            None => Some(session_ended(&self.id)),
        }
    }

    /// Reports whether messages have arrived.
    pub(super) fn has_messages(&mut self) -> bool {
        self.reader = self.take_reader();
        self.reader.is_some()
    }

    fn take_reader(&mut self) -> Option<LogReader> {
        if let Some(Ok(reader)) = self.waiting.as_mut().map(|waiting| waiting.try_recv()) {
            self.reader = Some(reader);
            self.waiting = None;
        }
        self.reader.take()
    }

    pub(super) async fn last(mut self) -> Response {
        if let Some(waiting) = self.waiting.take() {
            self.reader = waiting.await.ok();
        }
        while let Some(reader) = &self.reader
            && let Some(event) = reader.next().await
        {
            if let Message::Response(response) = &*event.message {
                return response.clone();
            }
        }
        session_ended(&self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Notification, Request, raw};

    fn answer(id: i64) -> Message {
        Response { id: Some(id.into()), outcome: Ok(raw("1".to_owned())) }.into()
    }

    fn note() -> Message {
        Notification { method: "n".to_owned(), params: None }.into()
    }

    fn ask() -> Message {
        Request { id: 9.into(), method: "m".to_owned(), params: None }.into()
    }

    fn within(id: i64) -> MessageRoute {
        MessageRoute::Within(id.into())
    }

    #[tokio::test]
    async fn an_id_is_in_use_until_its_answer_even_without_a_client() {
        let streams = Streams::new(&Arc::default());
        drop(streams.register(&1.into(), AnswerForm::Everything).ok());
        assert_eq!(
            streams.register(&1.into(), AnswerForm::Everything).err(),
            Some(PostRejection::IdInUse)
        );
        assert!(streams.register(&"1".into(), AnswerForm::Everything).is_ok(), "another id");
        assert!(streams.send(note(), within(1)).await.is_ok());
        assert!(streams.send(ask(), within(1)).await.is_err());
        assert!(streams.send(answer(1), within(1)).await.is_ok());
        assert!(streams.register(&1.into(), AnswerForm::Everything).is_ok());
    }

    #[tokio::test]
    async fn a_post_that_takes_no_events_gets_its_answer_alone() {
        let streams = Streams::new(&Arc::default());
        let mut answers = streams.register(&1.into(), AnswerForm::AnswerOnly).unwrap();
        assert!(streams.send(note(), within(1)).await.is_ok());
        assert!(streams.send(ask(), within(1)).await.is_err());
        assert!(streams.send(answer(1), within(1)).await.is_ok());
        assert!(answers.first().await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_reading_holds_nobody_up_for_ever() {
        let streams = Streams::new(&Arc::default());
        let _unread = streams.register(&1.into(), AnswerForm::Everything).unwrap();
        for _ in 0..limits::OUTBOX_MESSAGES_MAX {
            streams.send(note(), within(1)).await.unwrap();
        }
        let start = Instant::now();
        streams.send(note(), within(1)).await.unwrap();
        assert_eq!(start.elapsed(), limits::HTTP_SEND_TIMEOUT);
        streams.send(note(), within(1)).await.unwrap();
        assert_eq!(start.elapsed(), limits::HTTP_SEND_TIMEOUT);
    }

    #[tokio::test]
    async fn ending_the_streams_answers_running_requests_and_rejects_new() {
        let streams = Streams::new(&Arc::default());
        let answers = streams.register(&1.into(), AnswerForm::Everything).unwrap();
        assert_eq!(streams.idle_since(), None);
        streams.end("over");
        assert!(answers.last().await.outcome.is_err());
        assert_eq!(
            streams.register(&2.into(), AnswerForm::Everything).err(),
            Some(PostRejection::Ended)
        );
        assert!(streams.send(note(), MessageRoute::Standing).await.is_err());
    }
}
