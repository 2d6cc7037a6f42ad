//! Spans of the real program, as a collector gets them: their hierarchy, their content and what
//! they never contain; and a collector that is gone or slow, which delays no call.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use mcp::http::server::{SessionOwner, Sessions};
use mcp::peer::Ask;
use mcp::trace::Trace;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::{Client, PATIENCE, text};
use testkit::gate::{Gate, http_client};
use testkit::otlp::{AUTHORITY, Collector, ExportedSpan};
use testkit::program::program;
use testkit::script::Script;
use testkit::upstream::scripted;
use testkit::wait::eventually;
use tokio::process::Command;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Text that must be in no span.
const SECRET: &str = "argument-that-nobody-else-may-see";

fn traceparent() -> String {
    format!("00-{TRACE}-{PARENT}-01")
}

fn tools() -> Value {
    json!([
        {"name": "echo", "annotations": {"readOnlyHint": true}},
        {"name": "error", "x-do": "error", "annotations": {"readOnlyHint": true}},
        {"name": "is_error", "x-do": "is_error", "annotations": {"readOnlyHint": true}},
    ])
}

/// Starts a gate with one server and these variables.
async fn traced(config: Value, variables: &[(&str, &str)]) -> Gate {
    traced_with(config, variables, &[]).await
}

async fn traced_with(mut config: Value, variables: &[(&str, &str)], args: &[&str]) -> Gate {
    let dir = tempfile::tempdir().unwrap();
    config["mcpServers"]["s"] = scripted(dir.path(), "s", &tools());
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    Gate::open_with(dir, |command| {
        command.args(args).env("OTEL_BSP_SCHEDULE_DELAY", "50").envs(variables.iter().copied())
    })
    .await
}

/// Starts a gate that sends its spans to this collector over gRPC.
async fn traced_by(collector: &Collector) -> Gate {
    traced(json!({}), &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)]).await
}

fn read(tool: &str) -> Value {
    json!({"name": format!("s:{tool}"), "args": {"note": SECRET},
           "intent": {"operation_type": "read", "reason": SECRET}})
}

/// Returns the only span of this name.
fn span<'a>(spans: &'a [ExportedSpan], name: &str) -> &'a ExportedSpan {
    let mut named = spans.iter().filter(|span| span.name == name);
    let found = named.next().unwrap_or_else(|| panic!("no {name} in {spans:#?}"));
    assert!(named.next().is_none(), "two of {name} in {spans:#?}");
    found
}

/// Returns request, call and upstream call, each under the one before it.
fn tree<'a>(spans: &'a [ExportedSpan], tool: &str) -> [&'a ExportedSpan; 3] {
    let call = span(spans, &format!("tool.call.{tool}"));
    let of = |name: &str, fits: &dyn Fn(&ExportedSpan) -> bool| {
        let found = spans.iter().find(|span| span.name == name && fits(span));
        found.unwrap_or_else(|| panic!("no {name} for {tool} in {spans:#?}"))
    };
    let request = of("mcp.request", &|span| span.span_id == call.parent_id);
    let upstream = of("upstream.call", &|span| span.parent_id == call.span_id);
    assert_eq!([&*request.trace_id, &*upstream.trace_id], [&*call.trace_id, &*call.trace_id]);
    [request, call, upstream]
}

fn without_durations(span: &ExportedSpan) -> Value {
    let mut attributes = span.attributes.clone();
    let members = attributes.as_object_mut().unwrap();
    for name in ["tool.duration_ms", "countersign.call.id", "mcp.session.id", "jsonrpc.request.id"]
    {
        members.remove(name);
    }
    attributes
}

