//! The client's end of streamable HTTP: a [`Peer`] that sends its messages as POSTs. A request is
//! one exchange that ends when its caller stops waiting; the server's unsolicited messages arrive
//! over a standing stream. A server that has lost the session is initialized again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use url::Url;

use super::credentials::Credentials;
use super::failure::HttpFailure;
use super::outbound::{ContentType, EventReader, Outbound, read_body};
use super::pool::PooledResponse as HttpResponse;
use crate::delivery::Dispatch;
use crate::id::Id;
use crate::limits;
use crate::lines::batch_line;
use crate::message::{Frame, Message, Notification, Request, Response};
use crate::peer::{ConnectionClosed, MessageRoute, Outbox, Peer, RequestError, Service, WeakPeer};
use crate::sse::SkippedData;
use crate::task;
use crate::version::Version;

/// A server's URL, and the headers it requires. The values are treated as secrets.
#[derive(Clone)]
pub struct Endpoint {
    pub url: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Supplies a token for each request, in place of an `Authorization` header.
    pub credentials: Option<Arc<dyn Credentials>>,
}

/// An endpoint with its values checked.
#[derive(Clone)]
pub(super) struct ParsedEndpoint {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) credentials: Option<Arc<dyn Credentials>>,
}

impl Endpoint {
    pub fn new(url: impl Into<String>) -> Self {
        Endpoint { url: url.into(), headers: Vec::new(), credentials: None }
    }

    pub(super) fn parsed(self) -> Result<ParsedEndpoint, ConnectError> {
        let url = Url::parse(&self.url).map_err(|_| ConnectError::Url)?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(ConnectError::Url);
        }
        let mut headers = HeaderMap::new();
        for (name, mut value) in self.headers {
            value.set_sensitive(true);
            headers.append(name, value);
        }
        Ok(ParsedEndpoint { url, headers, credentials: self.credentials })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the server's address is not an http or https URL")]
    Url,
    #[error("cannot set up HTTP: {0}")]
    Client(String),
}

const INITIALIZED: &str = "notifications/initialized";

/// The changes that a server may have missed to announce while we had no session with it.
const LISTS_CHANGED: [&str; 3] = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// Creates the peer without connecting: the first message does that. Must be called within a
/// runtime.
pub fn connect(endpoint: Endpoint, service: Arc<dyn Service>) -> Result<Peer, ConnectError> {
    let wire = Arc::new(Outbound::new(endpoint.parsed()?).map_err(ConnectError::Client)?);
    let outbox = Arc::new(PostOutbox {
        wire: wire.clone(),
        peer: OnceLock::new(),
        version: Arc::default(),
        is_listening: Arc::default(),
        hello: OnceLock::new(),
        renewing: tokio::sync::Mutex::default(),
    });
    let peer = Peer::new(outbox.clone(), service);
    let _ = outbox.peer.set(peer.downgrade());
    let (closing, version) = (peer.closing(), outbox.version.clone());
    task::spawn(async move {
        closing.cancelled().await;
        wire.end_session(version.get().copied()).await;
    });
    Ok(peer)
}

struct PostOutbox {
    wire: Arc<Outbound>,
    peer: OnceLock<WeakPeer>,
    /// The agreed version, for the DELETE after the peer is gone.
    version: Arc<OnceLock<Version>>,
    is_listening: Arc<AtomicBool>,
    /// Our `initialize`, to be sent again if the server loses the session.
    hello: OnceLock<Bytes>,
    renewing: tokio::sync::Mutex<()>,
}

impl Outbox for PostOutbox {
    fn send(
        &self,
        message: Message,
        route: MessageRoute,
    ) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
        async move {
            let delivery = Arc::default();
            self.dispatch(message, route, Dispatch { delivery: &delivery, trace: None }).await
        }
        .boxed()
    }

    fn dispatch<'a>(
        &'a self,
        message: Message,
        _route: MessageRoute,
        dispatch: Dispatch<'a>,
    ) -> BoxFuture<'a, Result<(), ConnectionClosed>> {
        async move {
            let peer = self.peer()?;
            match message {
                Message::Request(request) => self.ask(&peer, request, dispatch).await,
                Message::Notification(ref notification) => {
                    let is_ready = notification.method == INITIALIZED;
                    self.tell(&peer, message.to_line(), dispatch).await?;
                    if is_ready {
                        self.listen(&peer);
                    }
                    Ok(())
                }
                Message::Response(_) => self.tell(&peer, message.to_line(), dispatch).await,
            }
        }
        .boxed()
    }

    fn send_batch(&self, responses: Vec<Response>) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
        async move {
            let delivery = Arc::default();
            let dispatch = Dispatch { delivery: &delivery, trace: None };
            self.tell(&self.peer()?, batch_line(responses), dispatch).await
        }
        .boxed()
    }
}

