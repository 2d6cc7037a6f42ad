//! One side of a connection over any transport: sends requests and waits for the responses, runs
//! the other side's requests, and keeps progress and cancellation attached to their requests in
//! both directions. Transports call [`Peer::receive`] and implement [`Outbox`].

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture, join_all};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::delivery::{Delivery, Dispatch};
use crate::error::{ErrorObject, INVALID_REQUEST, OVERLOADED};
use crate::id::Id;
use crate::limits;
use crate::message::{
    BATCH_FORBIDDEN, BadFrame, Message, Notification, Raw, Request, Response, to_raw,
};
use crate::object::ObjectMembers;
use crate::task;
use crate::trace::Trace;
use crate::version::Version;

/// Handles the other side's requests and notifications. One per connection.
pub trait Service: Send + Sync + 'static {
    fn request(
        &self,
        request: Request,
        incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>>;

    /// Cancellation and progress never arrive here: the peer has already matched them.
    fn notification(&self, notification: Notification, peer: Peer);

    /// Called when the other side lost our session and another one was begun: what had been asked of
    /// it for the length of a session must be asked again.
    fn renewed(&self, _peer: Peer) {}
}

/// Sends messages. A transport with several streams uses `route` to choose one.
pub trait Outbox: Send + Sync + 'static {
    fn send(
        &self,
        message: Message,
        route: MessageRoute,
    ) -> BoxFuture<'_, Result<(), ConnectionClosed>>;

    /// Sends the responses to a batch as one array.
    fn send_batch(&self, responses: Vec<Response>) -> BoxFuture<'_, Result<(), ConnectionClosed>>;

    /// Sends a message and notes in its delivery whether it may have left.
    fn dispatch<'a>(
        &'a self,
        message: Message,
        route: MessageRoute,
        dispatch: Dispatch<'a>,
    ) -> BoxFuture<'a, Result<(), ConnectionClosed>> {
        async move {
            dispatch.delivery.begin();
            let sent = self.send(message, route).await;
            sent.inspect_err(|_| dispatch.delivery.undo())
        }
        .boxed()
    }

    /// Called instead of a send when the response to a cancelled request is withheld.
    fn withheld(&self, _id: Id) -> BoxFuture<'_, ()> {
        future::ready(()).boxed()
    }
}

/// The request of the other side that a message belongs to, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageRoute {
    Standing,
    Within(Id),
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("connection closed: {0}")]
pub struct ConnectionClosed(pub String);

/// The context of a request of the other side.
pub struct RequestContext {
    /// Messages sent through this handle belong to the request.
    pub peer: Peer,
    pub id: Id,
    /// Cancelled when the other side no longer wants the response. The service decides when to
    /// stop: its future is never dropped before it completes.
    pub cancel: CancellationToken,
    /// The reason of the cancellation.
    pub reason: CancelReason,
    /// The trace context sent by the transport next to the request.
    pub trace: Option<Box<Trace>>,
}

/// Receives the params of each progress notification.
pub type ProgressSink = Arc<dyn Fn(Raw) + Send + Sync>;

/// Receives the notifications that the other side sends in the course of a request, where the
/// transport shows to which request they belong; returns those that it does not take.
pub type NoticeSink = Arc<dyn Fn(Notification) -> Option<Notification> + Send + Sync>;

/// A request to the other side.
pub struct Ask {
    pub method: String,
    pub params: Option<Raw>,
    pub timeout: Duration,
    pub cancel: CancellationToken,
    /// The reason of a cancellation, for the other side.
    pub reason: CancelReason,
    pub progress: Option<ProgressSink>,
    pub notices: Option<NoticeSink>,
    /// Sent next to the request, if the transport has a place for it.
    pub trace: Option<Box<Trace>>,
    /// Tells, once the request has failed, whether it may have been sent.
    pub delivery: Arc<Delivery>,
}

impl Ask {
    pub fn new(method: impl Into<String>, params: Option<Raw>, timeout: Duration) -> Self {
        Ask {
            method: method.into(),
            params,
            timeout,
            cancel: CancellationToken::new(),
            reason: CancelReason::default(),
            progress: None,
            notices: None,
            trace: None,
            delivery: Arc::default(),
        }
    }
}

