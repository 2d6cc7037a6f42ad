//! Answers that are lost: every way of losing one, on each transport, for each class of call. The
//! caller, the record and the receipt learn that the call may have taken effect, and the server has
//! it once. What was never sent is told apart.

use std::path::Path;

use mcp::message::to_raw;
use mcp::peer::{Ask, RequestError};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::{Client, PATIENCE, code, refusal, text, two_keys};
use testkit::gate::Gate;
use testkit::lossy::{CLASSES, LossyServer, tool_of_class};
use testkit::program::{run, stdout};
use testkit::upstream::{scripted, scripted_upstream};
use testkit::wait::eventually;

use crate::ledger::record;

const UNKNOWN: &str = "OUTCOME_UNKNOWN";

/// Returns what a tool of a scripted server does instead of answering, and the code of its calls.
fn stdio_ways() -> Vec<(&'static str, Value, &'static str)> {
    let say = |line: &str| json!({"say": line, "hang": true});
    vec![
        ("die", json!("die"), UNKNOWN),
        ("half", json!({"close": r#"{"jsonrpc":"2.0","id":"#}), UNKNOWN),
        ("cut", say(r#"{"jsonrpc":"2.0","id":$id,"result":{"content":["#), UNKNOWN),
        ("doubled", say(r#"{"jsonrpc":"2.0","id":$id,"result":{},"result":{"x":1}}"#), UNKNOWN),
        ("error", say(r#"{"jsonrpc":"2.0","id":$id,"error":"no luck"}"#), UNKNOWN),
        ("batch", say(r#"[{"jsonrpc":"2.0","id":$id,"result":{"content":[]}}]"#), UNKNOWN),
        ("null", json!({"return": "null"}), UNKNOWN),
        ("text", json!({"return": "\"done\""}), UNKNOWN),
        ("number", json!({"return": "7"}), UNKNOWN),
        ("array", json!({"return": "[]"}), UNKNOWN),
        ("other_id", say(r#"{"jsonrpc":"2.0","id":987654,"result":{"content":[]}}"#), "TIMEOUT"),
        ("huge", json!({"text": 17 * 1024 * 1024}), "RESPONSE_TOO_LARGE"),
        ("silent", json!("hang"), "TIMEOUT"),
    ]
}

const HTTP_WAYS: [(&str, &str); 32] = [
    ("reset", UNKNOWN),
    ("half_head", UNKNOWN),
    ("half_body", UNKNOWN),
    ("html", UNKNOWN),
    ("untyped", UNKNOWN),
    ("accepted", UNKNOWN),
    ("other_id", UNKNOWN),
    ("malformed", UNKNOWN),
    ("null", UNKNOWN),
    ("text", UNKNOWN),
    ("number", UNKNOWN),
    ("array", UNKNOWN),
    ("500", UNKNOWN),
    ("502", UNKNOWN),
    ("503", UNKNOWN),
    ("504", UNKNOWN),
    ("408", UNKNOWN),
    ("proxy_error", UNKNOWN),
    ("see_other", UNKNOWN),
    ("stream_cut", UNKNOWN),
    ("stream_half", UNKNOWN),
    ("stream_malformed", UNKNOWN),
    ("stream_lost", UNKNOWN),
    ("stream_other_id", UNKNOWN),
    ("stream_null", UNKNOWN),
    ("stream_text", UNKNOWN),
    ("stream_number", UNKNOWN),
    ("stream_array", UNKNOWN),
    ("stream_huge", "RESPONSE_TOO_LARGE"),
    ("huge", "RESPONSE_TOO_LARGE"),
    ("silent", "TIMEOUT"),
    ("fine", "ok"),
];

/// Ways in which a server refuses a call, so that it was not processed.
const HTTP_REFUSALS: [(&str, &str); 5] = [
    ("401", "UPSTREAM_UNAVAILABLE"),
    ("403", "UPSTREAM_ERROR"),
    ("429", "UPSTREAM_ERROR"),
    ("busy", "UPSTREAM_ERROR"),
    ("moved", "UPSTREAM_UNAVAILABLE"),
];

const SSE_WAYS: [(&str, &str); 18] = [
    ("cut", UNKNOWN),
    ("half", UNKNOWN),
    ("malformed", UNKNOWN),
    ("null", UNKNOWN),
    ("text", UNKNOWN),
    ("number", UNKNOWN),
    ("array", UNKNOWN),
    ("huge", "RESPONSE_TOO_LARGE"),
    ("500", UNKNOWN),
    ("502", UNKNOWN),
    ("503", UNKNOWN),
    ("504", UNKNOWN),
    ("408", UNKNOWN),
    ("reset", UNKNOWN),
    ("half_head", UNKNOWN),
    // The POST is accepted, and the answer is awaited on the stream.
    ("html", "TIMEOUT"),
    ("other_id", "TIMEOUT"),
    ("silent", "TIMEOUT"),
];

/// The warning on a record of a result with duplicate members.
pub(crate) const NAMED_TWICE: &str = "the result names a member twice";

/// Returns the warnings on a record of this home.
pub(crate) async fn warnings(dir: &Path, record: &Value) -> String {
    let shown = run(dir, ["activity", "show", record["id"].as_str().unwrap(), "-o", "json"]).await;
    let shown: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    shown["metadata"]["warnings"].to_string()
}

/// Returns the advice to the caller about a lost call of a class.
fn advice(class: &str) -> &'static str {
    match class {
        "read" => "it is safe to call it again",
        _ => {
            "may have taken effect: check whether it did before you call it again, unless the tool \
             is idempotent"
        }
    }
}

/// Checks what is known of a call whose answer was lost.
async fn assert_lost(gate: &Gate, class: &str, expected: &str, (tool, result): (&str, &Value)) {
    let refused = refusal(result);
    assert_eq!(refused["code"], expected, "{tool}: {result}");
    assert_eq!(refused["details"]["sent"], true, "{tool}: {result}");
    assert_eq!(refused["details"]["effective_class"], class, "{tool}: {result}");
    assert!(text(result).contains(advice(class)), "{tool}: {result}");
    assert_unknown(gate, class, expected, tool).await;
}

/// Checks the record and the receipt of a call that may have taken effect.
async fn assert_unknown(gate: &Gate, class: &str, expected: &str, tool: &str) {
    let record = record(&gate.home(), tool).await;
    assert_eq!((&record["status"], &record["error_code"]), (&json!("unknown"), &json!(expected)));
    assert_eq!(record["outcome"]["status"], "failure", "{tool}");
    assert_eq!(record["runtime"]["outcome"], "unknown", "{tool}");
    let error = record["outcome"]["error"].as_str().unwrap();
    let words = advice(class);
    assert!(error.starts_with(&format!("{expected}: ")) && error.contains(words), "{error}");
}

/// Checks the record and the receipt of a call that was not made.
async fn assert_not_made(gate: &Gate, tool: &str, code: &str) {
    let record = record(&gate.home(), tool).await;
    assert_eq!(
        (&record["status"], &record["error_code"]),
        (&json!("error"), &json!(code)),
        "{tool}"
    );
    assert_eq!(record["outcome"]["status"], "failure", "{tool}");
    assert_eq!(record["runtime"]["outcome"], Value::Null, "{tool}");
}

/// Checks that every one of these calls is found by its status, and that the ledger is intact.
async fn assert_found(gate: &Gate, count: usize) {
    let path = "/api/v1/activity?status=unknown&limit=1";
    let (_, found) = gate.rest(Method::GET, path, None).await;
    assert_eq!(found["total"], count, "{found}");
    let (_, summary) = gate.rest(Method::GET, "/api/v1/activity/summary", None).await;
    assert_eq!(summary["by_status"]["unknown"], count, "{summary}");
    let listed = gate.cli(&["activity", "list", "--status", "unknown", "--limit", "100"]).await;
    assert_eq!(stdout(&listed).matches(" unknown ").count(), count, "{}", stdout(&listed));
    let verified = gate.cli(&["receipt", "verify"]).await;
    assert_eq!(verified.status.code(), Some(0), "{}", stdout(&verified));
}

/// Makes every call that the server refuses, and checks that it counts as not sent.
async fn assert_refused(
    gate: &Gate,
    client: &Client,
    server: &LossyServer,
    name: impl Fn(&str) -> String,
) {
    for (way, expected) in HTTP_REFUSALS {
        for class in CLASSES {
            let tool = format!("{way}_{class}");
            let result = call(client, class, &name(&tool)).await;
            assert_eq!(code(&result), expected, "{tool}: {result}");
            assert_ne!(refusal(&result)["details"]["sent"], true, "{tool}: {result}");
            assert_eq!(server.calls(&tool), 1, "{tool}");
            assert_not_made(gate, &tool, expected).await;
        }
    }
}

async fn call(client: &Client, class: &str, name: &str) -> Value {
    client.two_key_call(class, name, json!({})).await
}

/// Returns how often a scripted tool was called.
fn logged(dir: &Path, tool: &str) -> usize {
    let log = std::fs::read_to_string(dir.join(format!("{tool}.calls"))).unwrap_or_default();
    log.lines().count()
}

/// Returns a scripted server with one tool of this name.
fn one_tool(dir: &Path, tool: &str, class: &str, what: &Value) -> Value {
    let mut definition = tool_of_class(tool, class);
    definition["x-do"] = what.clone();
    definition["x-log"] = json!(dir.join(format!("{tool}.calls")));
    scripted(dir, tool, &json!([definition]))
}

#[tokio::test]
async fn an_answer_lost_over_stdio_leaves_its_outcome_unknown() {
    // A server that starts once: nothing is sent to it after its end.
    let once = r#"if [ -e "$0" ]; then exit 7; fi; : > "$0"; exec "$@""#;
    let servers = |dir: &Path| {
        let mut servers = json!({});
        for (way, what, expected) in stdio_ways() {
            for class in CLASSES {
                let tool = format!("{way}_{class}");
                let mut server = one_tool(dir, &tool, class, &what);
                if expected == "TIMEOUT" {
                    server["call_timeout"] = "1s".into();
                }
                if way == "die" {
                    let (file, started) = (&server["args"][0], dir.join(format!("{tool}.started")));
                    server = json!({"command": "sh",
                        "args": ["-c", once, started, scripted_upstream(), file]});
                }
                servers[tool] = server;
            }
        }
        servers["missing"] = json!({"command": "countersign-no-such-program"});
        servers
    };
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    for (way, _, expected) in stdio_ways() {
        for class in CLASSES {
            let tool = format!("{way}_{class}");
            let result = call(&client, class, &format!("{tool}:{tool}")).await;
            assert_lost(&gate, class, expected, (&tool, &result)).await;
            assert_eq!(logged(gate.dir.path(), &tool), 1, "{tool}");
        }
    }
    assert_found(&gate, stdio_ways().len() * CLASSES.len()).await;

    for class in CLASSES {
        let again = call(&client, class, &format!("die_{class}:die_{class}")).await;
        assert_eq!(code(&again), "UPSTREAM_UNAVAILABLE", "{again}");
        assert_eq!(refusal(&again)["details"]["sent"], false, "{again}");
        assert_eq!(logged(gate.dir.path(), &format!("die_{class}")), 1, "{class}");
    }
    let (_, failed) = gate.rest(Method::GET, "/api/v1/activity?status=error", None).await;
    assert_eq!(failed["total"], CLASSES.len(), "{failed}");
    let missing = call(&client, "write", "missing:t").await;
    assert_eq!(code(&missing), "UPSTREAM_UNAVAILABLE", "{missing}");
    assert_eq!(refusal(&missing)["details"]["sent"], false, "{missing}");
    assert_found(&gate, stdio_ways().len() * CLASSES.len()).await;
}

#[tokio::test]
async fn an_answer_lost_over_http_leaves_its_outcome_unknown() {
    let ways: Vec<&str> = HTTP_WAYS.iter().chain(&HTTP_REFUSALS).map(|(way, _)| *way).collect();
    let mut server = LossyServer::start(&ways).await;
    let (url, slow) = (server.url(), json!({"url": server.url(), "call_timeout": "1s"}));
    let gate = Gate::start(|_| json!({"s": {"url": url}, "slow": slow}), json!({})).await;
    let client = gate.http().await;
    for (way, expected) in HTTP_WAYS {
        let name = if way == "silent" { "slow" } else { "s" };
        for class in CLASSES {
            let tool = format!("{way}_{class}");
            let result = call(&client, class, &format!("{name}:{tool}")).await;
            if expected == "ok" {
                assert_eq!(code(&result), "ok", "{result}");
                assert_eq!(record(&gate.home(), &tool).await["status"], "success");
            } else {
                assert_lost(&gate, class, expected, (&tool, &result)).await;
            }
            assert_eq!(server.calls(&tool), 1, "{tool}");
        }
    }
    let lost = (HTTP_WAYS.len() - 1) * CLASSES.len();
    assert_found(&gate, lost).await;

    assert_refused(&gate, &client, &server, |tool: &str| format!("s:{tool}")).await;
    // A refused call says nothing about the server.
    assert_eq!(gate.ready("s").await["state"], "ready");

    server.stop().await;
    let refused = call(&client, "write", "s:reset_write").await;
    assert_eq!(code(&refused), "UPSTREAM_UNAVAILABLE", "{refused}");
    assert_eq!(refusal(&refused)["details"]["sent"], false, "{refused}");
    assert_found(&gate, lost).await;
}

#[tokio::test]
async fn an_answer_lost_over_sse_leaves_its_outcome_unknown() {
    let all = [&SSE_WAYS[..], &HTTP_REFUSALS].concat();
    let ways: Vec<&str> = all.iter().map(|(way, _)| *way).collect();
    let mut server = LossyServer::start(&[&ways[..], &["fine"]].concat()).await;
    let servers = |_: &Path| {
        let mut servers = json!({"fine_write": {"url": server.sse_url("fine_write")}});
        for (way, expected) in &all {
            for class in CLASSES {
                let tool = format!("{way}_{class}");
                servers[&tool] = json!({"url": server.sse_url(&tool)});
                if *expected == "TIMEOUT" {
                    servers[&tool]["call_timeout"] = "1s".into();
                }
            }
        }
        servers
    };
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    for (way, expected) in SSE_WAYS {
        for class in CLASSES {
            let tool = format!("{way}_{class}");
            let result = call(&client, class, &format!("{tool}:{tool}")).await;
            assert_lost(&gate, class, expected, (&tool, &result)).await;
            assert_eq!(server.calls(&tool), 1, "{tool}");
        }
    }
    let lost = SSE_WAYS.len() * CLASSES.len();
    assert_found(&gate, lost).await;
    let name = |tool: &str| format!("{tool}:{tool}");
    assert_refused(&gate, &client, &server, name).await;
    assert_eq!(code(&call(&client, "write", "fine_write:fine_write").await), "ok");

    server.stop().await;
    gate.server_when("fine_write", |entry| entry["state"] == "error").await;
    let refused = call(&client, "write", "fine_write:fine_write").await;
    assert_eq!(code(&refused), "UPSTREAM_UNAVAILABLE", "{refused}");
    assert_eq!(refusal(&refused)["details"]["sent"], false, "{refused}");
    assert_eq!(server.calls("fine_write"), 1);
    assert_found(&gate, lost).await;
}

/// A message is sent again only on a connection that turns out to be dead before it took the message.
#[tokio::test]
async fn a_connection_that_breaks_when_it_is_used_again_leaves_the_outcome_unknown() {
    let server = LossyServer::start(&["kept", "reused"]).await;
    let url = server.url();
    let gate = Gate::start(|_| json!({"s": {"url": url}}), json!({})).await;
    // One connection to the gate has its own connections to the server.
    let client = gate.stdio().await;
    for class in CLASSES {
        let kept = call(&client, class, &format!("s:kept_{class}")).await;
        assert_eq!(code(&kept), "ok", "{kept}");
        let tool = format!("reused_{class}");
        let result = call(&client, class, &format!("s:{tool}")).await;
        assert_lost(&gate, class, UNKNOWN, (&tool, &result)).await;
        assert_eq!(server.calls(&tool), 1, "{tool}");
    }
    assert_found(&gate, CLASSES.len()).await;
}

#[tokio::test]
async fn a_result_that_names_a_member_twice_has_a_warning_on_its_record() {
    let server = LossyServer::start(&["doubled", "fine"]).await;
    let twice = json!({"return": r#"{"content":[],"structuredContent":{"n":1,"n":2}}"#});
    let once = json!({"return": r#"{"content":[],"structuredContent":{"n":1}}"#});
    let servers = |dir: &Path| {
        json!({"http": {"url": server.url()},
            "twice": one_tool(dir, "twice", "write", &twice),
            "once": one_tool(dir, "once", "write", &once),
            "sse_twice": {"url": server.sse_url("doubled_read")},
            "sse_once": {"url": server.sse_url("fine_read")}})
    };
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    for (class, name, is_told) in [
        ("write", "http:doubled_write", true),
        ("write", "http:fine_write", false),
        ("write", "twice:twice", true),
        ("write", "once:once", false),
        ("read", "sse_twice:doubled_read", true),
        ("read", "sse_once:fine_read", false),
    ] {
        let result = call(&client, class, name).await;
        assert_eq!(code(&result), "ok", "{name}: {result}");
        let record = record(&gate.home(), name.split_once(':').unwrap().1).await;
        assert_eq!(record["status"], "success", "{name}");
        let warnings = warnings(gate.dir.path(), &record).await;
        assert_eq!(warnings.contains(NAMED_TWICE), is_told, "{name}: {warnings}");
    }
}

#[tokio::test]
async fn a_call_cancelled_after_it_was_sent_leaves_its_outcome_unknown() {
    let server = LossyServer::start(&["silent", "hang"]).await;
    let servers = |dir: &Path| {
        let mut servers = json!({"http": {"url": server.url()}});
        for class in CLASSES {
            let (stuck, hang) = (format!("stuck_{class}"), format!("hang_{class}"));
            servers[&stuck] = one_tool(dir, &stuck, class, &json!("hang"));
            servers[&hang] = json!({"url": server.sse_url(&hang)});
        }
        servers
    };
    let gate = Gate::start(servers, json!({})).await;
    let client = gate.http().await;
    for class in CLASSES {
        for (way, name) in [
            ("stuck", format!("stuck_{class}:stuck_{class}")),
            ("silent", format!("http:silent_{class}")),
            ("hang", format!("hang_{class}:hang_{class}")),
        ] {
            let tool = format!("{way}_{class}");
            let count = || logged(gate.dir.path(), &tool) + server.calls(&tool);
            let params = Some(to_raw(&two_keys(class, &name, json!({}))));
            let asked = Ask::new("tools/call", params, PATIENCE);
            let cancel = asked.cancel.clone();
            let running = client.peer.request(asked);
            tokio::pin!(running);
            tokio::select! {
                answer = &mut running => panic!("{tool}: {answer:?}"),
                () = eventually(|| async { (count() == 1).then_some(()) }) => {}
            }
            cancel.cancel();
            assert!(matches!(running.await, Err(RequestError::Cancelled)), "{tool}");
            assert_unknown(&gate, class, "CANCELLED", &tool).await;
            assert_eq!(count(), 1, "{tool}");
        }
    }
    assert_found(&gate, 3 * CLASSES.len()).await;
}

#[tokio::test]
async fn smoke_an_answer_lost_by_a_call_over_rest_is_told_in_its_error() {
    let gate = Gate::scripted(json!([{"name": "die", "x-do": "die"}])).await;
    let intent = json!({"operation_type": "write"});
    let call = json!({"tool_variant": "call_tool_write", "name": "s:die", "intent": intent});
    let (status, answer) = gate.rest(Method::POST, "/api/v1/tools/call", Some(call)).await;
    let error = &answer["error"];
    assert_eq!((status, &error["code"]), (502, &json!(UNKNOWN)), "{answer}");
    assert_eq!(error["details"]["sent"], true, "{answer}");
    assert_eq!(error["details"]["effective_class"], "write", "{answer}");
    assert!(error["message"].as_str().unwrap().contains(advice("write")), "{answer}");
    assert_unknown(&gate, "write", UNKNOWN, "die").await;
}

#[tokio::test]
async fn a_list_that_was_lost_is_told_from_one_that_was_not_asked_for() {
    let script = json!({"tools": [], "resources": []});
    let gate = Gate::start(|dir| json!({"s": scripted(dir, "s", &script)}), json!({})).await;
    let client = gate.http_at("/mcp/s/s").await;
    let died = client.request("resources/list", json!({"cursor": "die"})).await;
    let Err(RequestError::Refused(lost)) = died else { panic!("{died:?}") };
    let told = lost.text().get();
    assert!(told.contains(UNKNOWN) && told.contains(r#""sent":true"#), "{told}");
    assert!(told.contains(advice("read")), "{told}");
}

/// A sign-in to such a server is impossible, so waiting for one would never end.
#[tokio::test]
async fn a_server_that_refuses_everybody_and_offers_no_sign_in_is_tried_again() {
    for (is_troubled, words) in
        [(false, "publishes no authorization metadata"), (true, "answered HTTP 503")]
    {
        let server = LossyServer::start(&["fine"]).await;
        server.refuse_all(true);
        if is_troubled {
            server.fail_metadata();
        }
        let url = server.url();
        let gate = Gate::start(|_| json!({"s": {"url": url}}), json!({})).await;
        let entry = gate.server_when("s", |entry| entry["error"].is_string()).await;
        assert_eq!(entry["state"], "error", "{entry}");
        let reason = entry["error"].as_str().unwrap();
        assert!(reason.contains("it requires authorization (HTTP 401)"), "{reason}");
        assert!(reason.contains(words) && !reason.contains("upstream login"), "{reason}");
        server.refuse_all(false);
        gate.ready("s").await;
        let client = gate.http().await;
        assert_eq!(code(&call(&client, "write", "s:fine_write").await), "ok");
    }
}
