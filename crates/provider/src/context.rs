//! The context of a running call: its deadline, its cancellation, and the channel back to the
//! client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mcp::message::{Notification, Raw};
use mcp::peer::{CancelReason, NoticeSink, RequestError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub struct CallContext {
    pub deadline: Instant,
    /// Cancelled when the result is no longer wanted.
    pub cancel: CancellationToken,
    /// The reason of the cancellation, as the client gave it.
    pub reason: CancelReason,
    /// Receives the params of `notifications/progress`; absent when the client did not request
    /// progress.
    pub progress: Option<Sink>,
    /// Receives notifications of the server that belong to the call, such as log messages, and
    /// returns those that it does not take; absent when the client gets none.
    pub notices: Option<NoticeSink>,
    /// Handles sampling, elicitation and roots; absent when there is no client to ask.
    pub ask_client: Option<Arc<dyn AskClient>>,
    pub trace: TraceContext,
}

pub type Sink = Arc<dyn Fn(Raw) + Send + Sync>;

/// Sends requests to the client that made the call.
pub trait AskClient: Send + Sync {
    /// Returns the client's declaration of a capability (`sampling`, `elicitation`, `roots`) as
    /// JSON, or `None` if it declared none.
    fn capability(&self, name: &str) -> Option<String>;

    fn ask<'a>(
        &'a self,
        method: &'a str,
        params: Option<Raw>,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Raw, RequestError>>;

    /// Reports whether the client is connected to this server alone and may still see it, so that
    /// it gets the server's own notifications and requests.
    fn hears(&self, server: &str) -> bool;

    /// Passes a server's notification on, if the client hears that server.
    fn tell<'a>(&'a self, server: &'a str, notification: Notification) -> BoxFuture<'a, ()>;

    /// Returns a handle to the same client for `roots/list` and notifications after the call has
    /// ended. The handle does not keep the client's session alive.
    fn between_calls(&self) -> Arc<dyn AskClient>;
}

/// A W3C trace context, from the caller or from one of our spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

/// The ids in a valid `traceparent`, in lowercase hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceIds<'a> {
    pub trace_id: &'a str,
    pub span_id: &'a str,
    pub flags: u8,
}

impl TraceContext {
    /// Returns `None` if the context is absent or invalid; W3C requires both to be treated alike.
    pub fn ids(&self) -> Option<TraceIds<'_>> {
        let text = self.traceparent.as_deref()?;
        let mut parts = text.split('-');
        let mut part = |length: usize| {
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            parts.next().filter(|part| part.len() == length && part.bytes().all(is_digit))
        };
        let (version, trace_id, span_id, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        // Later versions may add fields after the flags; version 00 may not.
        let is_whole = version != "00" || parts.next().is_none();
        let is_set = |id: &str| id.bytes().any(|digit| digit != b'0');
        let flags = u8::from_str_radix(flags, 16).ok()?;
        (is_whole && version != "ff" && is_set(trace_id) && is_set(span_id)).then_some(TraceIds {
            trace_id,
            span_id,
            flags,
        })
    }

    pub fn trace_id(&self) -> Option<&str> {
        Some(self.ids()?.trace_id)
    }
}

impl CallContext {
    /// Returns a context with only a deadline.
    pub fn within(timeout: Duration) -> CallContext {
        CallContext {
            deadline: Instant::now() + timeout,
            cancel: CancellationToken::new(),
            reason: CancelReason::default(),
            progress: None,
            notices: None,
            ask_client: None,
            trace: TraceContext::default(),
        }
    }

    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Option<(String, String, u8)> {
        let trace = TraceContext { traceparent: Some(text.to_owned()), tracestate: None };
        trace.ids().map(|ids| (ids.trace_id.to_owned(), ids.span_id.to_owned(), ids.flags))
    }

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_valid_parent_names_its_trace() {
        for (text, flags) in [
            (format!("00-{TRACE}-{SPAN}-01"), 1),
            (format!("00-{TRACE}-{SPAN}-00"), 0),
            (format!("cc-{TRACE}-{SPAN}-ff-what-comes-later"), 255),
        ] {
            assert_eq!(ids(&text), Some((TRACE.to_owned(), SPAN.to_owned(), flags)), "{text}");
        }
        assert_eq!(TraceContext::default().trace_id(), None);
    }

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            "00-a-b-01".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", &zeros[..16]),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}x-{SPAN}-01", &TRACE[1..]),
            format!(" 00-{TRACE}-{SPAN}-01"),
        ] {
            assert_eq!(ids(&text), None, "{text}");
        }
    }
}
