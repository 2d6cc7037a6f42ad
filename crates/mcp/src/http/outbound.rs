//! The HTTP of the client's end: carries bytes to one endpoint and back, with the headers that the
//! session needs and a bound on everything. Knows nothing of peers.

use std::collections::VecDeque;
use std::sync::OnceLock;

use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, RequestBuilder, Response, Url};

use super::failure::Failure;
use super::{EVENT_STREAM, JSON, PROTOCOL_VERSION, SESSION_ID, media_type};
use crate::error::ErrorObject;
use crate::limits;
use crate::message::Message;
use crate::sse::{self, Event};
use crate::version::Version;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) struct Wire {
    client: Client,
    url: Url,
    headers: HeaderMap,
    session: OnceLock<HeaderValue>,
}

impl Wire {
    pub(super) fn new(url: Url, headers: HeaderMap) -> Result<Self, String> {
        Ok(Wire { client: client()?, url, headers, session: OnceLock::new() })
    }

    /// Gives the response once its status says that the message was taken.
    pub(super) async fn post(
        &self,
        body: Vec<u8>,
        version: Option<Version>,
    ) -> Result<Response, Failure> {
        let mut headers = self.headers(version);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        self.send(self.client.post(self.url.clone()).headers(headers).body(body)).await
    }

    /// Opens an event stream, from the start or behind the last event that was seen.
    pub(super) async fn get(
        &self,
        version: Option<Version>,
        last_event_id: Option<&str>,
    ) -> Result<Response, Failure> {
        let mut headers = self.headers(version);
        headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        if let Some(Ok(id)) = last_event_id.map(HeaderValue::from_str) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.send(self.client.get(self.url.clone()).headers(headers)).await?;
        match content_type(&response) {
            kind if kind == EVENT_STREAM => Ok(response),
            other => Err(Failure::MediaType(other)),
        }
    }

    pub(super) fn keep_session(&self, response: &Response) {
        if let Some(id) = response.headers().get(SESSION_ID) {
            let mut id = id.clone();
            id.set_sensitive(true);
            let _ = self.session.set(id);
        }
    }

    /// Tells the server that the session is over. Nobody waits for what it says to that.
    pub(super) async fn end_session(&self, version: Option<Version>) {
        if self.session.get().is_some() {
            let delete = self.client.delete(self.url.clone()).headers(self.headers(version));
            let _ = tokio::time::timeout(limits::HTTP_DELETE_TIMEOUT, delete.send()).await;
        }
    }

    fn headers(&self, version: Option<Version>) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(session) = self.session.get() {
            headers.insert(SESSION_ID, session.clone());
        }
        if let Some(version) = version {
            headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
        }
        headers
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let response = request
            .send()
            .await
            .map_err(|error| Failure::unreachable(self.url.host_str().unwrap_or("?"), &error))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            status if status.is_redirection() => Err(Failure::Redirect(self.target(&response))),
            StatusCode::NOT_FOUND if self.session.get().is_some() => Err(Failure::SessionEnded),
            status => Err(Failure::Status { status, error: read_error(response).await }),
        }
    }

    fn target(&self, response: &Response) -> String {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let url = location.and_then(|location| self.url.join(location).ok());
        let host = url.as_ref().and_then(Url::host_str);
        host.unwrap_or("nowhere").to_owned()
    }
}

/// One for the process: the trusted certificates are read once, connections are shared.
fn client() -> Result<Client, String> {
    static CLIENT: OnceLock<Result<Client, String>> = OnceLock::new();
    CLIENT
        .get_or_init(|| {
            // An error says that the program has chosen a provider already.
            let _ = rustls::crypto::ring::default_provider().install_default();
            Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(limits::HTTP_CONNECT_TIMEOUT)
                .pool_idle_timeout(limits::HTTP_POOL_IDLE)
                .tcp_nodelay(true)
                .build()
                .map_err(|error| error.to_string())
        })
        .clone()
}

pub(super) fn content_type(response: &Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.map_or_else(|| "no content type".to_owned(), media_type)
}

pub(super) async fn read_body(mut response: Response, size_max: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| Failure::broken_off(&e))? {
        if body.len() + chunk.len() > size_max {
            return Err(Failure::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The JSON-RPC error that many servers send along with a status.
async fn read_error(response: Response) -> Option<ErrorObject> {
    let body = read_body(response, limits::HTTP_ERROR_BYTES_MAX).await.ok()?;
    match Message::parse(std::str::from_utf8(&body).ok()?) {
        Ok(Message::Response(answer)) => answer.outcome.err(),
        Ok(Message::Request(_) | Message::Notification(_)) | Err(_) => None,
    }
}

/// The events of a response as they come.
pub(super) struct Events {
    response: Response,
    parser: sse::Parser,
    ready: VecDeque<Event>,
}

impl Events {
    pub(super) fn new(response: Response) -> Self {
        let parser = sse::Parser::new(limits::FRAME_BYTES_MAX);
        Events { response, parser, ready: VecDeque::new() }
    }

    /// `None` where the server ended the stream.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, Failure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let chunk = self.response.chunk().await.map_err(|e| Failure::broken_off(&e))?;
            let Some(chunk) = chunk else {
                return Ok(None);
            };
            self.ready.extend(self.parser.push(&chunk).map_err(|_| Failure::TooLong)?);
        }
    }
}