/// The reason that the other side gave for cancelling a request, if it did.
#[derive(Clone, Debug, Default)]
pub struct CancelReason(Arc<OnceLock<String>>);

impl CancelReason {
    pub fn text(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    fn set(&self, reason: Option<String>) {
        if let Some(mut reason) = reason {
            reason.truncate(reason.floor_char_boundary(limits::CANCEL_REASON_BYTES_MAX));
            let _ = self.0.set(reason);
        }
    }
}

/// A request of the other side that is being answered.
#[derive(Clone, Default)]
struct Cancellable {
    cancel: CancellationToken,
    reason: CancelReason,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestError {
    #[error("{0}")]
    Refused(ErrorObject),
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    #[error("cancelled")]
    Cancelled,
    #[error("the response exceeds {} bytes", limits::FRAME_BYTES_MAX)]
    TooLarge,
    /// The other side got the request, and its answer was lost or cannot be used.
    #[error("{0}")]
    Lost(String),
    /// The server requires a token that we do not have.
    #[error("{0}")]
    Unauthorized(String),
    #[error(transparent)]
    Closed(#[from] ConnectionClosed),
}

#[derive(Clone)]
pub struct Peer {
    core: Arc<Core>,
    route: MessageRoute,
}

struct Core {
    outbox: Arc<dyn Outbox>,
    service: Arc<dyn Service>,
    next_id: AtomicI64,
    /// A small map: a tree finds entries faster than a hash.
    asked: Mutex<BTreeMap<i64, PendingRequest>>,
    running: Mutex<BTreeMap<Id, Cancellable>>,
    /// The size of the responses that wait for the outbox.
    unsent: watch::Sender<usize>,
    tasks: TaskTracker,
    closed: CancellationToken,
    closed_reason: OnceLock<String>,
    version: OnceLock<Version>,
}

struct PendingRequest {
    answer: oneshot::Sender<Result<Raw, RequestError>>,
    progress: Option<ProgressSink>,
    notices: Option<NoticeSink>,
}

impl Peer {
    pub fn new(outbox: Arc<dyn Outbox>, service: Arc<dyn Service>) -> Self {
        let core = Core {
            outbox,
            service,
            next_id: AtomicI64::new(1),
            asked: Mutex::default(),
            running: Mutex::default(),
            unsent: watch::Sender::new(0),
            tasks: TaskTracker::new(),
            closed: CancellationToken::new(),
            closed_reason: OnceLock::new(),
            version: OnceLock::new(),
        };
        Peer { core: Arc::new(core), route: MessageRoute::Standing }
    }

    /// The agreed revision, once the handshake is done.
    pub fn version(&self) -> Option<Version> {
        self.core.version.get().copied()
    }

    pub fn agree_on(&self, version: Version) {
        // A second `initialize` does not change the agreed version.
        let _ = self.core.version.set(version);
    }

    pub async fn request(&self, ask: Ask) -> Result<Raw, RequestError> {
        let id = self.core.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, mut answered) = oneshot::channel();
        let wants_progress = ask.progress.is_some();
        let pending = PendingRequest { answer, progress: ask.progress, notices: ask.notices };
        lock(&self.core.asked).insert(id, pending);
        let delivery = ask.delivery;
        let mut open = OpenRequest { peer: self, id, delivery: &delivery, told: false };
        let params = with_progress_token(ask.params, wants_progress.then_some(id));
        let request = Request { id: Id::Number(id), method: ask.method, params };
        if self.core.closed.is_cancelled() {
            return Err(self.closed_error().into());
        }
        let exchange = async {
            let dispatch = Dispatch { delivery: &delivery, trace: ask.trace.as_deref() };
            self.core.outbox.dispatch(request.into(), self.route.clone(), dispatch).await?;
            (&mut answered).await.unwrap_or_else(|_| Err(self.closed_error().into()))
        };
        let outcome = tokio::select! {
            outcome = exchange => outcome,
            () = ask.cancel.cancelled() => Err(RequestError::Cancelled),
            () = self.core.closed.cancelled() => Err(self.closed_error().into()),
            () = tokio::time::sleep(ask.timeout) => Err(RequestError::Timeout(ask.timeout)),
        };
        match &outcome {
            Err(RequestError::Cancelled) => {
                open.withdraw(ask.reason.text().unwrap_or("cancelled by the caller"));
            }
            Err(RequestError::Timeout(_)) => open.withdraw("no answer in time"),
            Ok(_)
            | Err(
                RequestError::Refused(_)
                | RequestError::TooLarge
                | RequestError::Lost(_)
                | RequestError::Unauthorized(_)
                | RequestError::Closed(_),
            ) => {
                open.told = true;
            }
        }
        outcome
    }

    pub async fn notify(&self, method: &str, params: Option<Raw>) -> Result<(), ConnectionClosed> {
        let notification = Notification { method: method.to_owned(), params };
        self.core.outbox.send(notification.into(), self.route.clone()).await
    }

    /// Sends a notification, and notes in its delivery whether it may have left.
    pub async fn notify_noting(
        &self,
        notification: Notification,
        delivery: &Arc<Delivery>,
    ) -> Result<(), ConnectionClosed> {
        let dispatch = Dispatch { delivery, trace: None };
        self.core.outbox.dispatch(notification.into(), self.route.clone(), dispatch).await
    }

    /// Closes this side: requests in flight end with `reason`, running ones are cancelled.
    pub fn close(&self, reason: &str) {
        let _ = self.core.closed_reason.set(reason.to_owned());
        self.core.closed.cancel();
        lock(&self.core.asked).clear();
        for running in lock(&self.core.running).values() {
            running.cancel.cancel();
        }
    }

    pub async fn closed(&self) -> ConnectionClosed {
        self.core.closed.cancelled().await;
        self.closed_error()
    }

    pub fn is_closed(&self) -> bool {
        self.core.closed.is_cancelled()
    }

    /// Waits until every request of the other side has been answered.
    pub async fn idle(&self) {
        self.core.tasks.close();
        self.core.tasks.wait().await;
        self.core.tasks.reopen();
    }

    /// Handles one message from the other side.
    pub fn receive(&self, message: Message) {
        self.receive_within(message, None);
    }

    /// Handles one message that the other side sent in the course of a request of ours, if the
    /// transport shows that.
    pub(crate) fn receive_within(&self, message: Message, request: Option<&Id>) {
        match message {
            Message::Request(request) => self.run(request),
            Message::Notification(notification) => self.hear(notification, request),
            Message::Response(response) => self.take_answer(response),
        }
    }

    /// Handles a batch: its requests are answered together, in one array.
    pub fn receive_batch(&self, batch: Vec<Result<Message, BadFrame>>) {
        let mut answers = Vec::new();
        for part in batch {
            match part {
                Ok(Message::Request(request)) => answers.push(self.answer(request, None).boxed()),
                Ok(other) => self.receive(other),
                Err(bad) => {
                    self.reject(&bad);
                    answers.push(future::ready(Some(bad.into_response())).boxed());
                }
            }
        }
        let core = self.core.clone();
        task::spawn_tracked(&self.core.tasks, async move {
            let responses: Vec<Response> = join_all(answers).await.into_iter().flatten().collect();
            if !responses.is_empty() {
                let _unsent = core.count_unsent(responses.iter().map(Response::size_about).sum());
                let _ = core.outbox.send_batch(responses).await;
            }
        });
    }

    /// Waits while too many responses wait to be sent, or until the peer is closed. A transport
    /// calls this before it reads on: the other side must read responses to get more of them.
    pub(crate) async fn has_room(&self) {
        if *self.core.unsent.borrow() < limits::UNSENT_BYTES_MAX {
            return;
        }
        let mut unsent = self.core.unsent.subscribe();
        tokio::select! {
            _ = unsent.wait_for(|bytes| *bytes < limits::UNSENT_BYTES_MAX) => {}
            () = self.core.closed.cancelled() => {}
        }
    }

    /// Responds to a frame that is not a message.
    pub async fn refuse(&self, bad: BadFrame) {
        let _ = self.core.outbox.send(bad.into_response().into(), MessageRoute::Standing).await;
    }

    /// Reports that another session was begun in place of the one that was lost.
    pub(crate) fn renewed(&self) {
        self.core.service.renewed(self.clone());
    }

    /// Ends a request that the transport could not deliver.
    pub(crate) fn fail(&self, id: i64, error: RequestError) {
        if let Some(asked) = lock(&self.core.asked).remove(&id) {
            let _ = asked.answer.send(Err(error));
        }
    }

    /// Ends the request that an invalid message answers: nothing else will answer it.
    pub(crate) fn reject(&self, bad: &BadFrame) {
        if let Some(Id::Number(id)) = bad.answered() {
            self.fail(*id, RequestError::Lost(bad.fault()));
        }
    }

    /// Ends the requests that a batch answers, where batches are not allowed.
    pub(crate) fn reject_batch(&self, batch: &[Result<Message, BadFrame>]) {
        for part in batch {
            match part {
                Ok(Message::Response(Response { id: Some(Id::Number(id)), .. })) => {
                    self.fail(*id, RequestError::Lost(BATCH_FORBIDDEN.to_owned()));
                }
                Ok(_) => {}
                Err(bad) => self.reject(bad),
            }
        }
    }

    /// Returns a token that is cancelled when the peer is closed, or when its last user drops it.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.core.closed.clone()
    }

