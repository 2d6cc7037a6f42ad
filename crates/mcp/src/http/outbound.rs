//! The HTTP of the client's end: carries bytes to one endpoint and back, with the headers the
//! session needs and a limit on everything. Knows nothing of peers.

use std::collections::VecDeque;
use std::sync::OnceLock;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use url::Url;

use super::failure::HttpFailure;
use super::pool::PooledResponse;
use super::target::HttpTarget;
use super::{
    EVENT_STREAM, JSON, PROTOCOL_VERSION, SESSION_ID, TRACEPARENT, TRACESTATE, media_type,
};
use crate::error::ErrorObject;
use crate::limits;
use crate::message::Message;
use crate::peer::Trace;
use crate::sse::{self, SseEvent};
use crate::version::Version;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) struct Outbound {
    target: HttpTarget,
    /// The headers of a POST once the session is established, as it is for most messages.
    settled: OnceLock<HeaderMap>,
    session: OnceLock<HeaderValue>,
}

impl Outbound {
    /// `headers` are sent with every request.
    pub(super) fn new(url: Url, headers: HeaderMap) -> Result<Self, String> {
        let target = HttpTarget::new(url, headers)?;
        Ok(Outbound { target, settled: OnceLock::new(), session: OnceLock::new() })
    }

    /// Sends a message; returns the response once its status shows that the message was accepted.
    pub(super) async fn post(
        &self,
        body: Vec<u8>,
        version: Option<Version>,
        trace: Option<&Trace>,
    ) -> Result<PooledResponse, HttpFailure> {
        let mut headers = match version {
            Some(_) => self.settled.get_or_init(|| self.post_headers(version)).clone(),
            None => self.post_headers(None),
        };
        if let Some(trace) = trace {
            insert_trace(&mut headers, trace);
        }
        self.send(Method::POST, headers, body.into()).await
    }

    fn post_headers(&self, version: Option<Version>) -> HeaderMap {
        let mut headers = self.headers(version);
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
        let mut headers = self.headers(version);
        headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        if let Some(Ok(id)) = last_event_id.map(HeaderValue::from_str) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.send(Method::GET, headers, Bytes::new()).await?;
        match ContentType::of(&response) {
            ContentType::Events => Ok(response),
            other => Err(other.into_failure()),
        }
    }

    pub(super) fn keep_session(&self, response: &PooledResponse) {
        if let Some(id) = response.headers().get(SESSION_ID) {
            let mut id = id.clone();
            id.set_sensitive(true);
            let _ = self.session.set(id);
        }
    }

    /// Tells the server that the session is over, and ignores its response.
    pub(super) async fn end_session(&self, version: Option<Version>) {
        if self.session.get().is_some() {
            let delete = self.send(Method::DELETE, self.headers(version), Bytes::new());
            let _ = tokio::time::timeout(limits::HTTP_DELETE_TIMEOUT, delete).await;
        }
    }

    fn headers(&self, version: Option<Version>) -> HeaderMap {
        let mut headers = self.target.headers().clone();
        if let Some(session) = self.session.get() {
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
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<PooledResponse, HttpFailure> {
        let sent = self.target.send(method, headers, body).await;
        let response = sent.map_err(|cause| {
            let host = self.target.host().to_owned();
            HttpFailure::Unreachable { host, cause }
        })?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status if status.is_redirection() => {
                Err(HttpFailure::Redirect(self.target.elsewhere(&response)))
            }
            StatusCode::NOT_FOUND if self.session.get().is_some() => Err(HttpFailure::SessionEnded),
            status => Err(HttpFailure::Status { status, error: read_error(response).await }),
        }
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
async fn read_error(response: PooledResponse) -> Option<ErrorObject> {
    let body = read_body(response, limits::HTTP_ERROR_BYTES_MAX).await.ok()?;
    match Message::parse(std::str::from_utf8(&body).ok()?) {
        Ok(Message::Response(answer)) => answer.outcome.err(),
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
        let parser = sse::Parser::new(limits::FRAME_BYTES_MAX);
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
