//! The HTTP of the client's end: carries bytes to one endpoint and back, with the headers the
//! session needs and a limit on everything. Knows nothing of peers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::challenge::Challenge;
use super::client::ParsedEndpoint;
use super::credentials::{Credentials, TokenRefusal};
use super::failure::{HttpFailure, ToldError};
use super::pool::PooledResponse;
use super::target::HttpTarget;
use super::{
    EVENT_STREAM, JSON, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID, TRACEPARENT, TRACESTATE,
    media_type,
};
use crate::delivery::{Delivery, Dispatch};
use crate::id::Id;
use crate::limits;
use crate::message::{Message, Response};
use crate::sse::{self, SseEvent};
use crate::trace::Trace;
use crate::version::Version;

pub(super) struct Outbound {
    target: HttpTarget,
    credentials: Option<Arc<dyn Credentials>>,
    session: Mutex<HttpSession>,
}

/// The session that the server assigned last.
#[derive(Default)]
struct HttpSession {
    id: Option<HeaderValue>,
    /// The headers of a POST once the session is established, as it is for most messages.
    settled: Option<HeaderMap>,
    /// The number of sessions so far.
    number: u64,
}

impl Outbound {
    pub(super) fn new(endpoint: ParsedEndpoint) -> Result<Self, String> {
        let ParsedEndpoint { url, headers, credentials } = endpoint;
        let target = HttpTarget::new(url, headers)?;
        Ok(Outbound { target, credentials, session: Mutex::default() })
    }

    /// Sends a message; returns the response once its status shows that the message was accepted.
    pub(super) async fn post(
        &self,
        body: Bytes,
        version: Option<Version>,
        dispatch: Dispatch<'_>,
    ) -> Result<PooledResponse, HttpFailure> {
        let mut headers = {
            let mut session = self.session();
            let HttpSession { id, settled, .. } = &mut *session;
            match version {
                Some(_) => {
                    settled.get_or_insert_with(|| self.post_headers(id.as_ref(), version)).clone()
                }
                None => self.post_headers(id.as_ref(), None),
            }
        };
        if let Some(trace) = dispatch.trace {
            insert_trace(&mut headers, trace);
        }
        self.send(Method::POST, (headers, body), dispatch.delivery).await
    }

    /// Sends a message that belongs to no session, as `initialize` does.
    pub(super) async fn post_outside(&self, body: Bytes) -> Result<PooledResponse, HttpFailure> {
        let headers = self.post_headers(None, None);
        self.send(Method::POST, (headers, body), &Delivery::default()).await
    }

    fn post_headers(&self, session: Option<&HeaderValue>, version: Option<Version>) -> HeaderMap {
        let mut headers = self.headers(session, version);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers
    }

    /// Opens an event stream, from the start or after the last event seen.
    pub(super) async fn get(
        &self,
        version: Option<Version>,
        last_event_id: Option<&str>,
    ) -> Result<PooledResponse, HttpFailure> {
        let mut headers = self.headers(self.session().id.as_ref(), version);
        headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        if let Some(Ok(id)) = last_event_id.map(HeaderValue::from_str) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let asked = (headers, Bytes::new());
        let response = self.send(Method::GET, asked, &Delivery::default()).await?;
        match ContentType::of(&response) {
            ContentType::Events => Ok(response),
            other => Err(other.into_failure()),
        }
    }

    /// Begins the session that the server assigned with its response to `initialize`.
    pub(super) fn begin_session(&self, response: &HeaderMap) {
        let mut id = response.get(SESSION_ID).cloned();
        id.iter_mut().for_each(|id| id.set_sensitive(true));
        let mut session = self.session();
        *session = HttpSession { id, settled: None, number: session.number + 1 };
    }

    /// Returns the number of the current session, which changes when another begins.
    pub(super) fn session_number(&self) -> u64 {
        self.session().number
    }

    /// Tells the server that the session is over, and ignores its response.
    pub(super) async fn end_session(&self, version: Option<Version>) {
        let Some(id) = self.session().id.clone() else {
            return;
        };
        let (asked, delivery) =
            ((self.headers(Some(&id), version), Bytes::new()), Delivery::default());
        let delete = self.send(Method::DELETE, asked, &delivery);
        let _ = tokio::time::timeout(limits::HTTP_DELETE_TIMEOUT, delete).await;
    }

