//! The delay that a response asks for before the next request.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::Timestamp;

/// Returns the delay that a response states: `Retry-After`, or the more exact `retry-after-ms` of
/// some servers.
pub fn stated_wait(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |value: &http::HeaderValue| value.to_str().ok().map(str::to_owned);
    let exact = headers.get("retry-after-ms").and_then(text);
    let exact = exact.and_then(|value| {
        Duration::try_from_secs_f64(value.trim().parse::<f64>().ok()? / 1000.0).ok()
    });
    exact.or_else(|| wait_of(&headers.get(RETRY_AFTER).and_then(text)?, now))
}

/// Parses `Retry-After`: seconds, or a date.
fn wait_of(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let then = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO))
}
