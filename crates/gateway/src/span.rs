//! The spans of a call: its request, the call itself, and the request to its server. Without a
//! tracer each of them costs one branch. No span holds arguments or results: an error appears as
//! its code, since its text may quote them.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use domain::{Code, Refusal, ToolName};
use mcp::ErrorObject;
use mcp::message::Raw;
use mcp::object::{ObjectMembers, quote};
use mcp::trace::Trace;
use provider::{
    Call, CallContext, CallOutcome, Declared, ProviderError, Reply, Span, SpanKind, Surface,
    TraceContext, Tracer, Value,
};
use store::RecordStatus;

/// Characters of a tool's name in a span's name; the caller chose it, and the tool need not exist.
const NAME_CHARS_MAX: usize = 128;

/// The error type of a tool's own error, as in OpenTelemetry's conventions for MCP.
const TOOL_ERROR: &str = "tool_error";

/// `mcp.request`: a client's request for a call.
pub struct RequestSpan {
    span: Option<Box<dyn Span>>,
    trace: TraceContext,
}

/// The facts known about a request before it is parsed.
pub struct RequestOrigin<'a> {
    pub surface: Surface,
    pub session: Option<&'a str>,
    pub id: &'a (dyn Display + Sync),
}

impl RequestSpan {
    /// Starts the span; `given` is the caller's own trace.
    pub fn start(
        tracer: Option<&dyn Tracer>,
        requested: &RequestOrigin<'_>,
        given: TraceContext,
    ) -> RequestSpan {
        let Some(tracer) = tracer else {
            return RequestSpan::none(given);
        };
        let mut span = tracer.start(Cow::Borrowed("mcp.request"), SpanKind::Server, &given);
        span.set("mcp.method.name", Value::Text("tools/call"));
        span.set("countersign.surface", Value::Text(requested.surface.as_str()));
        span.set("jsonrpc.request.id", Value::Text(&requested.id.to_string()));
        if let Some(session) = requested.session {
            span.set("mcp.session.id", Value::Text(session));
        }
        RequestSpan { trace: span.context(), span: Some(span) }
    }

    /// No span: the call belongs directly under `trace`.
    pub(crate) fn none(trace: TraceContext) -> RequestSpan {
        RequestSpan { span: None, trace }
    }

    /// The parent context of the call.
    pub fn trace(&self) -> &TraceContext {
        &self.trace
    }

    /// Marks a request that was refused before it became a call.
    pub fn refused(&mut self, refusal: &Refusal) {
        fail(self.span.as_deref_mut(), refusal.code.as_str());
    }

    /// Marks a request that was answered with a protocol error.
    pub fn failed(&mut self, error: &ErrorObject) {
        fail_by_protocol(self.span.as_deref_mut(), error);
    }
}

/// `tool.call.<tool>`: a call in the pipeline.
pub struct CallSpan(Option<Box<dyn Span>>);

impl CallSpan {
    /// Starts the span; `name` returns the tool's name as it may be written down.
    pub fn start(
        tracer: Option<&dyn Tracer>,
        call: &Call,
        name: impl FnOnce() -> ToolName,
        parent: &TraceContext,
    ) -> CallSpan {
        let Some(tracer) = tracer else {
            return CallSpan(None);
        };
        let tool: String = name().tool.chars().take(NAME_CHARS_MAX).collect();
        let name = Cow::Owned(format!("tool.call.{tool}"));
        let mut span = tracer.start(name, SpanKind::Internal, parent);
        span.set("tool.name", Value::Text(&tool));
        span.set("countersign.call.id", Value::Text(&call.id));
        if let Declared::Variant(_, declaration) = &call.declared
            && let Some(operation) = declaration.stated().operation
        {
            span.set("intent.operation_type", Value::Text(operation.as_str()));
        }
        CallSpan(Some(span))
    }

    /// Returns the call's context with this span as parent; `None` if it stays unchanged.
    pub fn within(&self, ctx: &CallContext) -> Option<CallContext> {
        let trace = self.0.as_ref()?.context();
        Some(CallContext { trace, ..ctx.clone() })
    }

    /// Sets the attributes that the record has too.
    pub fn recorded(
        &mut self,
        source: Option<&str>,
        status: RecordStatus,
        code: Option<&str>,
        duration: Duration,
    ) {
        let Some(span) = &mut self.0 else {
            return;
        };
        if let Some(source) = source {
            span.set("tool.source", Value::Text(source));
        }
        span.set("tool.duration_ms", Value::Number(duration.as_secs_f64() * 1000.0));
        span.set("tool.outcome", Value::Text(status.as_str()));
        if status == RecordStatus::Error && code.is_none() {
            fail(self.0.as_deref_mut(), TOOL_ERROR);
        }
    }

    /// Ends the span. The response may be a different failure than the recorded one, if recording
    /// failed.
    pub fn end(mut self, outcome: &CallOutcome) {
        match outcome {
            CallOutcome::Replied { .. } => {}
            CallOutcome::Refused(refusal) | CallOutcome::Failed { refusal, .. } => {
                fail(self.0.as_deref_mut(), refusal.code.as_str());
            }
        }
    }
}

/// `upstream.call`: the request to a server.
pub struct UpstreamSpan(Option<Box<dyn Span>>);

