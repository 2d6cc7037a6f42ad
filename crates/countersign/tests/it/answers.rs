//! The output for programs: the response of every route and of every `-o json`, compared with the
//! last reviewed one. Keys, types, codes and values are compared; parts that differ between runs
//! are masked.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::stdout;
use testkit::upstream::scripted_upstream;

use crate::openapi;
use crate::screens::{assert_golden, gate, settled};

/// Routes whose response is not one JSON value, each with its own test.
const NOT_JSON: [&str; 9] = [
    "/",
    "/page/{file}",
    "/page/{folder}/{file}",
    "/oauth/callback",
    "/metrics",
    "/api/v1/activity/export",
    "/api/v1/receipts/export",
    "/api/v1/events",
    // The document is checked against the responses themselves.
    "/api/v1/openapi.json",
];

/// Members whose value differs in each run: only its type is kept.
const VOLATILE: [&str; 19] = [
    "arguments_bytes",
    "pid",
    "uptime_seconds",
    "duration_ms",
    "duration_us",
    "smallest_gap_ms",
    "p50",
    "p95",
    "bytes",
    "length",
    "last_hash",
    "chain",
    "next_cursor",
    "pem",
    "trace_id",
    "proofValue",
    "current",
    "include_disabled_asked",
    "calls_total",
];