async fn the_tree_of_a_call(collector: &Collector, mut gate: Gate) {
    let client = gate.http().await;
    client.call("call_tool_read", read("echo")).await;
    let spans = collector.spans(3).await;
    let [request, call, upstream] = tree(&spans, "echo");
    assert_eq!(request.parent_id, "", "nobody gave a parent");
    let kinds = [request.kind, call.kind, upstream.kind].map(|kind| kind.as_str_name());
    assert_eq!(kinds, ["SPAN_KIND_SERVER", "SPAN_KIND_INTERNAL", "SPAN_KIND_CLIENT"]);
    let expected = json!({"mcp.method.name": "tools/call", "countersign.surface": "discovery"});
    assert_eq!(without_durations(request), expected);
    assert!(request.attributes["mcp.session.id"].is_string());
    assert!(request.attributes["jsonrpc.request.id"].is_string());
    let expected = json!({"tool.name": "echo", "tool.source": "mcp:s",
        "intent.operation_type": "read", "tool.outcome": "success"});
    assert_eq!(without_durations(call), expected);
    assert!(call.attributes["tool.duration_ms"].as_f64().unwrap() > 0.0);
    let expected = json!({"upstream.server": "s", "upstream.transport": "stdio"});
    assert_eq!(without_durations(upstream), expected);
    assert!(spans.iter().all(|span| span.error.is_none()), "{spans:#?}");
    assert_eq!(call.resource["service.name"], "countersign");
    assert_eq!(call.resource["service.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(gate.end().await, Some(0));
    assert!(!collector.text().contains(SECRET), "{}", collector.text());
}

#[tokio::test]
async fn a_call_is_a_tree_of_spans_over_grpc() {
    let collector = Collector::grpc().await;
    let config = json!({"telemetry": {"exporter": collector.url}});
    let gate = traced(config, &[]).await;
    the_tree_of_a_call(&collector, gate).await;
}

#[tokio::test]
async fn a_call_is_a_tree_of_spans_over_http() {
    let collector = Collector::http().await;
    let config = json!({"telemetry": {"exporter": collector.url, "protocol": "http"}});
    let gate = traced(config, &[]).await;
    the_tree_of_a_call(&collector, gate).await;
}

/// Starts a collector behind TLS for each protocol.
async fn behind_tls() -> [(Collector, &'static str); 2] {
    [
        (Collector::grpc().await.behind_tls().await, "grpc"),
        (Collector::http().await.behind_tls().await, "http"),
    ]
}

#[tokio::test]
async fn a_tls_collector_is_trusted_through_the_configured_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.pem");
    std::fs::write(&file, AUTHORITY).unwrap();
    let variables = [("OTEL_EXPORTER_OTLP_CERTIFICATE", file.to_str().unwrap())];
    for (collector, protocol) in behind_tls().await {
        let config = json!({"telemetry": {"exporter": collector.url, "protocol": protocol}});
        let gate = traced(config, &variables).await;
        // A second delivery over the existing connection.
        let client = gate.http().await;
        client.call("call_tool_read", read("is_error")).await;
        assert_eq!(collector.spans(3).await.len(), 3, "{protocol}");
        client.call("call_tool_read", read("is_error")).await;
        assert_eq!(collector.spans(6).await.len(), 6, "{protocol}");
        assert!(!gate.log().contains("WARN"), "{}", gate.log());
    }
}

#[tokio::test]
async fn an_untrusted_collector_gets_no_spans_and_delays_nothing() {
    for (collector, protocol) in behind_tls().await {
        let config = json!({"telemetry": {"exporter": collector.url, "protocol": protocol}});
        let mut gate = traced(config, &[WAITS_FOREVER]).await;
        let client = gate.http().await;
        for _ in 0..20 {
            let answer = client.call("call_tool_read", read("echo")).await;
            assert_ne!(answer["isError"], true, "{answer}");
        }
        let line = gate.log_line("cannot export spans to 127.0.0.1:").await;
        assert!(line.contains("certificate"), "{protocol}: {line}");
        client.call("call_tool_read", read("echo")).await;
        assert_eq!(gate.end().await, Some(0));
        let log = gate.log();
        assert_eq!(log.matches("cannot export spans").count(), 1, "{protocol}: {log}");
        assert_eq!(collector.headers().len(), 0, "{protocol}");
    }
}

#[tokio::test]
async fn failed_spans_carry_the_error_code_and_no_message() {
    let collector = Collector::grpc().await;
    let mut gate = traced_by(&collector).await;
    let client = gate.http().await;
    for tool in ["error", "is_error"] {
        client.call("call_tool_read", read(tool)).await;
    }
    // The keys do not match each other; there is no such tool; the parameters make no sense.
    client.call("call_tool_write", read("echo")).await;
    client.call("call_tool_read", read("nothing")).await;
    client.call("call_tool_read", json!({"name": "s:echo", "args": SECRET})).await;
    gate.http_at("/mcp/s/s")
        .await
        .request("tools/call", json!({"name": "error"}))
        .await
        .unwrap_err();
    assert_eq!(gate.end().await, Some(0));
    let spans = collector.so_far();

    let error = |span: &ExportedSpan| span.error.clone().unwrap_or_default();
    let named = |name: &'static str| spans.iter().filter(move |span| span.name == name);
    let [plain, of_error] = named("tool.call.error").collect::<Vec<_>>()[..] else {
        panic!("{spans:#?}")
    };
    for call in [plain, of_error] {
        assert_eq!(error(call), "UPSTREAM_ERROR");
        assert_eq!(call.attributes["error.type"], "UPSTREAM_ERROR");
        assert_eq!(call.attributes["tool.outcome"], "error");
        let upstream = spans.iter().find(|span| span.parent_id == call.span_id).unwrap();
        assert_eq!(error(upstream), "-32042");
        assert_eq!(upstream.attributes["rpc.jsonrpc.error_code"], -32042);
    }
    let [_, call, upstream] = tree(&spans, "is_error");
    assert_eq!((error(call), error(upstream)), ("tool_error".to_owned(), String::new()));
    assert_eq!(call.attributes["tool.outcome"], "error");
    for (tool, code, source) in
        [("echo", "INTENT_MISMATCH", json!("mcp:s")), ("nothing", "TOOL_NOT_FOUND", Value::Null)]
    {
        let call = span(&spans, &format!("tool.call.{tool}"));
        assert_eq!(error(call), code);
        assert_eq!(call.attributes["tool.outcome"], "blocked");
        assert_eq!(call.attributes["tool.source"], source);
        let asked = spans.iter().any(|span| span.parent_id == call.span_id);
        assert!(!asked, "a refused call reaches no server");
    }
    let requests: Vec<String> = named("mcp.request").map(error).collect();
    assert_eq!(requests.iter().filter(|code| *code == "INVALID_ARGUMENTS").count(), 1);
    assert_eq!(requests.iter().filter(|code| *code == "-32042").count(), 1, "{requests:?}");
    assert!(!collector.text().contains(SECRET), "{}", collector.text());
}

/// Makes a call with trace context in its headers, in `_meta`, or in both.
fn ask(header: Option<&str>, meta: Option<&str>) -> Ask {
    let mut params = json!({"name": "echo", "arguments": {"note": SECRET}});
    if let Some(parent) = meta {
        params["_meta"] = json!({"traceparent": parent, "tracestate": "their=meta", "kept": 1});
    }
    let trace = header.map(|parent| {
        Box::new(Trace { parent: parent.to_owned(), state: Some("their=header".to_owned()) })
    });
    let params = mcp::message::to_raw(&params);
    Ask { trace, ..Ask::new("tools/call", Some(params), PATIENCE) }
}

#[tokio::test]
async fn the_callers_span_is_the_parent() {
    let other = format!("00-{}-{PARENT}-01", "5".repeat(32));
    for (header, meta, state) in [
        (Some(traceparent()), None, "their=header"),
        (None, Some(traceparent()), "their=meta"),
        // The request's own context takes precedence over the transport's.
        (Some(other.clone()), Some(traceparent()), "their=meta"),
        (Some(traceparent()), Some("nonsense".to_owned()), "their=header"),
    ] {
        let collector = Collector::grpc().await;
        let gate = traced_by(&collector).await;
        let client = gate.http_at("/mcp/s/s").await;
        client.peer.request(ask(header.as_deref(), meta.as_deref())).await.unwrap();
        let spans = collector.spans(3).await;
        let [request, call, upstream] = tree(&spans, "echo");
        assert_eq!((&*request.trace_id, &*request.parent_id), (TRACE, PARENT), "{header:?}");
        for span in [request, call, upstream] {
            assert_eq!(span.trace_state, state, "{header:?} {meta:?}");
        }
        assert_eq!(call.attributes["intent.operation_type"], Value::Null, "nothing was declared");
    }
}

#[tokio::test]
async fn an_invalid_trace_context_is_ignored() {
    let collector = Collector::grpc().await;
    let gate = traced_by(&collector).await;
    let client = gate.http_at("/mcp/s/s").await;
    let zeros = format!("00-{}-{PARENT}-01", "0".repeat(32));
    client.peer.request(ask(Some("nonsense"), Some(&zeros))).await.unwrap();
    let spans = collector.spans(3).await;
    let [request, ..] = tree(&spans, "echo");
    assert_eq!((request.parent_id.as_str(), request.trace_state.as_str()), ("", ""));
}

/// Starts an HTTP server that keeps the headers of requests.
async fn http_upstream() -> (String, Arc<Mutex<Vec<BTreeMap<String, String>>>>) {
    let seen = Arc::<Mutex<Vec<BTreeMap<String, String>>>>::default();
    let (sessions, noting) = (Sessions::new(), seen.clone());
    let handler = any(move |request: Request| {
        let (sessions, noting) = (sessions.clone(), noting.clone());
        async move {
            let text = |value: &reqwest::header::HeaderValue| value.to_str().unwrap().to_owned();
            let headers = request.headers().iter().map(|(k, v)| (k.to_string(), text(v))).collect();
            noting.lock().unwrap().push(headers);
            let anyone = SessionOwner { holder: String::new(), view: String::new() };
            sessions.handle(request, &anyone, || Arc::new(Script::new(tools()))).await
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", handler);
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, seen)
}

/// Returns the params that a server got, from its response.
fn echoed(answer: &str) -> Value {
    let answer: Value = serde_json::from_str(answer).unwrap();
    serde_json::from_str(text(&answer)).unwrap()
}

#[tokio::test]
async fn smoke_servers_receive_the_calling_span_as_their_parent() {
    let (url, seen) = http_upstream().await;
    let collector = Collector::grpc().await;
    let config = json!({"mcpServers": {"h": {"url": url}},
        "telemetry": {"exporter": collector.url}});
    let gate = traced(config, &[]).await;
    for (server, is_http) in [("s", false), ("h", true)] {
        let client = gate.http_at(&format!("/mcp/s/{server}")).await;
        let before = collector.so_far().len();
        let answer = client.peer.request(ask(None, Some(&traceparent()))).await.unwrap();
        let spans = collector.spans(before + 3).await;
        let [.., upstream] = tree(&spans[before..], "echo");
        let ours = format!("00-{TRACE}-{}-01", upstream.span_id);
        let expected = json!({"traceparent": ours, "tracestate": "their=meta", "kept": 1});
        assert_eq!(echoed(answer.get())["_meta"], expected, "{server}");
        if is_http {
            let seen = seen.lock().unwrap();
            let told = seen.iter().find(|headers| headers.contains_key("traceparent")).unwrap();
            assert_eq!((&*told["traceparent"], &*told["tracestate"]), (&*ours, "their=meta"));
        }
    }
}

#[tokio::test]
async fn without_a_collector_the_callers_context_is_forwarded() {
    let (url, seen) = http_upstream().await;
    let gate = traced(json!({"mcpServers": {"h": {"url": url}}}), &[]).await;
    for server in ["s", "h"] {
        let client = gate.http_at(&format!("/mcp/s/{server}")).await;
        for (ask, state) in [
            (ask(None, Some(&traceparent())), "their=meta"),
            (ask(Some(&traceparent()), None), "their=header"),
        ] {
            let answer = client.peer.request(ask).await.unwrap();
            let meta = &echoed(answer.get())["_meta"];
            assert_eq!(meta["traceparent"], traceparent(), "{server}");
            assert_eq!(meta["tracestate"], state, "{server}");
        }
        let answer = client.peer.request(ask(Some("nonsense"), None)).await.unwrap();
        assert_eq!(echoed(answer.get())["_meta"], Value::Null, "{server}");
    }
    let seen = seen.lock().unwrap();
    let told: Vec<&String> = seen.iter().filter_map(|headers| headers.get("traceparent")).collect();
    assert_eq!(told, [&traceparent(), &traceparent()]);
}

#[tokio::test]
async fn calls_over_rest_cli_stdio_and_wrap_have_spans() {
    let collector = Collector::grpc().await;
    let endpoint = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str())];
    let gate = traced(json!({}), &endpoint).await;
    let body = json!({"tool_variant": "call_tool_read", "name": "s:echo",
        "intent": {"operation_type": "read"}});
    let request = http_client()
        .request(Method::POST, format!("http://{}/api/v1/tools/call", gate.address))
        .bearer_auth(gate.secret("api-key"))
        .header("traceparent", traceparent())
        .header("content-type", "application/json")
        .body(body.to_string());
    assert!(request.send().await.unwrap().status().is_success());
    let spans = collector.spans(3).await;
    let [request, ..] = tree(&spans, "echo");
    assert_eq!((&*request.trace_id, &*request.parent_id), (TRACE, PARENT));
    assert_eq!(request.attributes["countersign.surface"], "rest");

    // Each of these is a gate itself, and delivers before it ends.
    let server = scripted(gate.dir.path(), "other", &tools());
    let wrap = [server["command"].as_str().unwrap(), server["args"][0].as_str().unwrap()];
    let wrap = [&["wrap", "--name", "s", "--"], &wrap[..]].concat();
    let two_keys = json!({"name": "call_tool_read", "arguments": read("echo")});
    for (surface, args, params, count) in [
        ("cli", &["call", "tool-read", "--tool-name", "s:echo"][..], None, 6),
        ("discovery", &["mcp"], Some(two_keys), 9),
        ("wrap", &wrap, Some(json!({"name": "echo"})), 12),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let config = json!({"mcpServers": {"s": server}});
        std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
        let mut command = program(dir.path());
        command.envs(endpoint).args(["--config", "config.json"]).args(args);
        match params {
            None => {
                let ran = command.stdin(Stdio::null()).output().await.unwrap();
                assert!(ran.status.success(), "{ran:?}");
            }
            Some(params) => {
                let told = call_on_pipes(command, params).await;
                assert!(told["_meta"]["traceparent"].is_string(), "{surface}: {told}");
            }
        }
        let spans = collector.spans(count).await;
        let [request, ..] = tree(&spans[count - 3..], "echo");
        assert_eq!(request.attributes["countersign.surface"], surface);
    }
}

/// Makes a call on a child's stdin and stdout, and lets it exit. Returns the params that its server
/// got.
async fn call_on_pipes(mut command: Command, params: Value) -> Value {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (stdout, stdin) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let client =
        Client::greet(json!({}), vec![], |service| mcp::lines::connect(stdout, stdin, service))
            .await;
    let answer = client.request("tools/call", params).await.unwrap();
    client.peer.close("done");
    drop(client);
    tokio::time::timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
    serde_json::from_str(text(&answer)).unwrap()
}

#[tokio::test]
async fn built_in_tools_have_no_upstream_span() {
    let collector = Collector::grpc().await;
    let root = tempfile::tempdir().unwrap();
    let config = json!({"workspace": {"enabled": true, "root": root.path()},
        "telemetry": {"exporter": collector.url, "service_name": "mine"}});
    let gate = traced(config, &[("OTEL_SERVICE_NAME", "theirs")]).await;
    let client = gate.http().await;
    let arguments = json!({"name": "workspace:Glob", "args": {"pattern": "*"},
        "intent": {"operation_type": "read"}});
    let answer = client.call("call_tool_read", arguments).await;
    assert_ne!(answer["isError"], true, "{answer}");
    let spans = collector.spans(2).await;
    assert_eq!(span(&spans, "tool.call.Glob").attributes["tool.source"], "builtin");
    assert_eq!(spans.len(), 2, "{spans:#?}");
    assert_eq!(spans[0].resource["service.name"], "mine", "the config is asked first");
}

#[tokio::test]
async fn the_exporter_follows_no_redirect() {
    let collector = Collector::http().await;
    let there = format!("{}/v1/traces", collector.url);
    let elsewhere = move || {
        let there = there.clone();
        async move { axum::response::Redirect::temporary(&there) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/traces", any(elsewhere));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = json!({"telemetry": {"exporter": url, "protocol": "http"}});
    let mut gate = traced(config, &[]).await;
    gate.http().await.call("call_tool_read", read("echo")).await;
    let line = gate.log_line("cannot export spans").await;
    assert!(line.contains("307"), "{line}");
    assert_eq!(gate.end().await, Some(0));
    assert_eq!(collector.headers().len(), 0);
}

/// The gate's environment as its children see it: a server, one whose entry passes the key on, and
/// a command.
#[tokio::test]
async fn children_do_not_inherit_the_collectors_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let noting = "env > \"$0.part\" && mv \"$0.part\" \"$0\"";
    let plain =
        json!({"command": "sh", "args": ["-c", noting, file("plain")], "inherit_env": true});
    let mut handed = json!({"command": "sh", "args": ["-c", noting, file("handed")]});
    handed["env"] = json!({"OTEL_EXPORTER_OTLP_HEADERS": "${env:OTEL_EXPORTER_OTLP_HEADERS}"});
    let config = json!({"mcpServers": {"plain": plain, "handed": handed},
        "workspace": {"enabled": true, "root": dir.path(), "write": true, "shell": true}});
    let variables = [
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=of-the-collector"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-key=of-the-collector"),
        ("OTEL_SERVICE_NAME", "gate-7"),
    ];
    let gate = traced(config, &variables).await;
    let noted =
        async |name: &str| eventually(|| async { std::fs::read_to_string(file(name)).ok() }).await;
    let client = gate.http().await;
    let arguments = json!({"name": "workspace:Bash", "args": {"command": "env"},
        "intent": {"operation_type": "destructive"}});
    let answer = client.call("call_tool_destructive", arguments).await;
    assert_ne!(answer["isError"], true, "{answer}");
    for seen in [noted("plain").await, answer.to_string()] {
        assert!(seen.contains("OTEL_SERVICE_NAME=gate-7"), "the rest is inherited: {seen}");
        assert!(!seen.contains("of-the-collector"), "{seen}");
    }
    let seen = noted("handed").await;
    assert_eq!(seen.matches("of-the-collector").count(), 1, "{seen}");
}

#[tokio::test]
async fn standard_variables_are_understood() {
    let collector = Collector::http().await;
    let traces = format!("{}/v1/traces", collector.url);
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", traces.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue,authorization=Bearer%20t"),
        ("OTEL_SERVICE_NAME", "gate-7"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=other"),
    ];
    let gate = traced(json!({}), &variables).await;
    gate.http().await.call("call_tool_read", read("echo")).await;
    let spans = collector.spans(3).await;
    assert_eq!(spans[0].resource["service.name"], "gate-7");
    assert_eq!(spans[0].resource["deployment.environment.name"], "test");
    let headers = collector.headers();
    assert_eq!((&*headers[0]["x-team"], &*headers[0]["authorization"]), ("blue", "Bearer t"));
}

#[tokio::test]
async fn unsampled_and_disabled_spans_are_not_sent() {
    for variable in [
        ("OTEL_TRACES_SAMPLER", "always_off"),
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ] {
        let collector = Collector::grpc().await;
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str());
        let mut gate = traced(json!({}), &[endpoint, variable]).await;
        let answer = gate.http().await.call("call_tool_read", read("echo")).await;
        let params: Value = serde_json::from_str(text(&answer)).unwrap();
        let told = params["_meta"]["traceparent"].as_str().map(|parent| parent.ends_with("-00"));
        let expected = (variable.0 == "OTEL_TRACES_SAMPLER").then_some(true);
        assert_eq!(told, expected, "whoever comes next is told that this was not sampled");
        assert_eq!(gate.end().await, Some(0));
        assert_eq!(collector.headers().len(), 0, "{variable:?}");
    }
}