impl PostOutbox {
    fn peer(&self) -> Result<Peer, ConnectionClosed> {
        let peer = self.peer.get().and_then(WeakPeer::upgrade);
        peer.ok_or_else(|| ConnectionClosed("the connection is no longer in use".to_owned()))
    }

    fn version(&self, peer: &Peer) -> Option<Version> {
        let version = peer.version()?;
        Some(*self.version.get_or_init(|| version))
    }

    /// Runs the whole exchange. Its caller drops it when it stops waiting, which ends the POST.
    async fn ask(
        &self,
        peer: &Peer,
        request: Request,
        dispatch: Dispatch<'_>,
    ) -> Result<(), ConnectionClosed> {
        let id = request.id.clone();
        let opens_session = request.method == "initialize";
        let line = Bytes::from(Message::from(request).to_line());
        if opens_session {
            let _ = self.hello.set(line.clone());
        }
        let session = self.wire.session_number();
        let mut outcome = self.exchange(peer, (&id, opens_session), line.clone(), dispatch).await;
        let is_to_renew = matches!(outcome, Err(HttpFailure::SessionEnded)) && !opens_session;
        if is_to_renew && !dispatch.delivery.is_sent() {
            // The server did not accept the request, so that sending it again repeats nothing.
            outcome = match self.renew(peer, session).await {
                Ok(()) => self.exchange(peer, (&id, false), line, dispatch).await,
                Err(failure) => {
                    tracing::debug!(%failure, "cannot begin another session");
                    Err(HttpFailure::SessionEnded)
                }
            };
        }
        let Err(failure) = outcome else {
            return Ok(());
        };
        close_if_session_ended(peer, &failure);
        if let Id::Number(id) = id {
            peer.fail(id, failure.into_request_error(id, dispatch.delivery));
        }
        Ok(())
    }

    /// Begins another session with the same `initialize`, unless somebody else did so meanwhile.
    /// The server may be another one now, so that its lists are read again.
    async fn renew(&self, peer: &Peer, lost: u64) -> Result<(), HttpFailure> {
        let _one_at_a_time = self.renewing.lock().await;
        if self.wire.session_number() != lost {
            return Ok(());
        }
        let (Some(hello), Some(version)) = (self.hello.get(), self.version(peer)) else {
            return Err(HttpFailure::SessionEnded);
        };
        let response = self.wire.post_outside(hello.clone()).await?;
        let headers = response.headers().clone();
        let body = match ContentType::of(&response) {
            ContentType::Json => read_body(response, limits::WELCOME_BYTES_MAX).await?,
            ContentType::Events => first_message(response).await?,
            other @ ContentType::Other(_) => return Err(other.into_failure()),
        };
        if agreed_version(&body) != Some(version) {
            return Err(HttpFailure::BadAnswer("it agreed on another version".to_owned()));
        }
        self.wire.begin_session(&headers);
        let initialized = Notification { method: INITIALIZED.to_owned(), params: None };
        let (line, delivery) = (Message::from(initialized).to_line(), Arc::default());
        let dispatch = Dispatch { delivery: &delivery, trace: None };
        self.wire.post(line.into(), Some(version), dispatch).await?;
        self.listen(peer);
        peer.renewed();
        for changed in LISTS_CHANGED {
            peer.receive(Notification { method: changed.to_owned(), params: None }.into());
        }
        Ok(())
    }

