//! The rules and delays for retries. Nothing is acted on before an answer is complete, so a retry
//! costs tokens but repeats no action.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::Timestamp;

/// Maximum number of attempts for one request.
pub(super) const ATTEMPTS_MAX: u32 = 4;

const FIRST_WAIT: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The advice on whether to retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryAdvice {
    Never,
    Later,
    /// The server states the delay.
    After(Duration),
}

/// Returns the advice for a response with this status, which may state a delay.
pub(super) fn of_status(status: u16, stated: Option<Duration>) -> RetryAdvice {
    match status {
        408 | 429 | 500..=599 => stated.map_or(RetryAdvice::Later, RetryAdvice::After),
        _ => RetryAdvice::Never,
    }
}

/// Returns the delay that a response states: `Retry-After`, or the more exact `retry-after-ms` of
/// some servers.
pub(super) fn stated_wait(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
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

/// Returns the delay before the next attempt; `None` after the last one. `random` keeps steps that
/// failed together from retrying together.
pub(super) fn wait(again: RetryAdvice, attempt: u32, random: u32) -> Option<Duration> {
    if attempt >= ATTEMPTS_MAX {
        return None;
    }
    let doubled = FIRST_WAIT.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(WAIT_MAX);
    let share = f64::from(random) / f64::from(u32::MAX);
    match again {
        RetryAdvice::Never => None,
        RetryAdvice::Later => Some(doubled.mul_f64(0.5 + share / 2.0)),
        // Not before that time, and not all at once after it.
        RetryAdvice::After(wait) => Some(wait.saturating_add(FIRST_WAIT.mul_f64(share / 5.0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_seconds(seconds: u64) -> RetryAdvice {
        RetryAdvice::After(Duration::from_secs(seconds))
    }

    #[test]
    fn retry_advice_follows_the_status_and_the_stated_delay() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let ms = |ms: u64| RetryAdvice::After(Duration::from_millis(ms));
        for (status, after, after_ms, expected) in [
            (401, None, None, RetryAdvice::Never),
            (400, Some("1"), Some("1"), RetryAdvice::Never),
            (404, None, None, RetryAdvice::Never),
            (408, None, None, RetryAdvice::Later),
            (429, None, None, RetryAdvice::Later),
            (429, Some("7"), None, after_seconds(7)),
            (429, Some(" 0 "), None, after_seconds(0)),
            (503, Some("Sun, 15 Nov 2026 12:00:09 GMT"), None, after_seconds(9)),
            (503, Some("Sun, 15 Nov 2026 11:59:00 GMT"), None, after_seconds(0)),
            (500, Some("soon"), None, RetryAdvice::Later),
            (500, Some("-3"), None, RetryAdvice::Later),
            (429, Some("99999999999999999999999"), None, RetryAdvice::Later),
            (599, None, None, RetryAdvice::Later),
            (429, Some("7"), Some("250"), ms(250)),
            (429, None, Some(" 1500.5 "), RetryAdvice::After(Duration::from_micros(1_500_500))),
            (429, Some("7"), Some("soon"), after_seconds(7)),
            (429, Some("7"), Some("-1"), after_seconds(7)),
            (429, Some("7"), Some("NaN"), after_seconds(7)),
            (429, None, Some("1e300"), RetryAdvice::Later),
        ] {
            let mut headers = HeaderMap::new();
            let given = [("retry-after", after), ("retry-after-ms", after_ms)];
            for (name, value) in given.into_iter().filter_map(|(name, value)| Some((name, value?)))
            {
                headers.insert(name, value.parse().unwrap());
            }
            let found = of_status(status, stated_wait(&headers, now));
            assert_eq!(found, expected, "{status} {after:?} {after_ms:?}");
        }
    }

    #[test]
    fn retry_delays_grow_and_attempts_are_limited() {
        let ms = |again, attempt, random| wait(again, attempt, random).map(|it| it.as_millis());
        assert_eq!(ms(RetryAdvice::Later, 1, 0), Some(250));
        assert_eq!(ms(RetryAdvice::Later, 1, u32::MAX), Some(500));
        assert_eq!(ms(RetryAdvice::Later, 3, u32::MAX), Some(2_000));
        assert_eq!(ms(RetryAdvice::Later, ATTEMPTS_MAX, 0), None);
        assert_eq!(ms(RetryAdvice::Never, 1, 0), None);
        assert_eq!(ms(after_seconds(7), 1, 0), Some(7_000));
        assert_eq!(ms(after_seconds(7), 1, u32::MAX), Some(7_100));
        assert!(wait(RetryAdvice::After(Duration::MAX), 1, 9).is_some());
    }
}
