//! The cost of spans per call: all work for them from the request to its end, without a tracer,
//! which is how most gates run, and with one that keeps nothing. Then the whole call, both ways.

use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use domain::Caller;
use domain::method::Method;
use domain::tool::ToolName;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::span::{CallSpan, RequestOrigin, RequestSpan, UpstreamSpan};
use gateway::{GateSettings, Gateway};
use mcp::message::{Raw, raw};
use mcp::server::text_result;
use provider::{
    Call, CallContext, CallOutcome, Declared, Gate, ProviderError, RecordState, Reply, Span,
    SpanKind, Surface, ToolProvider, TraceContext, Tracer, Value,
};
use store::{RecordStatus, Store};
use text::json::Object;

/// Makes spans that consist only of their context.
struct Forgetful;

struct Forgotten;

impl Tracer for Forgetful {
    fn start(
        &self,
        _name: Cow<'static, str>,
        _kind: SpanKind,
        _parent: &TraceContext,
    ) -> Box<dyn Span> {
        Box::new(Forgotten)
    }
}

impl Span for Forgotten {
    fn context(&self) -> TraceContext {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        TraceContext { traceparent: Some(parent.to_owned()), tracestate: None }
    }

    fn set(&mut self, _key: &'static str, value: Value<'_>) {
        black_box(value);
    }

    fn fail(&mut self, _message: &str) {}
}

struct Idle {
    result: Raw,
}

impl ToolProvider for Idle {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>> {
        async { Ok(vec![raw(r#"{"name":"tool"}"#.to_owned())]) }.boxed()
    }

    fn call<'a>(
        &'a self,
        _call: &'a Call,
        _ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        async { Ok(Reply::from(self.result.clone())) }.boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

fn call() -> Call {
    Call {
        id: "0193".to_owned(),
        caller: Arc::new(Caller::agent("agent")),
        client: None,
        session: None,
        request_id: None,
        surface: Surface::Passthrough,
        method: Method::ToolCall,
        tool: ToolName { server: "server".to_owned(), tool: "tool".to_owned() },
        arguments: Object::empty(),
        declared: Declared::Nothing,
        other: Vec::new(),
    }
}

/// Makes the spans that front, pipeline and upstream together make for one call.
fn all_spans(tracer: Option<&dyn Tracer>, call: &Call, ctx: &CallContext, outcome: &CallOutcome) {
    let requested =
        RequestOrigin { surface: call.surface, session: Some("session"), id: &call.tool.server };
    let request = RequestSpan::start(tracer, &requested, ctx.trace.clone());
    let mut span = CallSpan::start(tracer, call, || call.tool.clone(), request.trace());
    let within = span.within(ctx);
    let ctx = within.as_ref().unwrap_or(ctx);
    let upstream = UpstreamSpan::start(tracer, &call.tool.server, "stdio", &ctx.trace);
    black_box(upstream.trace(&ctx.trace));
    upstream.end(&Err(ProviderError::Timeout { sent: true }));
    span.recorded(Some("mcp:server"), RecordStatus::Success, None, Duration::from_millis(1));
    span.end(outcome);
}

fn bench(criterion: &mut Criterion) {
    let (call, ctx) = (call(), CallContext::within(Duration::from_secs(60)));
    let reply = Reply::from(text_result("ok"));
    let outcome =
        CallOutcome::Replied { reply, warnings: Vec::new(), kept: RecordState::Committed };
    criterion.bench_function("span/without a tracer", |bencher| {
        bencher.iter(|| all_spans(black_box(None), black_box(&call), &ctx, &outcome));
    });
    let forgetful: &dyn Tracer = &Forgetful;
    criterion.bench_function("span/with a tracer that keeps nothing", |bencher| {
        bencher.iter(|| all_spans(black_box(Some(forgetful)), black_box(&call), &ctx, &outcome));
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for (name, tracer) in [
        ("span/whole call without a tracer", None),
        ("span/whole call with one", Some(Arc::new(Forgetful) as Arc<dyn Tracer>)),
    ] {
        let gateway = Gateway::with_tracer(GateSettings::default(), Store::nowhere(), tracer);
        let idle = Arc::new(Idle { result: text_result("ok") });
        runtime.block_on(gateway.add_provider("server", idle));
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                let outcome = runtime.block_on(gateway.call(call.clone(), &ctx));
                assert!(matches!(outcome, CallOutcome::Replied { .. }));
                outcome
            });
        });
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