#[tokio::test]
async fn an_unsampled_parent_suppresses_spans() {
    let collector = Collector::grpc().await;
    let mut gate = traced_by(&collector).await;
    let client = gate.http_at("/mcp/s/s").await;
    let unsampled = format!("00-{TRACE}-{PARENT}-00");
    client.peer.request(ask(None, Some(&unsampled))).await.unwrap();
    client.peer.request(ask(None, Some(&traceparent()))).await.unwrap();
    gate.end().await;
    assert_eq!(collector.so_far().len(), 3, "those of the second call");
}

/// Room for a few spans, so that it is full at once.
const LITTLE_ROOM: (&str, &str) = ("OTEL_BSP_MAX_QUEUE_SIZE", "8");

/// Makes an unanswered delivery take longer than any test waits.
const WAITS_FOREVER: (&str, &str) = ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000");

/// Returns collectors that take no span, each with both protocols.
fn useless(silent: &Collector, gone: &str) -> Vec<(String, &'static str)> {
    let behind_tls = silent.url.replacen("http", "https", 1);
    let urls = [gone.to_owned(), silent.url.clone(), behind_tls];
    urls.into_iter().flat_map(|url| [(url.clone(), "grpc"), (url, "http")]).collect()
}

#[tokio::test]
async fn no_call_waits_for_an_unreachable_or_silent_collector() {
    let (silent, gone) = (Collector::silent().await, Collector::gone().await);
    for (url, protocol) in useless(&silent, &gone) {
        let config = json!({"telemetry": {"exporter": url, "protocol": protocol}});
        let gate = traced(config, &[LITTLE_ROOM, WAITS_FOREVER]).await;
        let client = gate.http().await;
        for _ in 0..50 {
            let answer = client.call("call_tool_read", read("echo")).await;
            assert_ne!(answer["isError"], true, "{url} {protocol}: {answer}");
        }
        assert_eq!(gate.stop().await, Some(0), "{url} {protocol}: nor does the end wait for it");
    }
}

