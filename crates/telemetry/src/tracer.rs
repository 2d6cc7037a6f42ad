//! Implements the program's own tracing interface with OpenTelemetry. Names of tools, ids and the
//! state of a caller's trace are the caller's words: every text is redacted before it is exported.

use std::borrow::Cow;
use std::sync::Arc;

use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind as OtelKind, Status, TraceContextExt,
    TraceFlags, TraceId, TraceState, Tracer as _,
};
use opentelemetry::{Context, KeyValue, Value as OtelValue};
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};
use provider::{Span, SpanKind, TraceContext, Tracer, Value};
use redact::Redactor;

use crate::CurrentRedactor;

pub(super) struct OtelTracer {
    tracer: SdkTracer,
    redactor: CurrentRedactor,
}

impl OtelTracer {
    pub(super) fn new(tracer: SdkTracer, redactor: CurrentRedactor) -> OtelTracer {
        OtelTracer { tracer, redactor }
    }
}

impl Tracer for OtelTracer {
    fn start(
        &self,
        name: Cow<'static, str>,
        kind: SpanKind,
        parent: &TraceContext,
    ) -> Box<dyn Span> {
        let redactor = (self.redactor)();
        let context = match read(parent, &redactor) {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        let name = redactor.text(&name).into_owned();
        let builder = SpanBuilder::from_name(name).with_kind(match kind {
            SpanKind::Internal => OtelKind::Internal,
            SpanKind::Server => OtelKind::Server,
            SpanKind::Client => OtelKind::Client,
        });
        let span = self.tracer.build_with_context(builder, &context);
        // The very last calls come after the provider has stopped making spans.
        let otherwise = (!span.span_context().is_valid()).then(|| parent.clone());
        Box::new(OtelSpan { span, otherwise, redactor })
    }
}

/// A span that ends when it is dropped, as OpenTelemetry's own does.
struct OtelSpan {
    span: SdkSpan,
    /// The context to pass on if the span has none.
    otherwise: Option<TraceContext>,
    redactor: Arc<Redactor>,
}

impl Span for OtelSpan {
    fn context(&self) -> TraceContext {
        match &self.otherwise {
            Some(given) => given.clone(),
            None => write(self.span.span_context()),
        }
    }

    fn set(&mut self, key: &'static str, value: Value<'_>) {
        if self.span.is_recording() {
            let value: OtelValue = match value {
                Value::Text(text) => self.redactor.text(text).into_owned().into(),
                Value::Integer(number) => number.into(),
                Value::Number(number) => number.into(),
                Value::Flag(flag) => flag.into(),
            };
            self.span.set_attribute(KeyValue::new(key, value));
        }
    }

    fn fail(&mut self, message: &str) {
        if self.span.is_recording() {
            let message = self.redactor.text(message).into_owned();
            self.span.set_status(Status::error(message));
        }
    }
}

/// Returns the caller's context. A state with a secret is left out: part of one would mean something
/// else.
fn read(context: &TraceContext, redactor: &Redactor) -> Option<SpanContext> {
    let ids = context.ids()?;
    let is_plain = |state: &&str| matches!(redactor.text(state), Cow::Borrowed(_));
    let state = context.tracestate.as_deref().filter(is_plain);
    let state = state.and_then(|state| state.parse::<TraceState>().ok());
    Some(SpanContext::new(
        TraceId::from_hex(ids.trace_id).ok()?,
        SpanId::from_hex(ids.span_id).ok()?,
        TraceFlags::new(ids.flags),
        true,
        state.unwrap_or_default(),
    ))
}

fn write(context: &SpanContext) -> TraceContext {
    let state = context.trace_state().header();
    TraceContext {
        traceparent: Some(format!(
            "00-{}-{}-{:02x}",
            context.trace_id(),
            context.span_id(),
            context.trace_flags()
        )),
        tracestate: (!state.is_empty()).then_some(state),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_context_round_trips() {
        let read = |context: &TraceContext| read(context, &Redactor::builtin());
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for state in [None, Some("vendor=x,other=y")] {
            let given = TraceContext {
                traceparent: Some(parent.to_owned()),
                tracestate: state.map(str::to_owned),
            };
            assert_eq!(write(&read(&given).unwrap()), given);
        }
        let bad_state = TraceContext {
            traceparent: Some(parent.to_owned()),
            tracestate: Some("no state".to_owned()),
        };
        assert_eq!(write(&read(&bad_state).unwrap()).tracestate, None);
        let secret = "vendor=ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let secret = TraceContext { tracestate: Some(secret.to_owned()), ..bad_state };
        assert_eq!(write(&read(&secret).unwrap()).tracestate, None);
        assert_eq!(read(&TraceContext::default()), None);
    }
}
