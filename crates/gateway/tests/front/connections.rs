//! Connections to servers: when they are made, how many calls they carry, and which clients share
//! them. Clients that accept requests have their own, so that requests reach the right one.

use domain::upstream::UpstreamState;
use serde_json::{Value, json};
use testkit::client::{Client, able, answers, code, text};
use testkit::wait::eventually;

use crate::gate::{DOORS, Door, Gate};
use crate::server::Server;
use crate::view::{PASSING, VIEWS, call_on, name_on};

/// The maximum number of clients of one token with their own connection to one server.
const OWN_CONNECTIONS_MAX: usize = 16;

fn tools() -> Value {
    json!([
        {"name": "sample", "x-do": {"ask": "sampling/createMessage"}},
        {"name": "elicit", "x-do": {"ask": "elicitation/create"}},
        {"name": "roots", "x-do": {"ask": "roots/list"}},
        {"name": "pid", "x-do": {"work": {}}},
        {"name": "hang_up", "x-do": "hang_up"},
    ])
}

/// Starts a gate with one server `s` with this `sharing`.
async fn gate(sharing: &str) -> (Gate, Server) {
    let server = Server::scripted(tools()).with("sharing", sharing);
    (Gate::of(&server).await, server)
}

/// Returns the number of the connection that a client's calls go over.
async fn connection(client: &Client) -> u32 {
    let done = client.document("pid", json!({})).await;
    done["pid"].as_u64().unwrap().try_into().unwrap()
}

#[tokio::test]
async fn each_client_is_asked_what_its_own_call_needs() {
    for view in PASSING {
        let (gate, server) = gate("auto").await;
        let clients = [
            ("first", gate.able_at(Door::Memory, view, "first").await),
            ("second", gate.able_at(Door::Memory, view, "second").await),
            ("third", gate.able_at(Door::Http, view, "third").await),
            ("fourth", gate.able_at(Door::Http, view, "fourth").await),
        ];
        for tool in ["sample", "elicit", "roots", "sample"].map(|tool| name_on(view, tool)) {
            let calls = clients.iter().map(async |(who, client)| {
                let result = client.call(&tool, json!({})).await;
                assert_ne!(result["isError"], true, "{view} {who}: {result}");
                for (other, _) in &clients {
                    let has = text(&result).contains(other);
                    assert_eq!(has, who == other, "{view} {who} {tool}: {result}");
                }
            });
            futures_util::future::join_all(calls).await;
        }
        assert_eq!(server.opened(), 5, "the shared one, and one for each");
    }
}