    pub fn downgrade(&self) -> WeakPeer {
        WeakPeer(Arc::downgrade(&self.core))
    }

    fn run(&self, request: Request) {
        // The request continues as a task when nothing awaits it.
        drop(self.begin(request, None));
    }

    /// Begins a request of the other side, for a transport that can take the response on the spot.
    pub(crate) fn begin(&self, request: Request, trace: Option<Box<Trace>>) -> RunningRequest {
        let id = request.id.clone();
        let answer = Some(self.answer(request, trace).boxed());
        RunningRequest {
            core: self.core.clone(),
            id,
            answer,
            counted: Some(self.core.tasks.token()),
        }
    }

    /// Runs a request of the other side; a cancelled one gets no response. It is registered before
    /// the first poll, so that a cancellation right behind it finds it.
    fn answer(
        &self,
        request: Request,
        trace: Option<Box<Trace>>,
    ) -> impl Future<Output = Option<Response>> + Send + use<> {
        let id = request.id.clone();
        let admitted = self.admit(&id);
        let core = self.core.clone();
        async move {
            let Cancellable { cancel, reason } = match admitted {
                Ok(admitted) => admitted,
                Err(error) => return Some(Response { id: Some(id), outcome: Err(error) }),
            };
            let peer = Peer { core: core.clone(), route: MessageRoute::Within(id.clone()) };
            let incoming =
                RequestContext { peer, id: id.clone(), cancel: cancel.clone(), reason, trace };
            // A service that panics must not leave its caller waiting, nor its id in use.
            let outcome = AssertUnwindSafe(async { core.service.request(request, incoming).await })
                .catch_unwind()
                .await
                .unwrap_or_else(|_| {
                    Err(ErrorObject::internal("internal error while handling the request"))
                });
            lock(&core.running).remove(&id);
            (!cancel.is_cancelled()).then_some(Response { id: Some(id), outcome })
        }
    }

