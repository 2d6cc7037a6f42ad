//! Scenes in which agents touch files of the workspace, and in which something waits for a person.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::client::Client;
use testkit::foreign;
use testkit::gate::Gate;
use testkit::upstream::{counted, pids, scripted};
use testkit::wait::eventually;

use super::{drive, nothing, requested_call, rest};

/// A path whose beginning does not fit into a column.
const DEEP: &str =
    "a-folder-with-a-long-name/and-another-one-that-is-longer/the-plan-of-the-day.md";

async fn call(client: &Client, operation: &str, tool: &str, args: Value) -> Value {
    let tool = format!("workspace:{tool}");
    let asked = json!({"operation": operation, "tool": tool, "args": args});
    requested_call(client, &asked).await["code"].clone()
}

/// Makes one agent write over what another wrote, after an outdated read, and other calls.
async fn touch(one: &Client, other: &Client) {
    let write = |path: &str, content: &str| json!({"path": path, "content": content});
    for (client, operation, tool, args) in [
        (other, "write", "Write", write("shared.md", "what was read\n")),
        (one, "read", "Read", json!({"path": "shared.md"})),
        (other, "write", "Write", write("shared.md", "what the other wrote\n")),
        (one, "write", "Write", write("shared.md", "what one wrote\n")),
        (one, "write", "Write", write(DEEP, "first line\nsecond line\n")),
        (
            one,
            "write",
            "Edit",
            json!({"path": DEEP, "old_string": "second line", "new_string": "changed line"}),
        ),
        (one, "destructive", "Bash", json!({"command": "echo a-command-to-read"})),
    ] {
        assert_eq!(call(client, operation, tool, args.clone()).await, Value::Null, "{tool} {args}");
    }
    let refused = call(one, "read", "Bash", json!({"command": "echo refused"})).await;
    assert_eq!(refused, "SERVER_MISMATCH");
}

#[tokio::test]
async fn the_page_shows_what_agents_touched() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join(DEEP).parent().unwrap()).unwrap();
    let workspace = json!({"root": dir.path(), "write": true, "shell": true});
    let gate = Gate::start(|_| json!({}), json!({"workspace": workspace})).await;
    let (one, other) = (gate.http().await, gate.stdio().await);
    touch(&one, &other).await;
    let act = async |what: &str, args: Value| match what {
        "read" => call(&other, "read", "Read", json!({"path": DEEP})).await,
        what => nothing(what, args).await,
    };
    drive(&gate, "touch.mjs", json!({}), act).await;
}

#[tokio::test]
async fn the_page_leads_to_what_needs_a_person() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let list = |says: &str| {
        let tool = |name: &str| json!({"name": name, "description": format!("{name} {says}")});
        vec![tool("one"), tool("two"), tool("three")]
    };
    let mut tools = list("says something");
    tools.push(json!({"name": "grow", "x-do": {"become": list("says another thing")}}));
    tools.push(json!({"name": "complain", "x-do": "log"}));
    let tools = tools.into();
    let gate = Gate::start(|dir| json!({"s": counted(dir, "s", &tools)}), json!({})).await;
    gate.ready("s").await;
    let client = gate.http().await;
    let call = async |tool: &str| {
        requested_call(&client, &json!({"operation": "write", "tool": tool, "args": {}})).await
    };
    let act = async |what: &str, args: Value| match what {
        "grow" => call("s:grow").await,
        "call" => call(args["tool"].as_str().unwrap()).await,
        "complain" => {
            let args = json!({"operation": "write", "tool": "s:complain", "args": args});
            requested_call(&client, &args).await
        }
        "restarted" => {
            let other = || async { (pids(gate.dir.path(), "s").len() == 2).then_some(()) };
            eventually(other).await;
            json!({})
        }
        "server" => {
            let entry = rest(&gate, Method::GET, "/servers/pasted", None).await;
            json!({"state": entry["state"], "command": entry["command"], "args": entry["args"]})
        }
        what => nothing(what, args).await,
    };
    let look = json!([{"name": "look", "annotations": {"destructiveHint": false}}]);
    let second = scripted(gate.dir.path(), "second", &look);
    let block = json!({"mcpServers": {"second": second}}).to_string();
    drive(&gate, "tend.mjs", json!({"block": block}), act).await;
}