#[tokio::test]
async fn a_client_of_the_two_key_tools_is_asked_too() {
    let (gate, _) = gate("auto").await;
    for door in DOORS {
        let client = gate.able_at(door, "/mcp", "mine").await;
        let answer = client.two_key_call("write", "s:sample", json!({})).await;
        assert!(text(&answer).contains(r#""model":"mine""#), "{door:?}: {answer}");
    }
}

#[tokio::test]
async fn a_client_is_asked_when_none_of_its_calls_runs() {
    for door in DOORS {
        let dir = tempfile::tempdir().unwrap();
        let (after, answer) = (dir.path().join("after"), dir.path().join("answer"));
        let later = json!({"method": "roots/list", "after": after, "write": answer});
        let tools = json!([{"name": "later", "x-do": {"ask_later": later}}]);
        let gate = Gate::of(&Server::scripted(tools)).await;
        let client = gate.able_at(door, "/mcp/s/s", "mine").await;
        client.call("later", json!({})).await;
        std::fs::write(&after, "").unwrap();
        let words = eventually(|| async {
            std::fs::read_to_string(&answer).ok().filter(|words| !words.is_empty())
        })
        .await;
        assert!(words.contains("file:///mine"), "{door:?}: {words}");
    }
}

#[tokio::test]
async fn only_what_a_client_declared_is_asked_of_it() {
    let (gate, _) = gate("auto").await;
    let sampling = json!({"sampling": {}});
    let client = gate.client_at(Door::Memory, "/mcp/s/s", sampling, answers("me")).await;
    let sampled = client.call("sample", json!({})).await;
    assert!(text(&sampled).contains(r#""model":"me""#), "{sampled}");
    for tool in ["elicit", "roots"] {
        let refused = client.call(tool, json!({})).await;
        assert!(text(&refused).contains("method not found"), "{refused}");
    }
}

/// Clients that are never asked, by the server's `sharing` or because they cannot be.
#[tokio::test]
async fn clients_that_are_not_asked_share_one_connection() {
    for (sharing, capabilities) in [("auto", json!({})), ("shared", able())] {
        let (gate, server) = gate(sharing).await;
        for view in VIEWS {
            for door in DOORS {
                let client = gate.client_at(door, view, capabilities.clone(), answers("me")).await;
                for tool in ["sample", "elicit", "roots"] {
                    let params = call_on(view, tool, json!({}));
                    let refused = client.request("tools/call", params).await.unwrap();
                    let is_refused = text(&refused).contains("method not found");
                    assert!(is_refused, "{sharing} {door:?} {view}: {refused}");
                }
            }
        }
        assert_eq!(server.opened(), 1, "{sharing}");
    }
}

#[tokio::test]
async fn a_clients_own_connection_ends_with_the_client() {
    let (gate, server) = gate("per_client").await;
    let [(_, first), (_, second)] = gate.doors("/mcp/s/s").await;
    assert_eq!((connection(&first).await, connection(&second).await), (2, 3));
    assert_eq!(connection(&first).await, 2, "it keeps its connection");
    first.peer.close("done");
    server.ended(2).await;
    assert_eq!(connection(&second).await, 3, "the other client keeps its connection");
    second.peer.close("done");
    server.ended(3).await;
    assert_eq!(connection(&gate.client("/mcp/s/s").await).await, 4);
    assert!(!server.peer(1).is_closed(), "the shared one stays");
}

#[tokio::test]
async fn a_client_whose_own_connection_is_lost_gets_another() {
    let (gate, _) = gate("per_client").await;
    let [(_, client), (_, other)] = gate.doors("/mcp/s/s").await;
    let (before, others) = (connection(&client).await, connection(&other).await);
    let lost = client.call("hang_up", json!({})).await;
    assert_eq!(code(&lost), "OUTCOME_UNKNOWN", "{lost}");
    eventually(|| async { (code(&client.call("pid", json!({})).await) == "ok").then_some(()) })
        .await;
    assert_ne!(connection(&client).await, before);
    assert_eq!(connection(&other).await, others, "it was nobody else's");
}

#[tokio::test]
async fn clients_beyond_the_limit_of_own_connections_get_an_error() {
    let (gate, _) = gate("per_client").await;
    let mut clients = Vec::new();
    for _ in 0..OWN_CONNECTIONS_MAX {
        let client = gate.client("/mcp/s/s").await;
        connection(&client).await;
        clients.push(client);
    }
    let late = gate.client("/mcp/s/s").await;
    let result = late.call("pid", json!({})).await;
    assert_eq!(code(&result), "UPSTREAM_UNAVAILABLE", "{result}");
    let words = format!(
        "{OWN_CONNECTIONS_MAX} clients of token 'agent-token' already have a connection of their own"
    );
    assert!(text(&result).contains(&words), "{result}");
    let scope = json!({"operations": ["read", "write", "destructive"],
        "surfaces": ["passthrough"]});
    let secret = gate.token("other", scope).await;
    connection(&gate.client_as(&secret, "/mcp/s/s", json!({}), vec![]).await).await;
    clients.pop().unwrap().peer.close("done");
    eventually(|| async { (code(&late.call("pid", json!({})).await) == "ok").then_some(()) }).await;
}

#[tokio::test]
async fn a_lazy_server_starts_when_it_is_needed_and_not_before() {
    let late = Server::scripted(tools()).with("start", "lazy");
    let server = Server::scripted(tools());
    let gate = Gate::open(&[("late", &late), ("s", &server)], json!({})).await;
    for (_, client) in gate.doors("/mcp/s/s").await {
        client.listed("tools/list").await;
        connection(&client).await;
    }
    assert_eq!(gate.server("late").state, UpstreamState::Idle);
    assert_eq!(late.opened(), 0, "clients of another server do not need it");
    let agent = gate.client("/mcp").await;
    assert_eq!(agent.code_of("write", "late:pid").await, "ok");
    connection(&gate.client("/mcp/s/late").await).await;
    assert_eq!(late.opened(), 1, "once is enough");
}

#[tokio::test]
async fn a_search_needs_every_server() {
    for view in ["/mcp", "/mcp/all"] {
        let tools = json!([{"name": "bake", "description": "Bakes bread"}]);
        let late = Server::scripted(tools).with("start", "lazy");
        let gate = Gate::open(&[("late", &late)], json!({})).await;
        let client = gate.client(view).await;
        if view == "/mcp" {
            assert_eq!(late.opened(), 0);
            let found = client.document("retrieve_tools", json!({"query": "bake bread"})).await;
            assert_eq!(found["tools"][0]["name"], "late:bake", "{found}");
        } else {
            assert_eq!(client.listed("tools/list").await, ["late__bake"]);
        }
    }
}

#[tokio::test]
async fn a_server_that_hangs_holds_up_no_client_of_another() {
    let (hangs, server) = (Server::written(json!({})), Server::scripted(tools()));
    let servers = [("hangs", &hangs), ("s", &server)];
    let gate = Gate::open(&servers, json!({"connect_timeout": "10m"})).await;
    gate.ready("s").await;
    let (everywhere, here) = (gate.client("/mcp").await, gate.client("/mcp/s/s").await);
    // A search waits for every server, a client of one for that one alone.
    let searching = everywhere.document("retrieve_tools", json!({"query": "x"}));
    let working = async {
        here.listed("tools/list").await;
        connection(&here).await
    };
    tokio::select! {
        biased;
        found = searching => panic!("the search came first: {found}"),
        _ = working => {}
    }
}

#[tokio::test]
async fn calls_wait_for_their_turn_where_a_server_takes_few_at_once() {
    let working = |ms: u64| json!([{"name": "work", "x-do": {"work": {"ms": ms}}}]);
    let [one, two] = [1, 2].map(|n| Server::scripted(working(30)).with("max_concurrent", n));
    // Long enough for concurrent calls to overlap on a busy machine too.
    let any = Server::scripted(working(500));
    let gate = Gate::start(&[("one", &one), ("two", &two), ("any", &any)], json!({})).await;
    let clients = gate.doors("/mcp/all").await.map(|(_, client)| client);
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