    fn session(&self) -> MutexGuard<'_, HttpSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn headers(&self, session: Option<&HeaderValue>, version: Option<Version>) -> HeaderMap {
        let mut headers = self.target.headers().clone();
        if let Some(session) = session {
            headers.insert(SESSION_ID, session.clone());
        }
        if let Some(version) = version {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
        }
        headers
    }

    async fn send(
        &self,
        method: Method,
        (headers, body): (HeaderMap, Bytes),
        delivery: &Delivery,
    ) -> Result<PooledResponse, HttpFailure> {
        let has_session = headers.contains_key(SESSION_ID);
        let response = match &self.credentials {
            Some(credentials) => {
                self.send_authorized(&**credentials, (method, headers, body), delivery).await?
            }
            None => self.send_once(method, (headers, body), delivery).await?,
        };
        if is_refusal(&response) {
            delivery.undo();
        }
        match response.status() {
            status if status.is_success() => Ok(response),
            status if status.is_redirection() => {
                Err(HttpFailure::Redirect(self.target.elsewhere(&response)))
            }
            StatusCode::NOT_FOUND if has_session => Err(HttpFailure::SessionEnded),
            status => {
                let told = read_error(response).await;
                let is_lost =
                    status == StatusCode::BAD_REQUEST && told.as_ref().is_some_and(names_session);
                if has_session && is_lost {
                    return Err(HttpFailure::SessionEnded);
                }
                Err(HttpFailure::Status { status, told })
            }
        }
    }
}

impl Outbound {
    async fn send_once(
        &self,
        method: Method,
        asked: (HeaderMap, Bytes),
        delivery: &Delivery,
    ) -> Result<PooledResponse, HttpFailure> {
        let sent = self.target.send_noting(method, asked, delivery).await;
        sent.map_err(|cause| {
            let host = self.target.host().to_owned();
            HttpFailure::Unreachable { host, cause }
        })
    }

    /// Sends a request with a token, and once more with another if the server refuses it.
    async fn send_authorized(
        &self,
        credentials: &dyn Credentials,
        (method, mut headers, body): (Method, HeaderMap, Bytes),
        delivery: &Delivery,
    ) -> Result<PooledResponse, HttpFailure> {
        let mut is_second = false;
        loop {
            let token = credentials.token().await.map_err(HttpFailure::Unauthorized)?;
            if let Some(token) = &token {
                headers.insert(AUTHORIZATION, token.clone());
            }
            let asked = (headers.clone(), body.clone());
            let response = self.send_once(method.clone(), asked, delivery).await?;
            if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                return Ok(response);
            }
            delivery.undo();
            let challenge = Challenge::of(response.headers());
            let is_insufficient = match response.status() {
                // Neither the standing stream nor the end of a session is worth a sign-in.
                StatusCode::UNAUTHORIZED if token.is_none() && is_courtesy(&method, &headers) => {
                    return Ok(response);
                }
                StatusCode::UNAUTHORIZED => false,
                StatusCode::FORBIDDEN if challenge.wants_more_scope() => true,
                _ => return Ok(response),
            };
            let sent = token.as_ref();
            let refusal = TokenRefusal { sent, is_insufficient, challenge, is_second };
            credentials.refused(refusal).await.map_err(HttpFailure::Unauthorized)?;
            if is_second {
                return Ok(response);
            }
            is_second = true;
            if token.is_some() {
                headers.remove(AUTHORIZATION);
            }
        }
    }
}

/// Reports whether a session works without this request.
fn is_courtesy(method: &Method, headers: &HeaderMap) -> bool {
    let is_in_session = headers.contains_key(PROTOCOL_VERSION);
    (*method == Method::GET && is_in_session) || *method == Method::DELETE
}

/// Reports whether a server that answers this has not acted on the message. A client error says so,
/// except 408, which comes when time is up, and so does a redirect, except the one that leads to the
/// result. A server error says nothing: even 503 is what some proxies make of a connection that
/// broke, unless it names the time of a retry.
fn is_refusal(response: &PooledResponse) -> bool {
    match response.status() {
        StatusCode::SEE_OTHER | StatusCode::REQUEST_TIMEOUT => false,
        StatusCode::SERVICE_UNAVAILABLE => response.headers().contains_key(RETRY_AFTER),
        status => status.is_redirection() || status.is_client_error(),
    }
}