#[tokio::test]
async fn an_unreachable_or_silent_collector_is_logged_once() {
    let (silent, gone) = (Collector::silent().await, Collector::gone().await);
    for (url, protocol) in useless(&silent, &gone) {
        let config = json!({"telemetry": {"exporter": url, "protocol": protocol}});
        let mut gate = traced(config, &[LITTLE_ROOM, ("OTEL_EXPORTER_OTLP_TIMEOUT", "500")]).await;
        let client = gate.http().await;
        for _ in 0..10 {
            client.call("call_tool_read", read("echo")).await;
        }
        gate.log_line("cannot export spans to 127.0.0.1:").await;
        client.call("call_tool_read", read("echo")).await;
        assert_eq!(gate.end().await, Some(0));
        let log = gate.log();
        for words in ["cannot export spans", "dropping spans"] {
            assert!(log.matches(words).count() <= 1, "{url} {protocol}: {log}");
        }
        assert!(!log.contains(SECRET), "{log}");
    }
}

const NO_FILE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read '/nothing.pem'";

#[tokio::test]
async fn unusable_telemetry_settings_are_logged_and_stop_nothing() {
    for (telemetry, words) in [
        (json!({"exporter": "https://127.0.0.1:9", "protocol": "http"}), NO_FILE),
        (json!({"exporter": "https://127.0.0.1:9"}), NO_FILE),
        (json!({}), "OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' is not supported"),
    ] {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nothing.pem"),
        ];
        let gate = traced(json!({"telemetry": telemetry}), &variables).await;
        let line = gate.log_line("spans are not exported").await;
        assert!(line.contains(words), "{line}");
        gate.http().await.call("call_tool_read", read("echo")).await;
    }
}

