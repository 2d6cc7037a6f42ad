//! Routes the outgoing messages of one session: each open POST takes the messages of its request,
//! the standing stream takes the rest. Knows ids and routes, nothing of HTTP.

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream};
use tokio::sync::mpsc::error::SendTimeoutError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::standing::StandingStream;
use crate::error::{ErrorObject, OVERLOADED};
use crate::id::Id;
use crate::limits;
use crate::message::{Message, Response};
use crate::peer::{ConnectionClosed, MessageRoute, Outbox, lock};

/// An HTTP client waits for a response even to a cancelled request; the code is that of LSP.
const REQUEST_CANCELLED: i64 = -32800;

pub(super) struct Streams {
    posts: Mutex<Posts>,
    pub(super) standing: Arc<StandingStream>,
}

struct Posts {
    /// Entries last from the POST until the response, even when the client has gone: the id is in
    /// use that long.
    open: BTreeMap<Id, Post>,
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
    Unused(oneshot::Sender<mpsc::Receiver<Message>>),
    Open(mpsc::Sender<Message>),
}

impl AnswerQueue {
    fn open(self) -> mpsc::Sender<Message> {
        match self {
            AnswerQueue::Unused(reader) => {
                let (sender, receiver) = mpsc::channel(limits::OUTBOX_MESSAGES_MAX);
                // Without a reader the queue is closed, which its sender notices.
                let _ = reader.send(receiver);
                sender
            }
            AnswerQueue::Open(sender) => sender,
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

impl Streams {
    pub(super) fn new() -> Self {
        let posts = Posts { open: BTreeMap::new(), used: Instant::now(), ended: false };
        Streams { posts: Mutex::new(posts), standing: Arc::default() }
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
        let (sender, reader) = oneshot::channel();
        posts.open.insert(id.clone(), Post { way: AnswerQueue::Unused(sender), takes });
        Ok(Answers { id: id.clone(), reader: Some(reader), queue: None })
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
        let busy = !posts.open.is_empty() || self.standing.is_open();
        (!busy).then(|| self.standing.left().map_or(posts.used, |left| left.max(posts.used)))
    }

    /// Ends every stream; requests still running get an error response.
    pub(super) fn end(&self, reason: &str) {
        let mut posts = lock(&self.posts);
        posts.ended = true;
        posts.open.clear();
        self.standing.end(reason);
    }

    async fn send_within(&self, id: &Id, message: Message) -> Result<(), ConnectionClosed> {
        let Some(sender) = self.sender_for(id, &message) else {
            return undeliverable(&message);
        };
        match sender.send_timeout(message, limits::HTTP_SEND_TIMEOUT).await {
            Ok(()) => Ok(()),
            Err(SendTimeoutError::Closed(message)) => undeliverable(&message),
            Err(SendTimeoutError::Timeout(message)) => {
                if let Some(post) = lock(&self.posts).open.get_mut(id) {
                    post.takes = AnswerForm::AnswerOnly;
                }
                undeliverable(&message)
            }
        }
    }

    /// The response is the last message of its request: it frees the id.
    fn sender_for(&self, id: &Id, message: &Message) -> Option<mpsc::Sender<Message>> {
        let mut posts = lock(&self.posts);
        match message {
            Message::Response(_) => {
                posts.used = Instant::now();
                Some(posts.open.remove(id)?.way.open())
            }
            Message::Request(_) | Message::Notification(_) => {
                let post = posts.open.remove(id)?;
                let takes = post.takes;
                let (way, sender) = match takes {
                    AnswerForm::Everything => {
                        let sender = post.way.open();
                        (AnswerQueue::Open(sender.clone()), Some(sender))
                    }
                    AnswerForm::AnswerOnly => (post.way, None),
                };
                posts.open.insert(id.clone(), Post { way, takes });
                sender
            }
        }
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

/// The messages of one request, the response last.
pub(super) struct Answers {
    id: Id,
    /// `Some` until the queue exists.
    reader: Option<oneshot::Receiver<mpsc::Receiver<Message>>>,
    queue: Option<mpsc::Receiver<Message>>,
}

impl Answers {
    /// Returns the next message. May be dropped before completion without losing a message.
    pub(super) async fn next(&mut self) -> Message {
        if let Some(reader) = &mut self.reader {
            self.queue = reader.await.ok();
            self.reader = None;
        }
        let message = match &mut self.queue {
            Some(queue) => queue.recv().await,
            None => None,
        };
        message.unwrap_or_else(|| self.session_ended().into())
    }

    /// Returns the messages that have arrived and were not taken yet.
    pub(super) fn waiting(&mut self) -> Vec<Message> {
        if let Some(Ok(queue)) = self.reader.as_mut().map(|reader| reader.try_recv()) {
            self.queue = Some(queue);
        }
        let queue = self.queue.as_mut();
        queue.map(|queue| iter::from_fn(|| queue.try_recv().ok()).collect()).unwrap_or_default()
    }

    pub(super) async fn last(mut self) -> Response {
        loop {
            if let Message::Response(response) = self.next().await {
                return response;
            }
        }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = Message> + Send + 'static {
        stream::unfold(Some(self), |answers| async move {
            let mut answers = answers?;
            let message = answers.next().await;
            let more = !matches!(message, Message::Response(_));
            Some((message, more.then_some(answers)))
        })
    }

    fn session_ended(&self) -> Response {
        let error = ErrorObject::new(OVERLOADED, "the session ended before the answer");
        Response { id: Some(self.id.clone()), outcome: Err(error) }
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
        let streams = Streams::new();
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
        let streams = Streams::new();
        let mut answers = streams.register(&1.into(), AnswerForm::AnswerOnly).unwrap();
        assert!(streams.send(note(), within(1)).await.is_ok());
        assert!(streams.send(ask(), within(1)).await.is_err());
        assert!(streams.send(answer(1), within(1)).await.is_ok());
        assert!(matches!(answers.next().await, Message::Response(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_reading_holds_nobody_up_for_ever() {
        let streams = Streams::new();
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
        let streams = Streams::new();
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
