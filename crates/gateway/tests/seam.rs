//! The seam from a provider's view: a call's context reaches the provider, and its messages reach
//! the client that made the call. Also the resulting records in the store.

use std::sync::Arc;
use std::time::Duration;

use domain::Caller;
use domain::tool::Class;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::front::{View, stdio};
use gateway::plan::Plan;
use gateway::spec::ServerSpec;
use gateway::{GateSettings, Gateway};
use jiff::Timestamp;
use mcp::message::{Raw, raw, to_raw};
use mcp::peer::{Ask, RequestError};
use mcp::server::{Server, text_result};
use provider::{Call, CallContext, ProviderError, Reply, ToolProvider};
use serde_json::{Value, json};
use store::read::{Page, Record, RecordFilter};
use store::state::TokenRecord;
use store::{RecordStatus, Store};
use tempfile::TempDir;
use testkit::client::{Answers, Client, PATIENCE, text};
use testkit::wait::eventually;
use tokio_util::sync::CancellationToken;

/// A provider whose tools show what the seam gives them.
struct Probe;

impl ToolProvider for Probe {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>> {
        let names = ["ask", "progress", "cancel", "deadline", "trace"];
        let tools = names.map(|name| to_raw(&json!({"name": name}))).to_vec();
        async { Ok(tools) }.boxed()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        async move {
            let words = match call.tool.tool.as_str() {
                "ask" => ask(ctx).await,
                "progress" => progress(ctx),
                "cancel" => {
                    ctx.cancel.cancelled().await;
                    return Err(ProviderError::Cancelled { sent: true });
                }
                "deadline" => {
                    tokio::time::sleep_until(ctx.deadline).await;
                    return Err(ProviderError::Timeout { sent: true });
                }
                "trace" => format!("{:?}", ctx.trace),
                other => panic!("no tool {other}"),
            };
            Ok(Reply::from(text_result(&words)))
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

async fn ask(ctx: &CallContext) -> String {
    let Some(client) = &ctx.ask_client else {
        return "nobody to ask".to_owned();
    };
    if client.capability("sampling").is_none() {
        return "cannot sample".to_owned();
    }
    let params = raw(r#"{"messages":[],"maxTokens":1}"#.to_owned());
    match client.ask("sampling/createMessage", Some(params), ctx).await {
        Ok(answer) => answer.get().to_owned(),
        Err(error) => error.to_string(),
    }
}

fn progress(ctx: &CallContext) -> String {
    let Some(sink) = &ctx.progress else {
        return "nobody listens".to_owned();
    };
    for step in 1..=3 {
        sink(raw(json!({"progressToken": "ours", "progress": step}).to_string()));
    }
    "told".to_owned()
}

/// A gate with its own ledger.
struct Gate {
    gateway: Gateway,
    _home: TempDir,
}

impl std::ops::Deref for Gate {
    type Target = Gateway;

    fn deref(&self) -> &Gateway {
        &self.gateway
    }
}

impl Gate {
    /// Returns the matching records, newest first.
    async fn records(&self, filter: RecordFilter) -> Vec<Record> {
        self.store().settled().await;
        let found = self.store().read().activity(&filter, &Page::first(10));
        found.expect("the ledger can be read").records
    }

    async fn last(&self) -> Record {
        self.records(RecordFilter::default()).await.remove(0)
    }
}

async fn gate(settings: GateSettings) -> Gate {
    let home = tempfile::tempdir().expect("a temporary folder");
    let rules = domain::config::Config::default().ledger;
    let store = Store::open(home.path(), &rules).expect("a ledger");
    let gateway = Gateway::new(settings, store);
    gateway.add_provider("probe", Arc::new(Probe)).await;
    Gate { gateway, _home: home }
}

/// Connects a client over in-memory streams.
async fn client(gateway: &Gateway, capabilities: Value, answers: Answers) -> Client {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let gateway = gateway.clone();
    tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(theirs);
        let caller = Arc::new(Caller::agent("agent"));
        let service = View::Discovery.open(&gateway, &caller);
        stdio::serve(service, reader, writer, CancellationToken::new()).await;
    });
    Client::greet(capabilities, answers, |service| {
        let (reader, writer) = tokio::io::split(ours);
        mcp::lines::connect(reader, writer, service)
    })
    .await
}

fn write(tool: &str) -> Value {
    json!({"name": format!("probe:{tool}"), "intent": {"operation_type": "write"}})
}

fn request(tool: &str, cancel: &CancellationToken) -> Ask {
    let params = json!({"name": "call_tool_write", "arguments": write(tool)});
    Ask { cancel: cancel.clone(), ..Ask::new("tools/call", Some(to_raw(&params)), PATIENCE) }
}

#[tokio::test]
async fn a_provider_asks_the_client_that_made_the_call() {
    let gate = gate(GateSettings::default()).await;
    let answers = vec![("sampling/createMessage", json!({"role": "assistant", "model": "m"}))];
    let able = client(&gate, json!({"sampling": {}}), answers).await;
    let unable = client(&gate, json!({}), vec![]).await;
    let result = able.call("call_tool_write", write("ask")).await;
    assert_eq!(text(&result), r#"{"role":"assistant","model":"m"}"#);
    let result = unable.call("call_tool_write", write("ask")).await;
    assert_eq!(text(&result), "cannot sample");
}

#[tokio::test]
async fn progress_reaches_only_a_client_that_wants_it() {
    let gate = gate(GateSettings::default()).await;
    let client = client(&gate, json!({}), vec![]).await;
    let (sender, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let mut ask = request("progress", &CancellationToken::new());
    ask.progress = Some(Arc::new(move |params| drop(sender.send(params.get().to_owned()))));
    client.peer.request(ask).await.unwrap();
    for step in 1..=3 {
        let params: Value = serde_json::from_str(&heard.recv().await.unwrap()).unwrap();
        assert_eq!(params["progress"], step);
        assert_ne!(params["progressToken"], "ours");
    }
    let result = client.call("call_tool_write", write("progress")).await;
    assert_eq!(text(&result), "nobody listens");
}

#[tokio::test]
async fn cancelling_reaches_the_provider_and_the_record() {
    let gate = gate(GateSettings::default()).await;
    let client = client(&gate, json!({}), vec![]).await;
    let cancel = CancellationToken::new();
    let running = client.peer.request(request("cancel", &cancel));
    tokio::pin!(running);
    // The response to a later request shows that the first has arrived.
    tokio::select! {
        answer = &mut running => panic!("{answer:?}"),
        _ = client.request("ping", json!({})) => {}
    }
    cancel.cancel();
    assert!(matches!(running.await, Err(RequestError::Cancelled)));
    let filter = RecordFilter { status: Some(RecordStatus::Unknown), ..RecordFilter::default() };
    let found = async {
        loop {
            match gate.records(filter.clone()).await.pop() {
                Some(record) => return record,
                None => tokio::task::yield_now().await,
            }
        }
    };
    let record = tokio::time::timeout(PATIENCE, found).await.unwrap();
    assert_eq!(record.error_code.as_deref(), Some("CANCELLED"));
    let words = record.error_message.unwrap();
    assert!(words.contains("after it was sent; the call may have taken effect"), "{words}");
}

#[tokio::test]
async fn the_deadline_reaches_the_provider() {
    let mut settings = GateSettings::default();
    settings.call_timeout = Duration::from_millis(50);
    let gate = gate(settings).await;
    let client = client(&gate, json!({}), vec![]).await;
    let result = client.call("call_tool_write", write("deadline")).await;
    let error = &result["structuredContent"]["error"];
    assert_eq!((&error["code"], &error["details"]["sent"]), (&json!("TIMEOUT"), &json!(true)));
    assert_eq!(gate.last().await.status, RecordStatus::Unknown);
}

#[tokio::test]
async fn the_callers_trace_context_reaches_the_provider() {
    let gate = gate(GateSettings::default()).await;
    let client = client(&gate, json!({}), vec![]).await;
    let params = json!({"name": "call_tool_write", "arguments": write("trace"),
                        "_meta": {"traceparent": "00-a-b-01", "tracestate": "x=y"}});
    let result = client.request("tools/call", params).await.unwrap();
    assert!(text(&result).contains("00-a-b-01") && text(&result).contains("x=y"), "{result}");
}

#[tokio::test]
async fn every_outcome_leaves_a_record_before_its_answer() {
    let gate = gate(GateSettings::default()).await;
    let make = || {
        let mut server = Server::new("up", "1");
        let definition = json!({"name": "read", "annotations": {"readOnlyHint": true}});
        server.register_tool(&definition, |_| async { Ok(text_result("done")) }.boxed());
        let odd = json!({"name": "odd", "inputSchema": {"type": "nonsense"}});
        server.register_tool(&odd, |_| async { Ok(text_result("done")) }.boxed());
        server
    };
    gate.add_upstream(ServerSpec::embedded("up", make));
    let client = client(&gate, json!({}), vec![]).await;

    let intent = json!({"operation_type": "write", "data_sensitivity": "private", "reason": "why"});
    client.call("call_tool_write", json!({"name": "up:read", "intent": intent})).await;
    let record = gate.last().await;
    assert_eq!((record.status, record.error_code), (RecordStatus::Success, None));
    assert_eq!(record.effective_class, Some(Class::Write));
    assert_eq!(record.agent.client, "testkit");
    assert!(record.warnings[0].contains("is marked read-only"), "recorded, not returned");
    let stated = record.intent.unwrap();
    assert_eq!(stated.operation_type.as_deref(), Some("write"));
    assert_eq!(stated.data_sensitivity.as_deref(), Some("private"));
    assert_eq!(stated.reason.as_deref(), Some("why"));

    client.call("call_tool_write", json!({"name": "up:odd", "intent": intent})).await;
    let record = gate.last().await;
    assert_eq!(
        record.status,
        RecordStatus::Success,
        "a schema that will not compile stops no call"
    );
    assert!(record.warnings[0].contains("does not compile"), "{record:?}");

    client.call("call_tool_read", json!({"name": "up:read", "intent": intent})).await;
    let record = gate.last().await;
    assert_eq!(record.status, RecordStatus::Blocked);
    assert_eq!(record.error_code.as_deref(), Some("INTENT_MISMATCH"));
    assert_eq!(record.tool_variant.as_deref(), Some("call_tool_read"));
    assert_eq!(record.effective_class, Some(Class::Write), "stricter than the tool's hints");
    let stated = record.intent.unwrap();
    assert_eq!(stated.operation_type.as_deref(), Some("write"), "as the agent said");
    assert_eq!(stated.reason.as_deref(), Some("why"));

    client.call("call_tool_read", json!({"name": "no:thing", "intent": intent})).await;
    let record = gate.last().await;
    assert_eq!(record.error_code.as_deref(), Some("TOOL_NOT_FOUND"));
    assert_eq!(record.effective_class, None, "neither hints nor a valid declaration");

    let running = client.call("call_tool_write", write("deadline"));
    tokio::pin!(running);
    tokio::select! {
        answer = &mut running => panic!("{answer}"),
        _ = client.request("ping", json!({})) => {}
    }
    let pending = RecordFilter { status: Some(RecordStatus::Pending), ..RecordFilter::default() };
    assert_eq!(gate.records(pending).await.len(), 1, "the start is recorded before the end");
}

#[tokio::test]
async fn a_draining_gate_takes_no_new_calls() {
    let gate = gate(GateSettings::default()).await;
    let client = client(&gate, json!({}), vec![]).await;
    gate.drain().await;
    let result = client.call("call_tool_write", write("progress")).await;
    assert_eq!(result["structuredContent"]["error"]["code"], "SHUTTING_DOWN");
}

#[tokio::test]
async fn a_decision_made_while_the_gate_starts_is_noticed() {
    let gate = gate(GateSettings::default()).await;
    gate.start(Plan::default()).unwrap();
    let token = TokenRecord {
        name: "new".to_owned(),
        hash: access::tokens::digest("secret"),
        scope: json!({"operations": ["read"]}).to_string(),
        created_at: Timestamp::now(),
        expires_at: None,
        revoked_at: None,
    };
    assert!(gate.store().state().create_token(&token).unwrap());
    tokio::spawn(gate.gateway.clone().watch_decisions());
    eventually(|| async { gate.tokens().caller("secret") }).await;
}
