//! A tool's result through the gate and directly at its server: the same JSON.

use serde_json::{Value, json};
use testkit::foreign;
use testkit::upstream::scripted;

use super::clients::{Foreign, Python};
use super::servers::{self, EverythingHttp};

/// Returns `(tool, key, arguments, a path that shows why the tool is here)`.
fn calls() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    let image = json!({"messageType": "debug", "includeImage": true});
    let zip = json!({"name": "a.gz", "data": "data:text/plain,words", "outputType": "resource"});
    vec![
        ("echo", "read", json!({"message": "\u{e9}\u{1f600}\\u0041"}), "/content/0/text"),
        ("get-annotated-message", "read", image, "/content/1/annotations/audience/0"),
        (
            "get-annotated-message",
            "read",
            json!({"messageType": "error"}),
            "/content/0/annotations",
        ),
        (
            "get-structured-content",
            "read",
            json!({"location": "Chicago"}),
            "/structuredContent/temperature",
        ),
        ("get-resource-links", "read", json!({"count": 3}), "/content/3/uri"),
        ("get-tiny-image", "read", json!({}), "/content/1/data"),
        ("gzip-file-as-resource", "write", zip, "/content/0/resource/blob"),
    ]
}

#[tokio::test]
async fn a_result_is_the_one_the_server_gives() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let http = EverythingHttp::start().await;
    let entry = http.entry.clone();
    let gate = servers::gate(|_| json!({"stdio": servers::everything(), "http": entry})).await;
    let mut clients =
        [Foreign::open("python_http", &gate).await, Foreign::open("python_stdio", &gate).await];
    for (server, entry) in [("stdio", servers::everything()), ("http", http.entry.clone())] {
        let mut direct = Python::direct(gate.dir.path(), &entry);
        for (tool, operation, args, path) in calls() {
            let expected = direct.call(tool, args.clone()).await;
            assert!(expected.pointer(path).is_some(), "{tool}: {expected}");
            for client in &mut clients {
                let name = format!("{server}:{tool}");
                let result = client.use_tool(operation, &name, args.clone()).await;
                // In discovery mode a link names its server.
                let link = format!("countersign://server/{server}/");
                let unlinked = result.to_string().replace(&link, "");
                let unlinked: Value = serde_json::from_str(&unlinked).unwrap();
                assert_eq!(unlinked, expected, "{name}");
                assert_eq!(result != unlinked, expected.to_string().contains("\"uri\""), "{name}");
            }
        }
        direct.end().await;
    }
    assert_eq!(gate.stop().await, Some(0));
}

#[tokio::test]
async fn unknown_members_of_a_result_reach_a_foreign_client() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let entry = |dir: &std::path::Path| {
        // The SDK requires a schema.
        let echo = json!({"name": "echo", "inputSchema": {"type": "object"}});
        scripted(dir, "s", &json!([echo]))
    };
    let gate = servers::gate(|dir| json!({"s": entry(dir)})).await;
    let mut direct = Python::direct(gate.dir.path(), &entry(gate.dir.path()));
    let mut expected = direct.call("echo", json!({"a": 1})).await;
    direct.end().await;
    for name in ["_meta", "x-number", "x-big"] {
        assert!(expected.get(name).is_some(), "{name}: {expected}");
    }
    for which in ["python_http", "python_stdio"] {
        let mut client = Foreign::open(which, &gate).await;
        let mut result = client.use_tool("write", "s:echo", json!({"a": 1})).await;
        // The echoed params: the client's own members next to the arguments may differ.
        let echoed = result["content"][0]["text"].take();
        assert!(echoed.as_str().unwrap().contains(r#""arguments":{"a":1}"#), "{which}: {echoed}");
        expected["content"][0]["text"].take();
        assert_eq!(result, expected, "{which}");
    }
}
