//! HTTP errors in their one shape, `{"error": {"code", "message", "details"}, "request_id"}`, and
//! the id that identifies a request.

use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::Refusal;

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Callers' request ids are echoed up to this length.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Returns the caller's request id if it can be echoed, or else a new one.
pub fn request_id(given: Option<&HeaderValue>) -> String {
    match given.and_then(|id| id.to_str().ok()) {
        Some(id) if (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) => id.to_owned(),
        _ => uuid::Uuid::now_v7().to_string(),
    }
}

/// Builds the error response to a request with these headers.
pub fn refuse(headers: &HeaderMap, status: StatusCode, refusal: &Refusal) -> Response {
    let id = request_id(headers.get(&REQUEST_ID));
    let response = (status, body(refusal, &id)).into_response();
    named(response, &id)
}

pub fn body(refusal: &Refusal, request_id: &str) -> Json<serde_json::Value> {
    let mut body = refusal.to_json();
    body["request_id"] = request_id.into();
    Json(body)
}

/// Adds the request id to a response.
pub fn named(mut response: Response, request_id: &str) -> Response {
    if let Ok(id) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