#[tokio::test]
async fn the_log_line_of_a_call_names_its_trace() {
    let collector = Collector::grpc().await;
    let endpoint = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str())];
    for (variables, format) in
        [(&endpoint[..], "text"), (&[], "text"), (&endpoint[..], "json"), (&[], "json")]
    {
        let args = ["--log-format", format];
        let gate = traced_with(json!({}), variables, &args).await;
        let client = gate.http_at("/mcp/s/s").await;
        client.peer.request(ask(None, Some(&traceparent()))).await.unwrap();
        let line = gate.log_line("tool call").await;
        match format {
            "json" => {
                let line: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(line["trace_id"], TRACE);
                assert_eq!(line["tool"], "s:echo");
                assert_eq!(line["source"], "mcp:s");
                assert_eq!(line["outcome"], "success");
                assert!(line["duration_ms"].is_number(), "{line}");
            }
            _ => assert!(line.contains(&format!("trace_id={TRACE}")), "{line}"),
        }
        assert!(!line.contains(SECRET), "{line}");
    }
    // A trace of our own is named as well, and none if there is none.
    let collector = Collector::grpc().await;
    let endpoint = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str())];
    for variables in [&endpoint[..], &[]] {
        let gate = traced(json!({}), variables).await;
        gate.http().await.call("call_tool_write", read("echo")).await;
        let line = gate.log_line("tool call").await;
        assert!(line.contains("error=\"INTENT_MISMATCH\""), "{line}");
        assert!(line.contains("source=\"mcp:s\""), "a refused tool has a source too: {line}");
        if variables.is_empty() {
            assert!(!line.contains("trace_id"), "{line}");
        } else {
            let spans = collector.spans(2).await;
            let call = span(&spans, "tool.call.echo");
            assert!(line.contains(&format!("trace_id={}", call.trace_id)), "{line}");
        }
    }
}