/// Masks the parts of a response that differ between runs.
fn steady(value: &mut Value, dir: &str) {
    match value {
        Value::String(text) => {
            let server = scripted_upstream();
            let known = text.replace(dir, "<dir>").replace(server.to_str().unwrap(), "<server>");
            *text = settled(&known);
            if let Some(at) = text.find("#code=") {
                text.truncate(at);
                *text = "<address>/#code=<code>".to_owned();
            } else if let Some(at) = text.find("failed to lookup address") {
                // The rest is the machine's wording.
                text.truncate(at);
            } else if known.parse::<jiff::Timestamp>().is_ok() {
                *text = "<time>".to_owned();
            } else if text.starts_with("did:key:") {
                *text = "<did>".to_owned();
            } else if text.ends_with(".public.pem") {
                *text = "<file>".to_owned();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| steady(item, dir)),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if VOLATILE.contains(&&**name) && !member.is_object() && !member.is_array() {
                    *member = kind(member).into();
                } else if name == "token" && member.as_str().is_some_and(is_secret) {
                    *member = "<secret>".into();
                } else if name == "buckets" {
                    // Calls fall into the last bucket, or, at the turn of an hour, into two.
                    member.as_array_mut().unwrap().truncate(1);
                }
                steady(member, dir);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Reports whether text is a secret; names of tokens are short.
fn is_secret(text: &str) -> bool {
    text.len() > 30
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "<null>",
        Value::Bool(_) => "<flag>",
        Value::Number(_) => "<number>",
        Value::String(_) => "<text>",
        Value::Array(_) => "<list>",
        Value::Object(_) => "<object>",
    }
}

/// Starts a gate that also has runs and a copy.
async fn filled() -> Gate {
    let gate = gate().await;
    openapi::add_runs_and_copy(&gate).await;
    gate
}

/// Returns the ids for paths: of a record, a receipt and the oldest chain.
async fn ids(gate: &Gate) -> [String; 3] {
    let first = async |path: &str, list: &str| {
        let (_, answer) = gate.rest(Method::GET, path, None).await;
        answer[list].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned()
    };
    [
        first("/api/v1/activity", "activities").await,
        first("/api/v1/receipts", "receipts").await,
        first("/api/v1/chains", "chains").await,
    ]
}

type Question = (Method, String, Option<Value>);

/// Lists a request for every route and refusal, in an order in which each finds its subject.
fn questions([record, receipt, chain]: &[String; 3]) -> Vec<Question> {
    let get = |path: &str| (Method::GET, path.to_owned(), None);
    let post = |path: &str, body: Value| (Method::POST, path.to_owned(), Some(body));
    let tell = |path: &str| (Method::POST, path.to_owned(), None);
    let delete = |path: &str| (Method::DELETE, path.to_owned(), None);
    let call = |variant: &str, operation: &str, name: &str| {
        json!({"tool_variant": variant, "name": name, "args": {"path": "/notes/b.md"},
               "intent": {"operation_type": operation, "reason": "to see the answer"}})
    };
    vec![
        get("/healthz"),
        get("/readyz"),
        get("/api/v1/status"),
        get("/api/v1/agents"),
        get("/api/v1/servers"),
        get("/api/v1/servers/notes"),
        get("/api/v1/servers/ntoes"),
        get("/api/v1/servers/grown/items"),
        get("/api/v1/servers/grown/items?pending=true"),
        get("/api/v1/servers/grown/items?pending=perhaps"),
        get("/api/v1/servers/notes/logs"),
        get("/api/v1/servers/notes/logs?limit=0"),
        get("/api/v1/tools"),
        get("/api/v1/tools?q=note&limit=2"),
        get("/api/v1/tools?status=odd"),
        get("/api/v1/tools?stauts=callable"),
        get("/api/v1/tools/notes/list_notes"),
        get("/api/v1/tools/notes/lsit_notes"),
        get("/api/v1/tools/grown/sneak"),
        get("/api/v1/tools/grown/look"),
        get("/api/v1/tokens"),
        get("/api/v1/activity?limit=3"),
        get("/api/v1/activity?status=blocked"),
        get("/api/v1/activity?type=odd"),
        get("/api/v1/activity?target_resource=/notes/a.mb"),
        get("/api/v1/activity?start_time=soon"),
        get(&format!("/api/v1/activity/{record}")),
        get("/api/v1/activity/nothing"),
        get("/api/v1/activity/summary?period=24h"),
        get("/api/v1/receipts?limit=2"),
        get(&format!("/api/v1/receipts/{receipt}")),
        get("/api/v1/receipts/nothing"),
        get("/api/v1/chains"),
        get("/api/v1/chains/verify"),
        get(&format!("/api/v1/chains/{chain}/verify")),
        get("/api/v1/chains/nothing/verify"),
        get("/api/v1/copies"),
        get("/api/v1/copies/audit.jsonl/verify"),
        get("/api/v1/copies/nothing/verify"),
        post("/api/v1/copies/verify", json!({"name": "sent.jsonl", "text": "noise"})),
        post("/api/v1/copies/verify", json!({"name": "sent.jsonl"})),
        get("/api/v1/keys"),
        get("/api/v1/contention"),
        get("/api/v1/contention?window=0s"),
        get("/api/v1/contention?containers=true&kind=write-write"),
        get("/api/v1/contention/0123456789ab"),
        get("/api/v1/targets/coverage?server=notes"),
        get("/api/v1/runs"),
        get("/api/v1/runs/01a1de05-f601"),
        get("/api/v1/runs/01a1de05"),
        get("/api/v1/runs/nothing"),
        get("/api/v1/nothing"),
        post(
            "/api/v1/tools/notes/write_note/targets",
            json!({"arguments": {"path": "/notes/a.md"}}),
        ),
        post("/api/v1/tools/call", call("call_tool_read", "read", "notes:list_notes")),
        post("/api/v1/tools/call", call("call_tool_write", "read", "notes:list_notes")),
        post("/api/v1/tools/call", json!({"tool_variant": "odd"})),
        tell("/api/v1/tools/notes/list_notes/disable"),
        tell("/api/v1/tools/notes/list_notes/enable"),
        tell("/api/v1/tools/notes/gone/disable"),
        post("/api/v1/tools/grown/look/approve", json!({"kind": "tool"})),
        post("/api/v1/tools/grown/look/approve", json!({"kidn": "tool"})),
        post("/api/v1/servers/grown/approve-items", json!({"items": []})),
        post("/api/v1/servers/grown/approve-items", json!({"items": [{"kind": "odd"}]})),
        tell("/api/v1/servers/notes/disable"),
        tell("/api/v1/servers/notes/restart"),
        tell("/api/v1/servers/notes/enable"),
        tell("/api/v1/servers/broken/quarantine"),
        get("/api/v1/servers/broken/review"),
        post("/api/v1/servers/broken/approve", json!({"fingerprint": "sha256:0"})),
        post("/api/v1/servers/added/approve", json!({"inspect": true})),
        tell("/api/v1/servers/grown/restart"),
        tell("/api/v1/servers/notes/login"),
        post("/api/v1/servers/notes/login", json!({"redirect_uri": "https://evil.example/"})),
        get("/api/v1/servers/notes/login"),
        tell("/api/v1/servers/notes/logout"),
        post("/api/v1/logins", json!({"response": "code=a&state=b"})),
        post("/api/v1/servers", json!({"name": "more", "command": "x", "env": {"A": "b"}})),
        post("/api/v1/servers", json!({"name": "more", "comand": "x"})),
        delete("/api/v1/servers/more"),
        delete("/api/v1/servers/more"),
        post(
            "/api/v1/tokens",
            json!({"name": "week", "operations": ["read"], "expires_in": "7d", "surfaces": ["discovery"]}),
        ),
        post("/api/v1/tokens", json!({"name": "week", "operations": ["reed"]})),
        post("/api/v1/tokens", json!({"operations": ["read"]})),
        delete("/api/v1/tokens/week"),
        delete("/api/v1/tokens/week"),
        tell("/api/v1/checkpoints"),
        tell("/api/v1/keys/rotate"),
        tell("/api/v1/page/codes"),
        post("/api/v1/page/session", json!({"code": "nothing"})),
        delete("/api/v1/page/sessions"),
    ]
}

#[tokio::test]
async fn smoke_every_routes_answer_matches_the_golden_file() {
    let gate = filled().await;
    let dir = gate.dir.path().to_str().unwrap();
    let ids = ids(&gate).await;
    let mut seen = String::new();
    let mut asked = BTreeSet::new();
    for (method, path, body) in questions(&ids) {
        asked.extend(openapi::route(method.as_str(), &format!("http://gate{path}")));
        let (status, mut answer) = gate.rest(method.clone(), &path, body.clone()).await;
        steady(&mut answer, dir);
        let body = body.map(|body| format!(" {body}")).unwrap_or_default();
        let path = settled(&path);
        seen.push_str(&format!("$ {method} {path}{body}\n{status} {answer:#}\n\n"));
    }
    let never: Vec<_> = admin::routes::all()
        .filter(|route| !NOT_JSON.contains(&route.path))
        .filter(|route| !asked.contains(&(route.method, route.path)))
        .collect();
    assert!(never.is_empty(), "never asked: {never:?}");
    assert_golden("routes.txt", &seen);
}

#[tokio::test]
async fn every_commands_json_matches_the_golden_file() {
    let gate = filled().await;
    let dir = gate.dir.path().to_str().unwrap();
    let [record, receipt, _] = ids(&gate).await;
    let commands = [
        "upstream list",
        "upstream get notes",
        "upstream logs notes",
        "tools list --server notes",
        "tools search note --limit 2",
        "tools show notes:list_notes",
        "tools show grown:sneak",
        "tools show grown:look --diff",
        "call tool-read --tool-name notes:list_notes",
        "token list",
        "activity list --limit 3",
        &format!("activity show {record}"),
        "activity summary",
        "runs list",
        "runs show 01a1de05-f601",
        "receipt list --limit 2",
        &format!("receipt show {receipt}"),
        "receipt verify",
        "keys show",
        "contention --reads",
        "targets coverage",
        "plugin list",
        "token create week --operations read",
        "upstream approve broken",
        "upstream approve added --inspect",
        "ledger head",
        "keys rotate",
    ];
    let mut seen = String::new();
    for command in commands {
        let mut words: Vec<&str> = command.split(' ').collect();
        if !command.starts_with("receipt show") {
            words.extend(["-o", "json"]);
        }
        let output = gate.cli(&words).await;
        let text = stdout(&output);
        let mut answer: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        steady(&mut answer, dir);
        let code = output.status.code().unwrap();
        let command = settled(command);
        seen.push_str(&format!("$ countersign {command} -o json\n{answer:#}\n[exit {code}]\n\n"));
    }
    assert_golden("json.txt", &seen);
}
