//! The checks of an HTTP request before its session is looked up: media types, size, time,
//! revision, and that each deciding header occurs exactly once.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::refusal::Refusal;
use super::{
    EVENT_STREAM, JSON, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID, TRACEPARENT, TRACESTATE,
    media_type,
};
use crate::limits;
use crate::message::Frame;
use crate::trace::Trace;
use crate::version::Version;

pub(super) async fn read_frame(headers: &HeaderMap, body: Body) -> Result<Frame, Refusal> {
    let content_type = single(headers, &CONTENT_TYPE)?.unwrap_or_default();
    // An encoded body could grow without limit, and no client sends one.
    if !media_type(content_type).eq_ignore_ascii_case(JSON)
        || headers.contains_key(CONTENT_ENCODING)
    {
        return Err(Refusal::media_type());
    }
    let bytes = read_body(body).await?;
    Frame::parse(&bytes).map_err(Refusal::bad_frame)
}

async fn read_body(body: Body) -> Result<Bytes, Refusal> {
    if body.size_hint().lower() > limits::FRAME_BYTES_MAX as u64 {
        discard(body).await;
        return Err(Refusal::too_large());
    }
    let whole = Limited::new(body, limits::FRAME_BYTES_MAX).collect();
    match tokio::time::timeout(limits::HTTP_BODY_TIMEOUT, whole).await {
        Err(_) => Err(Refusal::body_timeout()),
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::too_large()),
        Ok(Err(_)) => {
            Err(Refusal::bad_request("the connection closed before the whole body arrived"))
        }
    }
}

/// Reads and discards a body that is not far over the limit. Most clients read the response only
/// after they have sent everything, so this lets them learn why it was rejected.
async fn discard(mut body: Body) {
    let mut left = limits::HTTP_DISCARD_BYTES_MAX;
    let discarding = async {
        while let Some(Ok(frame)) = body.frame().await {
            let size = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(size) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(limits::HTTP_DISCARD_TIMEOUT, discarding).await;
}

pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    match single(headers, &PROTOCOL_VERSION)? {
        Some(version) if Version::parse(version).is_none() => {
            Err(Refusal::unknown_version(version))
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn session_id(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    single(headers, &SESSION_ID)
}

/// Returns the id of the last event that a client received before its connection broke.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    single(headers, &LAST_EVENT_ID)
}

/// Returns the trace context in the request's headers. A duplicate `traceparent` counts as none;
/// the state may be spread over several headers.
pub(super) fn trace(headers: &HeaderMap) -> Option<Box<Trace>> {
    let parent = single(headers, &TRACEPARENT).ok()??.to_owned();
    let states: Vec<&str> =
        headers.get_all(TRACESTATE).iter().filter_map(|value| value.to_str().ok()).collect();
    let state = (!states.is_empty()).then(|| states.join(","));
    Some(Box::new(Trace { parent, state }))
}

/// Reports whether the response may be an event stream. Clients without `Accept` take anything.
pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    !headers.contains_key(ACCEPT)
        || accepted(headers).any(|kind| {
            [EVENT_STREAM, "text/*", "*/*"].iter().any(|known| kind.eq_ignore_ascii_case(known))
        })
}

/// Reports whether the client explicitly accepts an event stream.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    accepted(headers).any(|kind| kind.eq_ignore_ascii_case(EVENT_STREAM))
}

fn accepted(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(media_type)
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Refusal::bad_request(format!("the {name} header is malformed"))),
        },
        (Some(_), Some(_)) => {
            Err(Refusal::bad_request(format!("the {name} header appears more than once")))
        }
    }
}