/// Spellings of the session's id in an error.
const SESSION_WORDS: [&str; 3] = ["session id", "session-id", "sessionid"];

/// Reports whether an error is about our session: many servers answer 400 where 404 is meant. It
/// must speak of the session's id; one that is the answer to a request may speak of another
/// session, so that only the name of the header counts there.
fn names_session(told: &ToldError) -> bool {
    let words = told.error.message.to_ascii_lowercase();
    match told.id {
        Some(Id::Number(_)) => words.contains(SESSION_ID.as_str()),
        Some(Id::Text(_)) | None => SESSION_WORDS.iter().any(|name| words.contains(name)),
    }
}

/// Adds the trace headers. A state without its parent would be meaningless; a value not valid in a
/// header is left out.
fn insert_trace(headers: &mut HeaderMap, trace: &Trace) {
    let Ok(parent) = HeaderValue::from_str(&trace.parent) else {
        return;
    };
    headers.insert(TRACEPARENT, parent);
    if let Some(Ok(state)) = trace.state.as_deref().map(HeaderValue::from_str) {
        headers.insert(TRACESTATE, state);
    }
}

/// The content type of a response.
pub(super) enum ContentType {
    Json,
    Events,
    Other(String),
}

impl ContentType {
    pub(super) fn of(response: &PooledResponse) -> ContentType {
        let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match value.map_or("no content type", media_type) {
            kind if kind.eq_ignore_ascii_case(JSON) => ContentType::Json,
            kind if kind.eq_ignore_ascii_case(EVENT_STREAM) => ContentType::Events,
            other => ContentType::Other(other.to_ascii_lowercase()),
        }
    }

    /// Converts it to a failure, for callers that cannot handle this content.
    pub(super) fn into_failure(self) -> HttpFailure {
        HttpFailure::MediaType(match self {
            ContentType::Json => JSON.to_owned(),
            ContentType::Events => EVENT_STREAM.to_owned(),
            ContentType::Other(kind) => kind,
        })
    }
}

pub(super) async fn read_body(
    mut response: PooledResponse,
    size_max: usize,
) -> Result<Bytes, HttpFailure> {
    let mut body = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| HttpFailure::broken_off(&e))? {
        if body.len() + rest.len() + chunk.len() > size_max {
            return Err(HttpFailure::TooLong);
        }
        // Most responses arrive in one piece, which need not be copied.
        if body.is_empty() { body = chunk } else { rest.extend_from_slice(&chunk) }
    }
    if rest.is_empty() {
        return Ok(body);
    }
    Ok([body, rest.freeze()].concat().into())
}

/// Reads the JSON-RPC error that many servers send along with a status.
async fn read_error(response: PooledResponse) -> Option<ToldError> {
    let body = read_body(response, limits::HTTP_ERROR_BYTES_MAX).await.ok()?;
    match Message::parse(std::str::from_utf8(&body).ok()?) {
        Ok(Message::Response(Response { id, outcome })) => {
            outcome.err().map(|error| ToldError { id, error })
        }
        Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => None,
    }
}

/// Reads the events of a response as they arrive.
pub(super) struct EventReader {
    response: PooledResponse,
    parser: sse::Parser,
    ready: VecDeque<SseEvent>,
}

impl EventReader {
    pub(super) fn new(response: PooledResponse) -> Self {
        let parser = sse::Parser::skipping(limits::FRAME_BYTES_MAX);
        EventReader { response, parser, ready: VecDeque::new() }
    }

    /// Returns the next event; `None` if the server ended the stream.
    pub(super) async fn next(&mut self) -> Result<Option<SseEvent>, HttpFailure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let chunk = self.response.chunk().await.map_err(|e| HttpFailure::broken_off(&e))?;
            let Some(chunk) = chunk else {
                return Ok(None);
            };
            self.ready.extend(self.parser.push(&chunk).map_err(|_| HttpFailure::TooLong)?);
        }
    }
}
