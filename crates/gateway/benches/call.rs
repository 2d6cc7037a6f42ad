//! The gate's own cost per call, with 10,000 tools in the catalog: from the JSON of a two-key call
//! to its verdict and record. The provider does nothing, so only the gate is measured.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use domain::Caller;
use domain::method::Method;
use domain::tool::Class;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::{GateSettings, Gateway, intake};
use mcp::message::{Raw, raw, to_raw};
use mcp::server::text_result;
use provider::{
    Call, CallContext, CallOutcome, Declared, Gate, ProviderError, Reply, Surface, ToolProvider,
};
use serde_json::json;
use store::Store;

const SERVERS: usize = 100;
const TOOLS_PER_SERVER: usize = 100;

struct Idle {
    result: Raw,
}

impl ToolProvider for Idle {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>> {
        let tools = (0..TOOLS_PER_SERVER)
            .map(|number| {
                to_raw(&json!({
                    "name": format!("tool_{number}"),
                    "description": "Does something with a path and a mode, as tools do.",
                    "inputSchema": {"type": "object", "required": ["path"], "properties": {
                        "path": {"type": "string"}, "mode": {"enum": ["a", "b"]}}},
                    "annotations": {"readOnlyHint": number % 3 == 0, "destructiveHint": number % 3 == 1},
                }))
            })
            .collect();
        async { Ok(tools) }.boxed()
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

fn call(caller: &Arc<Caller>, parameters: &Raw) -> Call {
    let parsed = intake::two_key_call(Class::Read, parameters).expect("the parameters are sound");
    Call {
        id: "0193".to_owned(),
        caller: caller.clone(),
        client: None,
        session: None,
        request_id: None,
        surface: Surface::Discovery,
        method: Method::ToolCall,
        tool: parsed.tool,
        arguments: parsed.arguments,
        declared: Declared::Variant(Class::Read, Box::new(parsed.declaration)),
        other: Vec::new(),
    }
}

fn parameters(tool: usize) -> Raw {
    raw(json!({
        "name": format!("server-50:tool_{tool}"),
        "args": {"path": "/some/where", "mode": "a"},
        "intent": {"operation_type": "read", "data_sensitivity": "internal", "reason": "to see"},
    })
    .to_string())
}

fn bench(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let gateway = Gateway::new(GateSettings::default(), Store::nowhere());
    for number in 0..SERVERS {
        let idle = Arc::new(Idle { result: text_result("ok") });
        runtime.block_on(gateway.add_provider(&format!("server-{number}"), idle));
    }
    let caller = Arc::new(Caller::agent("agent"));
    let ctx = CallContext::within(std::time::Duration::from_secs(60));
    let mut run = |name: &str, tool: usize, expected: fn(&CallOutcome) -> bool| {
        let parameters = parameters(tool);
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                let call = call(&caller, black_box(&parameters));
                let outcome = runtime.block_on(gateway.call(call, &ctx));
                assert!(expected(&outcome));
                outcome
            });
        });
    };
    run("call/allowed", 0, |outcome| matches!(outcome, CallOutcome::Replied { .. }));
    run("call/refused", 1, |outcome| matches!(outcome, CallOutcome::Refused(_)));
}

criterion_group!(benches, bench);
criterion_main!(benches);