    async fn exchange(
        &self,
        peer: &Peer,
        (id, opens_session): (&Id, bool),
        line: Bytes,
        dispatch: Dispatch<'_>,
    ) -> Result<(), HttpFailure> {
        let response = self.wire.post(line, self.version(peer), dispatch).await?;
        if opens_session {
            self.wire.begin_session(response.headers());
        }
        match ContentType::of(&response) {
            ContentType::Json => {
                take_body(peer, &read_body(response, limits::FRAME_BYTES_MAX).await?, id)
            }
            ContentType::Events => self.follow(peer, response, id).await,
            other @ ContentType::Other(_) => Err(other.into_failure()),
        }
    }

    /// Reads events until the response. A server that numbers its events may end the stream early
    /// and continue in another one.
    async fn follow(
        &self,
        peer: &Peer,
        mut response: HttpResponse,
        id: &Id,
    ) -> Result<(), HttpFailure> {
        let weak = peer.downgrade();
        let mut place = StreamPosition::default();
        let mut resumes = 0;
        loop {
            let seen = place.events;
            let mut events = EventReader::new(response);
            let ended = take_events(&weak, &mut events, Some(id), &mut place).await;
            if matches!(ended, Ok(StreamEnd::Answered)) {
                return Ok(());
            }
            resumes = if place.events > seen { 0 } else { resumes + 1 };
            if place.last_id.is_none() || resumes > limits::HTTP_RESUMES_MAX {
                return Err(ended.err().unwrap_or(HttpFailure::NoResponse));
            }
            tokio::time::sleep(place.retry).await;
            let resumed = self.wire.get(self.version(peer), place.last_id.as_deref()).await;
            // The request was accepted: whatever this fails with is no reason to send it again.
            response = resumed.map_err(|failure| HttpFailure::NotResumed(failure.to_string()))?;
        }
    }

    /// Sends a notification or response of ours: the server accepts it, or it is lost.
    async fn tell(
        &self,
        peer: &Peer,
        line: Vec<u8>,
        dispatch: Dispatch<'_>,
    ) -> Result<(), ConnectionClosed> {
        let post = self.wire.post(line.into(), self.version(peer), dispatch);
        let taken = tokio::time::timeout(limits::HTTP_POST_TIMEOUT, post).await;
        match taken.unwrap_or(Err(HttpFailure::Timeout)) {
            Ok(_) => Ok(()),
            // It concerns a session that is gone; the next request begins another.
            Err(HttpFailure::SessionEnded) => Ok(()),
            Err(failure) => Err(ConnectionClosed(failure.to_string())),
        }
    }

    /// Opens the standing stream, once in a session. It ends with the peer and does not keep it
    /// alive.
    fn listen(&self, peer: &Peer) {
        if self.is_listening.swap(true, Ordering::SeqCst) {
            return;
        }
        let (wire, weak, closing) = (self.wire.clone(), peer.downgrade(), peer.closing());
        let (version, is_listening) = (self.version(peer), self.is_listening.clone());
        task::spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                failure = listen(&wire, &weak, version) => {
                    tracing::debug!(%failure, "no standing stream");
                    let is_session_over = matches!(failure, HttpFailure::SessionEnded);
                    is_listening.store(!is_session_over, Ordering::SeqCst);
                }
            }
        });
    }
}

fn close_if_session_ended(peer: &Peer, failure: &HttpFailure) {
    if matches!(failure, HttpFailure::SessionEnded) {
        peer.close(&failure.to_string());
    }
}

/// The position up to which a stream was read.
pub(super) struct StreamPosition {
    last_id: Option<String>,
    retry: Duration,
    events: u64,
}

impl Default for StreamPosition {
    fn default() -> Self {
        StreamPosition { last_id: None, retry: limits::HTTP_LISTEN_RETRY, events: 0 }
    }
}

pub(super) enum StreamEnd {
    Answered,
    ByServer,
}

/// Reopens the stream until the server reports that it has none.
async fn listen(wire: &Outbound, peer: &WeakPeer, version: Option<Version>) -> HttpFailure {
    let mut place = StreamPosition::default();
    loop {
        match wire.get(version, place.last_id.as_deref()).await {
            Ok(response) => {
                let mut events = EventReader::new(response);
                if let Err(failure) = take_events(peer, &mut events, None, &mut place).await {
                    tracing::debug!(%failure, "the standing stream was interrupted");
                }
            }
            Err(failure) if failure.is_final() => return failure,
            Err(failure) => tracing::debug!(%failure, "cannot open the standing stream, retrying"),
        }
        tokio::time::sleep(place.retry).await;
    }
}

