//! The spans of a call: the request for it, the call itself, and what its server is asked. Where no
//! spans are made each of them is a branch. Arguments and results stand in none: an error is told
//! by its code, since its words may quote them.

use std::borrow::Cow;
use std::fmt::Display;
use std::time::Duration;

use domain::{Code, Refusal};
use mcp::ErrorObject;
use mcp::message::Raw;
use mcp::object::{ObjectMembers, quote};
use mcp::peer::Trace;
use provider::{
    Call, CallContext, CallOutcome, Declared, ProviderError, Reply, Span, SpanKind, Surface,
    TraceContext, Tracer, Value,
};
use store::RecordStatus;

/// Characters of a tool's name in a span's; the caller chose it, and there need not be such a tool.
const NAME_CHARS_MAX: usize = 128;

/// What a tool's own error is called, as OpenTelemetry's conventions for MCP have it.
const TOOL_ERROR: &str = "tool_error";

/// `mcp.request`: a client's request for a call.
pub struct RequestSpan {
    span: Option<Box<dyn Span>>,
    trace: TraceContext,
}

/// What is known of a request before it is looked at.
pub struct RequestOrigin<'a> {
    pub surface: Surface,
    pub session: Option<&'a str>,
    pub id: &'a (dyn Display + Sync),
}

impl RequestSpan {
    /// `given` is what the caller said of its own trace.
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

    /// No span: the call is made right under this.
    pub(crate) fn none(trace: TraceContext) -> RequestSpan {
        RequestSpan { span: None, trace }
    }

    /// What the call is made under.
    pub fn trace(&self) -> &TraceContext {
        &self.trace
    }

    /// It was refused before it became a call.
    pub fn refused(&mut self, refusal: &Refusal) {
        fail(self.span.as_deref_mut(), refusal.code.as_str());
    }

    /// It was answered with an error of the protocol.
    pub fn failed(&mut self, error: &ErrorObject) {
        fail_by_protocol(self.span.as_deref_mut(), error);
    }
}

/// `tool.call.<tool>`: a call on its way through the pipeline.
pub struct CallSpan(Option<Box<dyn Span>>);

impl CallSpan {
    pub fn start(tracer: Option<&dyn Tracer>, call: &Call, parent: &TraceContext) -> CallSpan {
        let Some(tracer) = tracer else {
            return CallSpan(None);
        };
        let tool: String = call.tool.tool.chars().take(NAME_CHARS_MAX).collect();
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

    /// What surrounds the call, within this span; nothing where it stays as it is.
    pub fn within(&self, ctx: &CallContext) -> Option<CallContext> {
        let trace = self.0.as_ref()?.context();
        Some(CallContext { trace, ..ctx.clone() })
    }

    /// What the record says of it too.
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

    /// What is answered may be another failure than what was recorded: it could not be recorded.
    pub fn end(mut self, outcome: &CallOutcome) {
        match outcome {
            CallOutcome::Replied { .. } => {}
            CallOutcome::Refused(refusal) | CallOutcome::Failed { refusal, .. } => {
                fail(self.0.as_deref_mut(), refusal.code.as_str());
            }
        }
    }
}

/// `upstream.call`: what a server is asked.
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

    /// What the server is told: this span, or what the caller said, as it is.
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
            Err(ProviderError::Timeout) => fail(span, Code::Timeout.as_str()),
            Err(ProviderError::Cancelled) => fail(span, Code::Cancelled.as_str()),
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

/// `_meta` of a call as the server is to have it; nothing where it stays as it came.
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

/// What is said in headers, where there are some. A context that is not valid is passed on to nobody
/// who did not get it in `_meta`.
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
    fn the_trace_joins_the_meta_that_is_there() {
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
    fn what_says_the_same_already_stays_as_it_came() {
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
