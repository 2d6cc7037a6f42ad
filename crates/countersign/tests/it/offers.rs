//! Everything that a server offers besides tools, on `/mcp/s/<server>` and `mcp --server`: it passes
//! unchanged, and is decided and recorded like a call.

use std::path::Path;

use mcp::peer::RequestError;
use serde_json::json;
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::stdio_client;
use testkit::upstream::scripted;

use crate::foreign::servers;
use crate::ledger::{records_when, whole_chains};
use crate::passthrough::{direct, doors};

/// A definition in a formatting that none of our programs would produce.
const PROMPT: &str = r#"{ "x-number" : 1E2, "name":"p", "description":"\u0041", "arguments":[ ] }"#;

/// Requests with the class and the target that they are recorded with.
const REQUESTS: [(&str, &str, &str, &str); 4] = [
    ("resources/read", r#"{"uri":"memo://a","x":[1.0,1E2]}"#, "read", "memo://a"),
    (
        "prompts/get",
        r#"{"name":"p","arguments":{"big":123456789012345678901234567890}}"#,
        "read",
        "prompt/p",
    ),
    (
        "completion/complete",
        r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"value":"\u0041"}}"#,
        "read",
        "prompt/p",
    ),
    ("custom/reindex", r#"{"deep":{"list":[{"n":0.10}]},"_meta":{"k":1.50}}"#, "write", ""),
];

#[tokio::test]
async fn smoke_requests_and_lists_pass_unchanged_at_every_door() {
    let script = json!({
        "tools": [{"name": "plain"}],
        "prompts": [{"x-text": PROMPT}],
        "templates": [{"uriTemplate": "memo://{name}", "name": "memo"}],
        "resources": [{"uri": "memo://a", "name": "a"}],
        "capabilities": {"completions": {}},
    });
    let servers = |dir: &Path| json!({"s": scripted(dir, "s", &script)});
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    let alone = tempfile::tempdir().unwrap();
    for (door, client) in doors(&gate, "s", alone.path()).await {
        for (method, params, ..) in REQUESTS {
            let answer = client.request_text(method, params).await.unwrap();
            let echoed = format!(r#"{{"echo":{params},"x-number":1E2,"_meta":{{"x-meta":1.0}}}}"#);
            assert_eq!(answer, echoed, "{door} {method}");
        }
        let prompts = client.request_text("prompts/list", "{}").await.unwrap();
        assert_eq!(prompts, format!(r#"{{"prompts":[{PROMPT}]}}"#), "{door}");
        assert_eq!(client.listed("resources/list").await, ["memo://a"], "{door}");
    }
    let home = gate.home();
    let records = records_when(&home, |records| {
        let of_server = records.iter().filter(|record| record["server"] == "s");
        of_server.filter(|record| record["receipt"].is_object()).count() >= 8
    })
    .await;
    for (method, _, class, target) in REQUESTS {
        let record = records.iter().find(|record| record["tool"] == method).unwrap();
        assert_eq!((&record["server"], &record["status"]), (&json!("s"), &json!("success")));
        assert_eq!(record["effective_class"], class, "{record}");
        assert_eq!(record["resource"].as_str().unwrap_or_default(), target, "{record}");
    }
    assert!(!whole_chains(&home).is_empty());
}

#[tokio::test]
async fn everything_of_a_real_server_passes_as_if_asked_directly() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = servers::gate(|_| json!({"s": servers::everything()})).await;
    let direct = direct(gate.dir.path(), &servers::everything()).await;
    let alone = tempfile::tempdir().unwrap();
    let through = [
        gate.http_at("/mcp/s/s").await,
        stdio_client(
            alone.path(),
            &["--config", gate.config_file().to_str().unwrap(), "--server", "s"],
            json!({}),
            vec![],
        )
        .await,
    ];
    let completion = r#"{"ref":{"type":"ref/prompt","name":"completable-prompt"},"argument":{"name":"department","value":"E"}}"#;
    for (method, params) in [
        ("prompts/list", "{}"),
        ("resources/templates/list", "{}"),
        ("resources/list", "{}"),
        ("prompts/get", r#"{"name":"simple-prompt"}"#),
        ("prompts/get", r#"{"name":"args-prompt","arguments":{"city":"Paris"}}"#),
        ("resources/read", r#"{"uri":"demo://resource/static/document/features.md"}"#),
        ("completion/complete", completion),
        ("resources/subscribe", r#"{"uri":"demo://resource/static/document/features.md"}"#),
        ("resources/unsubscribe", r#"{"uri":"demo://resource/static/document/features.md"}"#),
        ("logging/setLevel", r#"{"level":"error"}"#),
        ("prompts/get", r#"{"name":"none"}"#),
        ("resources/read", r#"{"uri":"demo://none"}"#),
    ] {
        let text = |answer: Result<String, RequestError>| match answer {
            Ok(text) => text,
            Err(RequestError::Refused(error)) => format!("error {}", error.code),
            Err(other) => panic!("{method}: {other}"),
        };
        let expected = text(direct.request_text(method, params).await);
        for client in &through {
            assert_eq!(text(client.request_text(method, params).await), expected, "{method}");
        }
    }
}