    fn admit(&self, id: &Id) -> Result<Cancellable, ErrorObject> {
        let mut running = lock(&self.core.running);
        if running.len() >= limits::INCOMING_REQUESTS_MAX {
            return Err(ErrorObject::new(OVERLOADED, "too many requests in flight, try again"));
        }
        match running.entry(id.clone()) {
            Entry::Occupied(_) => {
                Err(ErrorObject::new(INVALID_REQUEST, format!("id {id} is already in use")))
            }
            Entry::Vacant(free) => Ok(free.insert(Cancellable::default()).clone()),
        }
    }

    fn hear(&self, notification: Notification, within: Option<&Id>) {
        let params = notification.params.as_deref();
        match notification.method.as_str() {
            "notifications/cancelled" => {
                #[derive(Deserialize)]
                struct Cancellation {
                    #[serde(rename = "requestId")]
                    request_id: Id,
                    #[serde(default)]
                    reason: Option<String>,
                }
                if let Some(Cancellation { request_id, reason }) = read(params)
                    && let Some(running) = lock(&self.core.running).get(&request_id)
                {
                    running.reason.set(reason);
                    running.cancel.cancel();
                }
            }
            "notifications/progress" => {
                #[derive(Deserialize)]
                struct Progress {
                    #[serde(rename = "progressToken")]
                    token: Id,
                }
                if let Some(Progress { token: Id::Number(id) }) = read(params) {
                    let sink = lock(&self.core.asked).get(&id).and_then(|a| a.progress.clone());
                    if let (Some(sink), Some(params)) = (sink, notification.params) {
                        sink(params);
                    }
                }
            }
            _ => {
                if let Some(notification) = self.offer(notification, within) {
                    self.core.service.notification(notification, self.clone());
                }
            }
        }
    }

