//! The reasons a message did not reach a server, or its response did not reach us. Texts name hosts
//! and statuses; never header values, user names or queries, which may be secrets.

use std::error::Error;

use http::StatusCode;
use serde_json::json;

use crate::delivery::Delivery;
use crate::error::{ErrorObject, INTERNAL_ERROR};
use crate::id::Id;
use crate::limits;
use crate::peer::{ConnectionClosed, RequestError};

#[derive(Debug, thiserror::Error)]
pub(super) enum HttpFailure {
    #[error("cannot reach {host}: {cause}")]
    Unreachable { host: String, cause: String },
    #[error("the server's response ended early: {0}")]
    BrokenOff(String),
    #[error("the server did not accept the message within {} s", limits::HTTP_POST_TIMEOUT.as_secs())]
    Timeout,
    #[error("the server redirects to {0}; redirects are not followed, use the new address")]
    Redirect(String),
    #[error("the server ended the session")]
    SessionEnded,
    #[error("{}", status_text(*.status))]
    Status { status: StatusCode, told: Option<ToldError> },
    #[error("the server's response exceeds {} bytes", limits::FRAME_BYTES_MAX)]
    TooLong,
    #[error("the server's response is not a JSON-RPC message: {0}")]
    BadAnswer(String),
    #[error("the server answered with {0}, which is neither JSON nor events")]
    MediaType(String),
    #[error("the server ended the stream without a response")]
    NoResponse,
    #[error("the server's response ended early and could not be resumed: {0}")]
    NotResumed(String),
    #[error("the server's event stream ended before it named the address for our messages")]
    NoAddress,
    #[error("the server named an address for our messages that cannot be used: {0}")]
    BadAddress(String),
    #[error("{0}")]
    Refused(ErrorObject),
    #[error("{0}")]
    Unauthorized(String),
}

/// A JSON-RPC error that came with a status.
#[derive(Debug)]
pub(super) struct ToldError {
    /// The request that it names.
    pub(super) id: Option<Id>,
    pub(super) error: ErrorObject,
}

impl HttpFailure {
    pub(super) fn broken_off(error: &hyper::Error) -> Self {
        HttpFailure::BrokenOff(root_cause(error))
    }

    /// Reports whether a retry is pointless.
    pub(super) fn is_final(&self) -> bool {
        match self {
            HttpFailure::Unreachable { .. }
            | HttpFailure::BrokenOff(_)
            | HttpFailure::Timeout
            | HttpFailure::TooLong
            | HttpFailure::BadAnswer(_)
            | HttpFailure::NoAddress
            | HttpFailure::NotResumed(_)
            | HttpFailure::NoResponse => false,
            HttpFailure::Status { status, .. } => !status.is_server_error(),
            HttpFailure::Redirect(_)
            | HttpFailure::SessionEnded
            | HttpFailure::MediaType(_)
            | HttpFailure::BadAddress(_)
            | HttpFailure::Unauthorized(_)
            | HttpFailure::Refused(_) => true,
        }
    }

    /// Converts it for the request that failed by it. A request that was sent, and that no error
    /// response answers, may have been processed. An error sent with a status can be that of a
    /// proxy, so that it must name the request.
    pub(super) fn into_request_error(self, id: i64, delivery: &Delivery) -> RequestError {
        let is_named = |told: &ToldError| told.id == Some(Id::Number(id));
        let is_answer = matches!(self, HttpFailure::Refused(_))
            || matches!(&self, HttpFailure::Status { told: Some(told), .. } if is_named(told));
        match self {
            HttpFailure::TooLong => RequestError::TooLarge,
            failure if delivery.is_sent() && !is_answer => RequestError::Lost(failure.to_string()),
            HttpFailure::Unauthorized(reason) => RequestError::Unauthorized(reason),
            failure => {
                failure.into_refusal().map_or_else(RequestError::Closed, RequestError::Refused)
            }
        }
    }

    /// Separates an error response, which concerns one request since the server is alive, from a
    /// failed connection.
    fn into_refusal(self) -> Result<ErrorObject, ConnectionClosed> {
        match self {
            HttpFailure::Refused(error) => Ok(error),
            // A missing authorization gets our own text: it is what the operator must act on.
            HttpFailure::Status { status, told: Some(told) }
                if status != StatusCode::UNAUTHORIZED =>
            {
                Ok(told.error)
            }
            HttpFailure::Status { status, .. } => {
                Ok(ErrorObject::new(INTERNAL_ERROR, status_text(status))
                    .with_data(&json!({"httpStatus": status.as_u16()})))
            }
            other => Err(ConnectionClosed(other.to_string())),
        }
    }
}

fn status_text(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED => "the server requires authorization (HTTP 401)".to_owned(),
        other => format!("the server answered HTTP {other}"),
    }
}

/// Returns the innermost text: the outer ones say less.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
