//! The official conformance suite through `/mcp/all`. The suite knows the names of one server, so
//! that a proxy maps them; a second server has the same resources and prompts.

use std::path::Path;

use serde_json::{Value, json};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::command;
use testkit::upstream::scripted;
use tokio::process::Command;

use crate::conformance::{assert_conforms, node, peer, served};

/// A server that has what the fixture has.
fn neighbour(dir: &Path) -> Value {
    let resource = |uri: &str| json!({"uri": uri, "name": "same"});
    let script = json!({
        "tools": [{"name": "test_simple_text", "description": "The same name",
            "inputSchema": {"type": "object"}}],
        "prompts": [{"name": "test_simple_prompt", "description": "The same name"}],
        "templates": [{"uriTemplate": "test://template/{id}/data", "name": "same"}],
        "resources": [resource("test://static-text"), resource("test://static-binary"),
            resource("test://watched-resource")],
        "capabilities": {"logging": {}, "completions": {}},
    });
    scripted(dir, "neighbour", &script)
}

/// Runs the suite through the view of all servers, alone or together with a server with the same
/// resources.
async fn conforms(fixture: Command, has_neighbour: bool) {
    let fixture = served(fixture).await;
    let servers = |dir: &Path| {
        let mut servers = json!({"fixture": {"url": fixture.address}});
        if has_neighbour {
            servers["neighbour"] = neighbour(dir);
        }
        servers
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("fixture").await;
    if has_neighbour {
        gate.ready("neighbour").await;
    }
    let dir = gate.dir.path();
    let view = format!("http://{}/mcp/all", gate.address);
    let mut with_names = node(dir);
    with_names.arg(peer("with_names.mjs")).args([&view, &gate.secret("agent-token"), "fixture"]);
    if has_neighbour {
        with_names.arg("addresses");
    }
    let proxy = served(with_names).await;
    assert_conforms(dir, &proxy.address, "through the view of all servers").await;
    assert_eq!(gate.stop().await, Some(0));
}

fn on_typescript(dir: &Path) -> Command {
    let mut fixture = node(dir);
    fixture.arg(peer("conformance.mjs")).arg(foreign::folder().join("conformance"));
    fixture
}

fn on_python(dir: &Path) -> Command {
    let mut fixture = command(&foreign::program("python-mcp2/bin/python"), dir);
    fixture.args(["-W", "ignore"]).arg(peer("conformance.py"));
    fixture
}

#[tokio::test]
async fn all_servers_conform_with_only_names_mapped() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    conforms(on_typescript(dir.path()), false).await;
    conforms(on_python(dir.path()), false).await;
}

#[tokio::test]
async fn all_servers_conform_beside_one_with_the_same_resources() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    conforms(on_typescript(dir.path()), true).await;
    conforms(on_python(dir.path()), true).await;
}
