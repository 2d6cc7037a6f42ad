//! A tool's definition through the gate and directly at its server: every member is the same, except
//! those that no model gets to see.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use testkit::foreign;
use testkit::upstream::scripted;

use super::clients::{Foreign, Python};
use super::servers;

/// Members of the protocol, of its extensions and of no specification.
fn strange() -> Value {
    json!([{
        "name": "strange", "title": "Strange", "description": "Carries what nobody knows",
        "inputSchema": {"type": "object", "x-schema": 1.5},
        "execution": {"taskSupport": "optional", "x-execution": true},
        "icons": [{"src": "data:image/png;base64,AA==", "x-icon": null}],
        "annotations": {"readOnlyHint": true, "x-hint": [1]},
        "_meta": {"example.com/owner": {"team": "a", "since": 2024.5}, "x": null},
        "x-new-in-2030": {"deep": [{"a": null}]},
    }])
}

/// Returns the definitions by name, without the members that no model gets to see. `tools` must not
/// be empty.
fn by_name(tools: &[Value]) -> BTreeMap<String, Map<String, Value>> {
    assert!(!tools.is_empty());
    let split = |tool: &Value| {
        let mut members = tool.as_object().unwrap().clone();
        members.retain(|name, _| !["_meta", "icons"].contains(&name.as_str()));
        let name = members.remove("name").unwrap().as_str().unwrap().to_owned();
        (name, members)
    };
    tools.iter().map(split).collect()
}

/// Removes the members that the gate adds for the caller: the tool's server and its key.
fn without_the_gates_own(server: &str, members: &mut Map<String, Value>) {
    assert_eq!(members.remove("server"), Some(server.into()));
    let key = members.remove("call_with").unwrap();
    assert!(key.as_str().unwrap().starts_with("call_tool_"), "{key}");
}

async fn at_the_server(dir: &Path, server: &Value) -> BTreeMap<String, Map<String, Value>> {
    let mut python = Python::direct(dir, server);
    let list = python.result(json!({"op": "list_tools"})).await;
    assert_eq!(list.get("nextCursor"), None);
    python.end().await;
    // A tool that can be called only as a task is left out.
    let mut tools = list["tools"].as_array().unwrap().clone();
    tools.retain(|tool| tool["execution"]["taskSupport"] != "required");
    by_name(&tools)
}

#[tokio::test]
async fn a_tool_is_described_as_its_server_describes_it() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let servers = |dir: &Path| {
        let mut servers = servers::all(dir);
        servers["scripted"] = scripted(dir, "scripted", &strange());
        servers
    };
    let gate = servers::gate(servers).await;
    let mut client = Foreign::open("python_http", &gate).await;
    let mut with_execution = 0;
    for (server, entry) in servers(gate.dir.path()).as_object().unwrap() {
        let expected = at_the_server(gate.dir.path(), entry).await;
        let ids: Vec<String> = expected.keys().map(|name| format!("{server}:{name}")).collect();
        for ids in ids.chunks(5) {
            let described = client.document("describe_tool", json!({"tool_ids": ids})).await;
            assert_eq!(described["tools"].as_array().unwrap().len(), ids.len(), "{described}");
            assert!(described["tools"][0].get("_meta").is_none(), "{described}");
            for (name, mut members) in by_name(described["tools"].as_array().unwrap()) {
                without_the_gates_own(server, &mut members);
                let own = name.strip_prefix(&format!("{server}:")).unwrap();
                assert_eq!(members, expected[own], "{name}");
                with_execution += usize::from(members.contains_key("execution"));
            }
        }
    }
    assert!(with_execution > 30, "the npm servers' tools have it: {with_execution}");
    let described = client.document("describe_tool", json!({"tool_ids": ["scripted:strange"]}));
    let mut described = by_name(described.await["tools"].as_array().unwrap());
    let members = described.get_mut("scripted:strange").unwrap();
    without_the_gates_own("scripted", members);
    assert_eq!(*members, by_name(strange().as_array().unwrap())["strange"]);
    assert_eq!(gate.stop().await, Some(0));
}
