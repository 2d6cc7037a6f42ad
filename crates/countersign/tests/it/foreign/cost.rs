//! Tokens that an agent spends before its first call: the gate's definitions and one search,
//! compared with the definitions of three servers that are connected without a gate. A token is
//! four characters.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::client::{Client, text};
use testkit::foreign;
use testkit::program::{client_of, command};

use super::servers;

/// Any ordinary search; its answer is as long as the gate makes it.
const QUERY: &str = "read a file";

/// A list of tools, in tokens.
#[derive(Clone, Copy, Default)]
struct ListTokens {
    /// Every member, as sent to the client.
    sent: usize,
    /// The members that clients pass on to a model.
    shown: usize,
}

fn tokens(text: &str) -> usize {
    text.chars().count() / 4
}

async fn listed(client: &Client) -> ListTokens {
    let list = client.request("tools/list", json!({})).await.unwrap();
    let tools = list["tools"].as_array().unwrap();
    let shown = |tool: &Value| {
        json!({
            "name": tool["name"], "description": tool["description"],
            "inputSchema": tool["inputSchema"],
        })
    };
    let shown: Vec<Value> = tools.iter().map(shown).collect();
    ListTokens {
        sent: tokens(&list["tools"].to_string()),
        shown: tokens(&json!(shown).to_string()),
    }
}

/// Connects to the server of a config entry, without a gate.
async fn direct(dir: &Path, entry: &Value) -> Client {
    let mut command = command(Path::new(entry["command"].as_str().unwrap()), dir);
    for arg in entry["args"].as_array().into_iter().flatten() {
        command.arg(arg.as_str().unwrap());
    }
    for (name, value) in entry["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap());
    }
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    client_of(piped.spawn().unwrap(), json!({}), vec![]).await
}

fn three(dir: &Path) -> Value {
    json!({
        "everything": servers::everything(), "filesystem": servers::filesystem(dir),
        "memory": servers::memory(dir),
    })
}

#[tokio::test]
async fn tokens_of_the_gate_and_a_search_beside_three_servers_directly() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = servers::gate(three).await;
    let client = gate.http().await;
    let own = listed(&client).await;
    let answer = client.call("retrieve_tools", json!({"query": QUERY})).await;
    let search = tokens(text(&answer));
    println!("| what | tokens sent | of these shown to a model |\n|---|---:|---:|");
    println!("| the gate's seven definitions | {} | {} |", own.sent, own.shown);
    println!("| one search, `{QUERY}` | {search} | {search} |");
    println!("| both | {} | {} |", own.sent + search, own.shown + search);
    let mut directly = ListTokens::default();
    for (name, entry) in three(gate.dir.path()).as_object().unwrap() {
        let server = listed(&direct(gate.dir.path(), entry).await).await;
        println!("| {name}, directly | {} | {} |", server.sent, server.shown);
        assert!(server.sent > 0 && server.shown > 0, "{name}");
        directly.sent += server.sent;
        directly.shown += server.shown;
    }
    println!("| all three, directly | {} | {} |", directly.sent, directly.shown);
    assert!(own.sent <= 1200 && search <= 800, "{} {search}", own.sent);
    assert!(own.shown + search < directly.shown / 2);
    assert_eq!(gate.stop().await, Some(0));
}