/// Passes events to the peer until the response to `waiting`, or the end of the stream.
pub(super) async fn take_events(
    peer: &WeakPeer,
    events: &mut EventReader,
    waiting: Option<&Id>,
    place: &mut StreamPosition,
) -> Result<StreamEnd, HttpFailure> {
    while let Some(event) = events.next().await? {
        place.events += 1;
        if event.id.is_some() {
            place.last_id = event.id;
        }
        if let Some(ms) = event.retry_ms {
            let retry = Duration::from_millis(ms);
            place.retry = retry.clamp(limits::HTTP_RETRY_MIN, limits::HTTP_RETRY_MAX);
        }
        if event.data.is_empty() && event.skipped.is_none() {
            continue;
        }
        let Some(peer) = peer.upgrade() else {
            return Ok(StreamEnd::ByServer);
        };
        if let Some(SkippedData { answered }) = event.skipped {
            tracing::debug!("an event is too long");
            if let Some(Id::Number(id)) = &answered {
                peer.fail(*id, RequestError::TooLarge);
            }
            if waiting.is_some() && answered.as_ref() == waiting {
                return Ok(StreamEnd::Answered);
            }
            continue;
        }
        peer.has_room().await;
        match Frame::parse(event.data.as_bytes()) {
            Ok(frame) => {
                if receive(&peer, frame, waiting) {
                    return Ok(StreamEnd::Answered);
                }
            }
            Err(bad) => {
                tracing::debug!(error = %bad.error, "an event is not a message");
                peer.reject(&bad);
                if waiting.is_some() && bad.answered() == waiting {
                    return Ok(StreamEnd::Answered);
                }
            }
        }
    }
    Ok(StreamEnd::ByServer)
}

/// Reads events until the first that holds a message.
async fn first_message(response: HttpResponse) -> Result<Bytes, HttpFailure> {
    let mut events = EventReader::new(response);
    while let Some(event) = events.next().await? {
        if !event.data.is_empty() {
            return Ok(event.data.into());
        }
    }
    Err(HttpFailure::NoResponse)
}

/// Returns the version that the response to `initialize` states.
fn agreed_version(body: &[u8]) -> Option<Version> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeResult {
        protocol_version: String,
    }
    let Ok(Frame::Single(Message::Response(response))) = Frame::parse(body) else {
        return None;
    };
    let result: InitializeResult = serde_json::from_str(response.outcome.ok()?.get()).ok()?;
    Version::parse(&result.protocol_version)
}

fn take_body(peer: &Peer, body: &[u8], id: &Id) -> Result<(), HttpFailure> {
    match Frame::parse(body) {
        // Some servers cannot name the request they reject.
        Ok(Frame::Single(Message::Response(Response { id: None, outcome: Err(error) }))) => {
            Err(HttpFailure::Refused(error))
        }
        Ok(frame) => {
            if receive(peer, frame, Some(id)) {
                Ok(())
            } else {
                Err(HttpFailure::NoResponse)
            }
        }
        Err(bad) => {
            let mut words = bad.error.message;
            words.truncate(words.floor_char_boundary(limits::ANSWER_FAULT_BYTES_MAX));
            Err(HttpFailure::BadAnswer(words))
        }
    }
}

/// Passes a frame to the peer and reports whether it held the awaited response.
fn receive(peer: &Peer, frame: Frame, waiting: Option<&Id>) -> bool {
    let is_answer = |message: &Message| match message {
        Message::Response(response) => response.id.is_some() && response.id.as_ref() == waiting,
        Message::Request(_) | Message::Notification(_) => false,
    };
    match frame {
        Frame::Single(message) => {
            let answered = is_answer(&message);
            peer.receive_within(message, waiting);
            answered
        }
        Frame::Batch(batch) if peer.version().is_some_and(Version::allows_batches) => {
            let answered = batch.iter().flatten().any(is_answer);
            peer.receive_batch(batch);
            answered
        }
        Frame::Batch(batch) => {
            peer.reject_batch(&batch);
            batch.iter().flatten().any(is_answer)
        }
    }
}
