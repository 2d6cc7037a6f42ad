//! Connections to servers: when they are made, how many calls they carry, and which clients share
//! them. Clients that accept requests have their own, so that requests reach the right one and no
//! client's folders leak to another.

use std::path::Path;

use serde_json::{Value, json};
use testkit::client::{Client, able, answers, text};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::{stdio_client, stdout};
use testkit::upstream::{counted, ended, pids};
use testkit::wait::eventually;

use crate::foreign::servers;

/// The maximum number of clients of one token with their own connection to one server.
const OWN_CONNECTIONS_MAX: usize = 16;

fn tools() -> Value {
    json!([
        {"name": "sample", "x-do": {"ask": "sampling/createMessage"}},
        {"name": "elicit", "x-do": {"ask": "elicitation/create"}},
        {"name": "roots", "x-do": {"ask": "roots/list"}},
        {"name": "pid", "x-do": {"work": {}}},
    ])
}

/// Starts a gate with one counted server `s` with this `sharing`.
async fn gate(sharing: &str) -> Gate {
    let servers = |dir: &Path| {
        let mut server = counted(dir, "s", &tools());
        server["sharing"] = sharing.into();
        json!({"s": server})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    gate
}

async fn stdio(gate: &Gate, who: &str) -> Client {
    stdio_client(gate.dir.path(), &["--server", "s"], able(), answers(who)).await
}

async fn http(gate: &Gate, who: &str) -> Client {
    gate.http_at_with("/mcp/s/s", able(), answers(who)).await
}

/// Returns the process that responds to this client.
async fn pid(client: &Client) -> i32 {
    let done = client.document("pid", json!({})).await;
    done["pid"].as_i64().unwrap().try_into().unwrap()
}

#[tokio::test]
async fn each_client_is_asked_what_its_own_call_needs() {
    let gate = gate("auto").await;
    let clients = [
        ("first", stdio(&gate, "first").await),
        ("second", stdio(&gate, "second").await),
        ("third", http(&gate, "third").await),
        ("fourth", http(&gate, "fourth").await),
    ];
    for tool in ["sample", "elicit", "roots"] {
        let calls = clients.iter().map(async |(who, client)| {
            let result = client.call(tool, json!({})).await;
            assert_ne!(result["isError"], true, "{who}: {result}");
            for (other, _) in &clients {
                assert_eq!(text(&result).contains(other), who == other, "{who} {tool}: {result}");
            }
        });
        futures_util::future::join_all(calls).await;
    }
    // The shared one, and one for each.
    assert_eq!(pids(gate.dir.path(), "s").len(), 5);
}

#[tokio::test]
async fn a_client_of_the_two_key_tools_is_asked_too() {
    let gate = gate("auto").await;
    let call = json!({"name": "s:sample", "intent": {"operation_type": "write"}});
    for client in [
        gate.stdio_with(able(), answers("mine")).await,
        gate.http_with(able(), answers("mine")).await,
    ] {
        let answer = client.document("call_tool_write", call.clone()).await;
        assert_eq!(answer["model"], "mine", "{answer}");
    }
}

#[tokio::test]
async fn a_client_is_asked_when_none_of_its_calls_runs() {
    for door in ["http", "stdio"] {
        let dir = tempfile::tempdir().unwrap();
        let (after, answer) = (dir.path().join("after"), dir.path().join("answer"));
        let later = json!({"method": "roots/list", "after": after, "write": answer});
        let tools = json!([{"name": "later", "x-do": {"ask_later": later}}]);
        let gate = Gate::scripted(tools).await;
        let client = match door {
            "http" => http(&gate, "mine").await,
            _ => stdio(&gate, "mine").await,
        };
        client.call("later", json!({})).await;
        std::fs::write(&after, "").unwrap();
        let words = eventually(|| async {
            std::fs::read_to_string(&answer).ok().filter(|words| !words.is_empty())
        })
        .await;
        assert!(words.contains("file:///mine"), "{door}: {words}");
    }
}

#[tokio::test]
async fn only_what_a_client_declared_is_asked_of_it() {
    let gate = gate("auto").await;
    let sampling = json!({"sampling": {}});
    let client = gate.http_at_with("/mcp/s/s", sampling, vec![answers("me").remove(0)]).await;
    let sampled = client.call("sample", json!({})).await;
    assert!(text(&sampled).contains(r#""model":"me""#), "{sampled}");
    let refused = client.call("roots", json!({})).await;
    assert!(text(&refused).contains("method not found"), "{refused}");
}

#[tokio::test]
async fn clients_that_cannot_be_asked_share_one_connection() {
    let gate = gate("auto").await;
    let shared = pids(gate.dir.path(), "s");
    for client in [gate.http_at("/mcp/s/s").await, gate.stdio_server("s").await] {
        assert_eq!([pid(&client).await], *shared);
        let refused = client.call("sample", json!({})).await;
        assert!(text(&refused).contains("method not found"), "{refused}");
    }
    assert_eq!(pids(gate.dir.path(), "s"), shared);
}

#[tokio::test]
async fn a_server_that_is_always_shared_never_asks_anybody() {
    let gate = gate("shared").await;
    let shared = pids(gate.dir.path(), "s");
    for client in [http(&gate, "http").await, stdio(&gate, "stdio").await] {
        assert_eq!([pid(&client).await], *shared);
        for tool in ["sample", "elicit", "roots"] {
            let refused = client.call(tool, json!({})).await;
            assert!(text(&refused).contains("method not found"), "{refused}");
        }
    }
    assert_eq!(pids(gate.dir.path(), "s"), shared);
}

#[tokio::test]
async fn a_clients_own_process_ends_with_the_client() {
    let gate = gate("per_client").await;
    let (first, second) = (gate.stdio_server("s").await, gate.http_at("/mcp/s/s").await);
    let (first_pid, second_pid) = (pid(&first).await, pid(&second).await);
    assert_ne!(first_pid, second_pid);
    assert_eq!(pid(&first).await, first_pid, "it keeps its process");
    let all = pids(gate.dir.path(), "s");
    assert_eq!(all[1..], [first_pid, second_pid]);
    first.peer.close("done");
    ended(first_pid).await;
    assert_eq!(pid(&second).await, second_pid, "the other client goes on");
    second.peer.close("done");
    ended(second_pid).await;
    let third = gate.http_at("/mcp/s/s").await;
    assert!(!all.contains(&pid(&third).await));
    let shared = rustix::process::Pid::from_raw(all[0]).unwrap();
    assert!(rustix::process::test_kill_process(shared).is_ok(), "the shared one stays");
}

#[tokio::test]
async fn a_client_whose_own_process_dies_gets_another() {
    let servers = |dir: &Path| {
        let tools = json!([{"name": "die", "x-do": "die"}, {"name": "pid", "x-do": {"work": {}}}]);
        let mut server = counted(dir, "s", &tools);
        server["sharing"] = "per_client".into();
        json!({"s": server})
    };
    let gate = Gate::start(servers, json!({})).await;
    let (client, other) = (gate.http_at("/mcp/s/s").await, gate.http_at("/mcp/s/s").await);
    let (before, others) = (pid(&client).await, pid(&other).await);
    let dead = client.call("die", json!({})).await;
    assert_eq!(testkit::client::refusal(&dead)["code"], "OUTCOME_UNKNOWN", "{dead}");
    let after = eventually(|| async {
        let result = client.call("pid", json!({})).await;
        let done: Value = serde_json::from_str(text(&result)).ok()?;
        done["pid"].as_i64()
    })
    .await;
    assert_ne!(after, i64::from(before));
    assert_eq!(pid(&other).await, others, "it was nobody else's");
}

#[tokio::test]
async fn clients_beyond_the_limit_of_own_connections_get_an_error() {
    let gate = gate("per_client").await;
    let mut clients = Vec::new();
    for _ in 0..OWN_CONNECTIONS_MAX {
        let client = gate.http_at("/mcp/s/s").await;
        pid(&client).await;
        clients.push(client);
    }
    let late = gate.http_at("/mcp/s/s").await;
    let result = late.call("pid", json!({})).await;
    assert_eq!(testkit::client::refusal(&result)["code"], "UPSTREAM_UNAVAILABLE", "{result}");
    let words = format!(
        "{OWN_CONNECTIONS_MAX} clients of token 'agent-token' already have a connection of their own"
    );
    assert!(text(&result).contains(&words), "{result}");
    let other = json!({"name": "other", "operations": ["read", "write", "destructive"],
        "surfaces": ["passthrough"]});
    let (_, made) = gate.rest(reqwest::Method::POST, "/api/v1/tokens", Some(other)).await;
    let other = made["token"].as_str().unwrap();
    pid(&gate.http_as(other, "/mcp/s/s", json!({}), vec![]).await).await;
    clients.pop().unwrap().peer.close("done");
    eventually(|| async { (late.call("pid", json!({})).await["isError"] != true).then_some(()) })
        .await;
}

#[tokio::test]
async fn one_clients_folders_do_not_become_anothers() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = servers::gate(|dir| json!({"f": servers::filesystem(dir)})).await;
    let folder = |who: &str| {
        let folder = gate.dir.path().join(who);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a.txt"), format!("words of {who}")).unwrap();
        folder
    };
    let (a, b, common) = (folder("a"), folder("b"), gate.dir.path().join("files"));
    std::fs::write(common.join("a.txt"), "words of all").unwrap();
    let with_roots = async |folder: &Path| {
        let roots = json!({"roots": [{"uri": format!("file://{}", folder.display())}]});
        gate.http_at_with("/mcp/s/f", json!({"roots": {}}), vec![("roots/list", roots)]).await
    };
    let read = async |client: &Client, folder: &Path| {
        let file = json!({"path": folder.join("a.txt")});
        text(&client.call("read_text_file", file).await).to_owned()
    };
    let (client_a, client_b) = (with_roots(&a).await, with_roots(&b).await);
    let plain = gate.http_at("/mcp/s/f").await;
    // The server requests the roots on its own, soon after the first call has opened the
    // connection.
    eventually(|| async { (read(&client_a, &a).await == "words of a").then_some(()) }).await;
    eventually(|| async { (read(&client_b, &b).await == "words of b").then_some(()) }).await;
    assert_eq!(read(&plain, &common).await, "words of all");
    for (client, foreign) in
        [(&client_a, &b), (&client_a, &common), (&client_b, &a), (&plain, &a), (&plain, &b)]
    {
        let words = read(client, foreign).await;
        assert!(words.contains("Access denied"), "{}: {words}", foreign.display());
    }
}

#[tokio::test]
async fn a_lazy_server_starts_when_it_is_needed_and_not_before() {
    let tools = json!([{"name": "pid", "x-do": {"work": {}}}]);
    let servers = |dir: &Path| {
        let mut late = counted(dir, "late", &tools);
        late["start"] = "lazy".into();
        json!({"late": late, "s": counted(dir, "s", &tools)})
    };
    let gate = Gate::start(servers, json!({})).await;
    let started = || pids(gate.dir.path(), "late").len();
    let (http, stdio) = (gate.http_at("/mcp/s/s").await, gate.stdio_server("s").await);
    for client in [&http, &stdio] {
        client.request("tools/list", json!({})).await.unwrap();
        pid(client).await;
    }
    let table = stdout(&gate.cli(&["upstream", "list"]).await);
    let row = table.lines().find(|line| line.starts_with("late")).unwrap();
    assert!(row.contains("idle"), "{table}");
    gate.server_when("late", |entry| entry["state"] == "idle").await;
    assert_eq!(started(), 0, "clients of another server do not need it");
    let agent = gate.http().await;
    let call = json!({"name": "late:pid", "intent": {"operation_type": "write"}});
    let done = agent.document("call_tool_write", call).await;
    assert_eq!([done["pid"].as_i64().unwrap()], [i64::from(pids(gate.dir.path(), "late")[0])]);
    pid(&gate.http_at("/mcp/s/late").await).await;
    assert_eq!(started(), 1, "once is enough");
}

#[tokio::test]
async fn a_search_needs_every_server() {
    let servers = |dir: &Path| {
        let mut late =
            counted(dir, "late", &json!([{"name": "bake", "description": "Bakes bread"}]));
        late["start"] = "lazy".into();
        json!({"late": late})
    };
    for view in ["/mcp", "/mcp/all"] {
        let gate = Gate::start(servers, json!({})).await;
        let client = gate.http_at(view).await;
        if view == "/mcp" {
            assert_eq!(pids(gate.dir.path(), "late"), [0; 0]);
            let found = client.document("retrieve_tools", json!({"query": "bake bread"})).await;
            assert_eq!(found["tools"][0]["name"], "late:bake", "{found}");
        } else {
            let list = client.request("tools/list", json!({})).await.unwrap();
            assert_eq!(list["tools"][0]["name"], "late__bake", "{list}");
        }
    }
}

#[tokio::test]
async fn a_server_that_hangs_holds_up_no_client_of_another() {
    let servers = |dir: &Path| {
        json!({
            "hangs": {"command": "sh", "args": ["-c", "cat > /dev/null"]},
            "s": counted(dir, "s", &tools()),
        })
    };
    let gate = Gate::start(servers, json!({"connect_timeout": "10m"})).await;
    gate.ready("s").await;
    let (everywhere, here) = (gate.http().await, gate.http_at("/mcp/s/s").await);
    // A search waits for every server, a client of one for that one alone.
    let searching = everywhere.document("retrieve_tools", json!({"query": "x"}));
    let working = async {
        here.request("tools/list", json!({})).await.unwrap();
        pid(&here).await
    };
    tokio::select! {
        biased;
        found = searching => panic!("the search came first: {found}"),
        _ = working => {}
    }
}

#[tokio::test]
async fn calls_wait_for_their_turn_where_a_server_takes_few_at_once() {
    let tools = |ms: u64| json!([{"name": "work", "x-do": {"work": {"ms": ms}}}]);
    let servers = |dir: &Path| {
        let bounded = |name: &str, bound: u32| {
            let mut server = counted(dir, name, &tools(30));
            server["max_concurrent"] = bound.into();
            server
        };
        // Long enough for concurrent calls to overlap on a busy machine too.
        let any = counted(dir, "any", &tools(500));
        json!({"one": bounded("one", 1), "two": bounded("two", 2), "any": any})
    };
    let gate = Gate::start(servers, json!({})).await;
    let clients = [gate.http_at("/mcp/all").await, gate.http_at("/mcp/all").await];
    for (server, fits) in [("one", 1..=1), ("two", 1..=2), ("any", 3..=8)] {
        let name = format!("{server}__work");
        let calls = (0..8).map(async |turn| {
            let done = clients[turn % 2].document(&name, json!({})).await;
            done["together"].as_u64().unwrap()
        });
        let together = futures_util::future::join_all(calls).await;
        let most = together.iter().max().unwrap();
        assert!(fits.contains(most), "{server}: {together:?}");
    }
}