    /// Offers a notification to the request that it belongs to; returns it if that does not take it.
    fn offer(&self, notification: Notification, within: Option<&Id>) -> Option<Notification> {
        let Some(Id::Number(id)) = within else { return Some(notification) };
        let notices = lock(&self.core.asked).get(id).and_then(|asked| asked.notices.clone());
        match notices {
            Some(notices) => notices(notification),
            None => Some(notification),
        }
    }

    fn take_answer(&self, response: Response) {
        let asked = match response.id {
            Some(Id::Number(id)) => lock(&self.core.asked).remove(&id),
            // We never send a string id, so this matches no request of ours.
            Some(Id::Text(_)) | None => None,
        };
        match asked {
            Some(asked) => {
                let _ = asked.answer.send(response.outcome.map_err(RequestError::Refused));
            }
            None => tracing::debug!("ignored a response to an unknown or ended request"),
        }
    }

    fn closed_error(&self) -> ConnectionClosed {
        ConnectionClosed(
            self.core.closed_reason.get().cloned().unwrap_or_else(|| "closed".to_owned()),
        )
    }
}

impl Core {
    /// Counts a response as unsent until the guard is dropped.
    fn count_unsent(&self, response_bytes: usize) -> UnsentResponse<'_> {
        let bytes = response_bytes + limits::UNSENT_RESPONSE_BYTES;
        self.unsent.send_modify(|unsent| *unsent += bytes);
        UnsentResponse { core: self, bytes }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

/// A response that waits for the outbox.
struct UnsentResponse<'a> {
    core: &'a Core,
    bytes: usize,
}

impl Drop for UnsentResponse<'_> {
    fn drop(&mut self) {
        self.core.unsent.send_modify(|unsent| *unsent -= self.bytes);
    }
}

/// A request of the other side that runs while it is awaited. If dropped early, it continues as a
/// task and responds through the outbox: only a cancellation stops it.
pub(crate) struct RunningRequest {
    core: Arc<Core>,
    id: Id,
    answer: Option<BoxFuture<'static, Option<Response>>>,
    counted: Option<TaskTrackerToken>,
}

impl Future for RunningRequest {
    /// `None` if the response to a cancelled request is withheld.
    type Output = Option<Response>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.answer.as_mut().expect("not awaited again after its end");
        let response = ready!(answer.poll_unpin(cx));
        self.answer = None;
        Poll::Ready(response)
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let (Some(answer), Ok(runtime)) = (self.answer.take(), Handle::try_current()) else {
            return;
        };
        let (core, id, counted) = (self.core.clone(), self.id.clone(), self.counted.take());
        runtime.spawn(async move {
            match answer.await {
                Some(response) => {
                    let _unsent = core.count_unsent(response.size_about());
                    let _ = core.outbox.send(response.into(), MessageRoute::Within(id)).await;
                }
                None => core.outbox.withheld(id).await,
            }
            drop(counted);
        });
    }
}

/// A reference that does not keep the peer alive.
#[derive(Clone)]
pub struct WeakPeer(Weak<Core>);

impl WeakPeer {
    /// Returns the peer; messages sent through it belong to no request of the other side.
    pub fn upgrade(&self) -> Option<Peer> {
        Some(Peer { core: self.0.upgrade()?, route: MessageRoute::Standing })
    }
}

/// Removes the request when its caller stops waiting, and cancels it on the other side.
struct OpenRequest<'a> {
    peer: &'a Peer,
    id: i64,
    delivery: &'a Delivery,
    told: bool,
}

impl OpenRequest<'_> {
    fn withdraw(&mut self, reason: &str) {
        self.told = true;
        self.delivery.settle();
        if !self.delivery.is_sent() {
            return;
        }
        let params = to_raw(&json!({"requestId": self.id, "reason": reason}));
        let peer = self.peer.clone();
        task::spawn_tracked(&self.peer.core.tasks, async move {
            let _ = peer.notify("notifications/cancelled", Some(params)).await;
        });
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        lock(&self.peer.core.asked).remove(&self.id);
        if !self.told && !self.peer.is_closed() {
            self.withdraw("the caller no longer waits");
        }
        self.delivery.settle();
    }
}

