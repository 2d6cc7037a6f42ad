//! HTTP requests rejected before a service sees them: a status, and a JSON-RPC error that tells
//! clients that read only bodies why.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use serde_json::json;

use super::JSON;
use crate::error::{ErrorObject, INVALID_REQUEST, OVERLOADED};
use crate::id::Id;
use crate::limits;
use crate::message::{self, BadFrame, Message};
use crate::version::Version;

/// The code the official SDKs use for an unknown session.
const SESSION_NOT_FOUND: i64 = -32001;

#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    id: Option<Id>,
    error: ErrorObject,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Refusal { status, id: None, error: ErrorObject::new(INVALID_REQUEST, message) }
    }

    /// Sets the id of the rejected request, so that its sender can identify it.
    pub(super) fn of(mut self, id: Option<Id>) -> Self {
        self.id = id;
        self
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn bad_frame(bad: BadFrame) -> Self {
        Refusal { status: StatusCode::BAD_REQUEST, id: bad.id, error: bad.error }
    }

    /// Not an HTTP error: clients probe for methods this way.
    pub(super) fn unknown_method(method: &str) -> Self {
        Refusal { status: StatusCode::OK, id: None, error: ErrorObject::method_not_found(method) }
    }

    pub(super) fn unknown_version(requested: &str) -> Self {
        let supported = Version::ALL.map(Version::as_str);
        let message = format!(
            "unsupported protocol version {requested:?}; supported versions: {}",
            supported.join(", ")
        );
        let error = ErrorObject::new(INVALID_REQUEST, message)
            .with_data(&json!({"supported": supported, "requested": requested}));
        Refusal { status: StatusCode::BAD_REQUEST, id: None, error }
    }

    pub(super) fn no_session() -> Self {
        Self::bad_request("no session: send initialize first, then the Mcp-Session-Id it returns")
    }

    /// The same response for a session that never existed, that ended, or that belongs to someone
    /// else.
    pub(super) fn unknown_session() -> Self {
        let error = ErrorObject::new(SESSION_NOT_FOUND, "session not found, send initialize again");
        Refusal { status: StatusCode::NOT_FOUND, id: None, error }
    }

    pub(super) fn foreign_event() -> Self {
        Self::bad_request(
            "Last-Event-ID is not the id of an event of this session: repeat the request, or open \
             the stream without it",
        )
    }

    pub(super) fn expired_event() -> Self {
        let message = format!(
            "the events after this Last-Event-ID are no longer kept: answers are kept for {} s, and \
             only the latest of them; repeat the request",
            limits::REPLAY_TIME.as_secs()
        );
        Self::new(StatusCode::GONE, message)
    }

    pub(super) fn media_type() -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json")
    }

    pub(super) fn not_acceptable() -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "the client must accept text/event-stream")
    }

    pub(super) fn too_large() -> Self {
        let message = format!("the body exceeds {} bytes", limits::FRAME_BYTES_MAX);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(super) fn body_timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
    }

    pub(super) fn overloaded(message: &str) -> Self {
        let error = ErrorObject::new(OVERLOADED, message);
        Refusal { status: StatusCode::SERVICE_UNAVAILABLE, id: None, error }
    }

    pub(super) fn method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "only GET, POST and DELETE are allowed here")
    }

    pub(super) fn into_message(self) -> message::Response {
        message::Response { id: self.id, outcome: Err(self.error) }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = json_response(status, self.into_message().into());
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
        }
        response
    }
}

pub(super) fn json_response(status: StatusCode, message: Message) -> Response {
    json_bytes(status, message.to_line())
}

pub(super) fn json_bytes(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}
