//! Everything that all servers offer, merged, on `/mcp/all` and `mcp --all`: names and addresses lead
//! back to their server, each request is decided and recorded there, and nothing else changes.

use std::path::Path;

use serde_json::{Value, json};
use testkit::client::Client;
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::stdio_client;
use testkit::upstream::scripted;

use crate::foreign::servers;
use crate::ledger::{records_when, whole_chains};

/// A script whose resource another server has too.
fn offer(name: &str) -> Value {
    json!({
        "tools": [{"name": "plain"}],
        "prompts": [{"name": "p"}],
        "templates": [{"uriTemplate": format!("{name}://{{x}}"), "name": "own"}],
        "resources": [{"uri": "memo://both", "name": "both"},
            {"uri": format!("memo://{name}"), "name": name}],
    })
}

/// Connects over every transport.
async fn doors(gate: &Gate, alone: &Path) -> [(&'static str, Client); 3] {
    let config = gate.config_file();
    let args = ["--config", config.to_str().unwrap(), "--all"];
    [
        ("http", gate.http_at("/mcp/all").await),
        ("bridged", stdio_client(gate.dir.path(), &["--all"], json!({}), vec![]).await),
        ("in process", stdio_client(alone, &args, json!({}), vec![]).await),
    ]
}

#[tokio::test]
async fn smoke_all_servers_are_merged_at_every_door() {
    let servers = |dir: &Path| {
        let server = |name: &str| scripted(dir, name, &offer(name));
        json!({"a": server("a"), "b": server("b")})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("a").await;
    gate.ready("b").await;
    let address = "countersign://server/b/memo://both";
    let resources = ["countersign://server/a/memo://both", "memo://a", address, "memo://b"];
    let alone = tempfile::tempdir().unwrap();
    for (door, client) in doors(&gate, alone.path()).await {
        assert_eq!(client.listed("tools/list").await, ["a__plain", "b__plain"], "{door}");
        assert_eq!(client.listed("prompts/list").await, ["a__p", "b__p"], "{door}");
        assert_eq!(client.listed("resources/list").await, resources, "{door}");
        let templates = client.listed("resources/templates/list").await;
        assert_eq!(templates, ["a://{x}", "b://{x}"], "{door}");
        let read = client.request("resources/read", json!({"uri": address})).await.unwrap();
        assert_eq!(read["echo"]["uri"], "memo://both", "{door}");
        let got = client.request("prompts/get", json!({"name": "a__p"})).await.unwrap();
        assert_eq!(got["echo"]["name"], "p", "{door}");
    }
    // The gate in its own process records in its own home.
    let records = records_when(&gate.home(), |records| {
        let of_servers = records.iter().filter(|record| record["server"] != "");
        of_servers.filter(|record| record["receipt"].is_object()).count() >= 4
    })
    .await;
    for (tool, server, resource) in
        [("resources/read", "b", "memo://both"), ("prompts/get", "a", "prompt/p")]
    {
        let of_tool = records.iter().filter(|record| record["tool"] == tool);
        let of_tool: Vec<&Value> = of_tool.collect();
        assert_eq!(of_tool.len(), 2, "{records:?}");
        for record in of_tool {
            assert_eq!(
                (&record["server"], &record["resource"]),
                (&json!(server), &json!(resource))
            );
        }
    }
    assert!(!whole_chains(&gate.home()).is_empty());
}

#[tokio::test]
async fn resources_of_two_real_servers_are_told_apart() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let two = |_: &Path| json!({"one": servers::everything(), "two": servers::everything()});
    let gate = servers::gate(two).await;
    gate.ready("one").await;
    gate.ready("two").await;
    let client = gate.http_at("/mcp/all").await;
    let resources = client.listed("resources/list").await;
    let of = |name: &str| {
        let start = format!("countersign://server/{name}/demo://");
        resources.iter().filter(|uri| uri.starts_with(&start)).count()
    };
    assert!(of("one") > 0 && of("one") == of("two"), "{resources:?}");
    let links = client.call("two__get-resource-links", json!({"count": 3})).await;
    let links = links["content"].as_array().unwrap().iter();
    let links = links.filter(|block| block["type"] == "resource_link");
    let links: Vec<String> = links.map(|link| link["uri"].as_str().unwrap().to_owned()).collect();
    assert_eq!(links.len(), 3);
    for uri in resources.iter().chain(&links) {
        let read = client.request("resources/read", json!({"uri": uri})).await.unwrap();
        assert_eq!(read["contents"][0]["uri"], **uri, "{read}");
    }
}