/// Replaces the other side's progress token, which would mean nothing to the third party we ask,
/// with ours, or removes it.
fn with_progress_token(params: Option<Raw>, token: Option<i64>) -> Option<Raw> {
    let given = params.as_deref().map_or("{}", RawValue::get);
    if token.is_none() && !given.contains("progressToken") {
        return params;
    }
    let rewritten = (|| {
        let mut members: ObjectMembers<'_> = serde_json::from_str(given).ok()?;
        let meta_text = members.get("_meta").unwrap_or("{}").to_owned();
        let mut meta: ObjectMembers<'_> = serde_json::from_str(&meta_text).ok()?;
        match token {
            Some(token) => meta.set("progressToken", token.to_string()),
            None => meta.remove("progressToken"),
        }
        if meta.is_empty() && members.get("_meta").is_none() {
            return None;
        }
        members.set("_meta", meta.write().get().to_owned());
        Some(members.write())
    })();
    rewritten.or(params)
}

fn read<'a, T: Deserialize<'a>>(params: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(params?.get()).ok()
}

/// No code panics while it holds one of these locks; even if it did, the maps would be sound.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each request with whether it was already cancelled when it began.
    struct Watcher;

    impl Service for Watcher {
        fn request(
            &self,
            request: Request,
            incoming: RequestContext,
        ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
            assert_ne!(request.method, "panic");
            future::ready(Ok(to_raw(&incoming.cancel.is_cancelled()))).boxed()
        }

        fn notification(&self, _notification: Notification, _peer: Peer) {}
    }

    /// Keeps the sent lines; a withheld response as the empty line.
    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Outbox for Lines {
        fn send(
            &self,
            message: Message,
            _route: MessageRoute,
        ) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
            lock(&self.0).push(String::from_utf8(message.to_line()).unwrap());
            future::ready(Ok(())).boxed()
        }

        fn send_batch(
            &self,
            _responses: Vec<Response>,
        ) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
            future::ready(Ok(())).boxed()
        }

        fn withheld(&self, _id: Id) -> BoxFuture<'_, ()> {
            lock(&self.0).push(String::new());
            future::ready(()).boxed()
        }
    }

    async fn answers(messages: &[&str]) -> Vec<String> {
        let lines = Arc::new(Lines::default());
        let peer = Peer::new(lines.clone(), Arc::new(Watcher));
        for message in messages {
            peer.receive(Message::parse(message).unwrap());
        }
        peer.idle().await;
        lock(&lines.0).clone()
    }

    #[tokio::test]
    async fn a_cancellation_right_behind_its_request_finds_it() {
        let ask = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
        let cancel =
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert_eq!(answers(&[ask, cancel]).await, [""]);
        assert_eq!(answers(&[cancel, ask]).await, [r#"{"jsonrpc":"2.0","id":1,"result":false}"#]);
    }

    #[tokio::test]
    async fn a_service_that_panics_still_answers() {
        let answers = answers(&[r#"{"jsonrpc":"2.0","id":1,"method":"panic"}"#]).await;
        assert!(answers[0].contains("-32603"), "{answers:?}");
    }

    fn rewritten(params: &str, token: Option<i64>) -> String {
        let params = Some(RawValue::from_string(params.to_owned()).unwrap());
        with_progress_token(params, token).unwrap().get().to_owned()
    }

    #[test]
    fn progress_tokens_are_ours_and_the_rest_of_meta_stays() {
        let params = r#"{"name":"t","_meta":{"progressToken":"abc","x":1.0}}"#;
        assert_eq!(rewritten(params, None), r#"{"name":"t","_meta":{"x":1.0}}"#);
        assert_eq!(
            rewritten(params, Some(7)),
            r#"{"name":"t","_meta":{"progressToken":7,"x":1.0}}"#
        );
        assert_eq!(rewritten(r#"{"a":1}"#, Some(7)), r#"{"a":1,"_meta":{"progressToken":7}}"#);
        assert_eq!(rewritten(r#"{"a":"progressToken"}"#, None), r#"{"a":"progressToken"}"#);
    }
}