impl UpstreamSpan {
    pub fn start(
        tracer: Option<&dyn Tracer>,
        server: &str,
        transport: &'static str,
        parent: &TraceContext,
    ) -> UpstreamSpan {
        let Some(tracer) = tracer else {
            return UpstreamSpan(None);
        };
        let mut span = tracer.start(Cow::Borrowed("upstream.call"), SpanKind::Client, parent);
        span.set("upstream.server", Value::Text(server));
        span.set("upstream.transport", Value::Text(transport));
        UpstreamSpan(Some(span))
    }

    /// Returns the trace to send to the server: this span, or else the caller's trace unchanged.
    pub fn trace<'a>(&self, given: &'a TraceContext) -> Cow<'a, TraceContext> {
        match &self.0 {
            Some(span) => Cow::Owned(span.context()),
            None => Cow::Borrowed(given),
        }
    }

    pub fn end(mut self, outcome: &Result<Reply, ProviderError>) {
        let span = self.0.as_deref_mut();
        match outcome {
            Ok(_) => {}
            Err(ProviderError::Unavailable(_)) => fail(span, Code::UpstreamUnavailable.as_str()),
            Err(ProviderError::Lost(_)) => fail(span, Code::OutcomeUnknown.as_str()),
            Err(ProviderError::Timeout { .. }) => fail(span, Code::Timeout.as_str()),
            Err(ProviderError::TooLarge) => fail(span, Code::ResponseTooLarge.as_str()),
            Err(ProviderError::Cancelled { .. }) => fail(span, Code::Cancelled.as_str()),
            Err(ProviderError::Protocol(error)) => fail_by_protocol(span, error),
        }
    }
}

fn fail(span: Option<&mut (dyn Span + 'static)>, code: &str) {
    if let Some(span) = span {
        span.set("error.type", Value::Text(code));
        span.fail(code);
    }
}

fn fail_by_protocol(span: Option<&mut (dyn Span + 'static)>, error: &ErrorObject) {
    if let Some(span) = span {
        span.set("rpc.jsonrpc.error_code", Value::Integer(error.code));
        fail(Some(span), &error.code.to_string());
    }
}

/// Returns the `_meta` of a call as sent to the server; `None` if it stays unchanged.
pub(crate) fn meta(other: &[(String, Raw)], trace: &TraceContext) -> Option<Raw> {
    let parent = quote(trace.traceparent.as_deref()?);
    let state = trace.tracestate.as_deref().map(quote);
    let given = other.iter().find(|(name, _)| name == "_meta");
    let mut members = match given {
        Some((_, meta)) => ObjectMembers::parse(meta).ok()?,
        None => ObjectMembers::default(),
    };
    if members.get("traceparent") == Some(&*parent) && members.get("tracestate") == state.as_deref()
    {
        return None;
    }
    members.set("traceparent", parent);
    match state {
        Some(state) => members.set("tracestate", state),
        None => members.remove("tracestate"),
    }
    Some(members.write())
}

/// Returns the trace for the headers, on transports that have them. An invalid context is passed
/// only to a server that gets it in `_meta`.
pub(crate) fn header(trace: &TraceContext) -> Option<Box<Trace>> {
    trace.ids()?;
    let parent = trace.traceparent.clone()?;
    Some(Box::new(Trace { parent, state: trace.tracestate.clone() }))
}

#[cfg(test)]
mod tests {
    use mcp::message::raw;

    use super::*;

    fn context(parent: &str, state: Option<&str>) -> TraceContext {
        TraceContext { traceparent: Some(parent.to_owned()), tracestate: state.map(str::to_owned) }
    }

    fn rewritten(given: Option<&str>, trace: &TraceContext) -> Option<String> {
        let other: Vec<(String, Raw)> =
            given.map(|meta| ("_meta".to_owned(), raw(meta.to_owned()))).into_iter().collect();
        meta(&other, trace).map(|meta| meta.get().to_owned())
    }

    #[test]
    fn the_trace_context_is_merged_into_existing_meta() {
        let ours = context("00-a-b-01", Some("x=y"));
        let both = r#"{"traceparent":"00-a-b-01","tracestate":"x=y"}"#;
        assert_eq!(rewritten(None, &ours).as_deref(), Some(both));
        let given = r#"{"n": 1.0,"traceparent":"theirs","tracestate":"z=1"}"#;
        let expected = r#"{"n":1.0,"traceparent":"00-a-b-01","tracestate":"x=y"}"#;
        assert_eq!(rewritten(Some(given), &ours).as_deref(), Some(expected));
        let expected = r#"{"n":1.0,"traceparent":"00-a-b-01"}"#;
        let without = context("00-a-b-01", None);
        assert_eq!(rewritten(Some(given), &without).as_deref(), Some(expected));
    }

    #[test]
    fn meta_with_the_same_trace_context_is_left_unchanged() {
        let given = r#"{"tracestate": "x=y", "traceparent" : "00-a-b-01"}"#;
        assert_eq!(rewritten(Some(given), &context("00-a-b-01", Some("x=y"))), None);
        assert_eq!(rewritten(Some(given), &TraceContext::default()), None);
        assert_eq!(rewritten(Some("7"), &context("00-a-b-01", None)), None);
    }

    #[test]
    fn only_a_valid_context_becomes_a_header() {
        assert_eq!(header(&context("00-a-b-01", None)), None);
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = header(&context(parent, Some("x=y"))).unwrap();
        assert_eq!((&*trace.parent, trace.state.as_deref()), (parent, Some("x=y")));
    }
}
