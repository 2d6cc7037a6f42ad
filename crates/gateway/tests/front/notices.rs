//! Notifications in both directions: each client gets what it asked for, and what belongs to its own
//! calls, on each view.

use serde_json::{Value, json};
use testkit::client::{Client, text};
use testkit::wait::eventually;

use crate::dice::Dice;
use crate::gate::{DOORS, Gate};
use crate::offer::{
    ADDRESS_A, ADDRESS_B, MESSAGE, RESOURCES_CHANGED, TwoOffers, UPDATED, offer, say,
};
use crate::server::Server;

/// A gate with one server `s` that has everything.
async fn gate() -> (Gate, Server) {
    let server = Server::scripted(offer("s"));
    (Gate::of(&server).await, server)
}

async fn subscription(client: &Client, change: &str, uri: &str) {
    client.request(&format!("resources/{change}"), json!({"uri": uri})).await.unwrap();
}

#[tokio::test]
async fn random_notifications_arrive_character_for_character_in_both_directions() {
    const METHOD: &str = "notifications/custom/random";
    let mut dice = Dice(2);
    let params: Vec<String> = (0..50).map(|_| format!(r#"{{ "x" :{}}}"#, dice.json(4))).collect();
    let messages: Vec<Value> =
        params.iter().map(|params| json!({"method": METHOD, "params": params})).collect();
    let server = Server::scripted(json!([{"name": "tell", "x-do": {"notify": messages}}]));
    let gate = Gate::of(&server).await;
    let client = gate.able("/mcp/s/s", "me").await;
    client.call("tell", json!({})).await;
    assert_eq!(client.told_when(METHOD, params.len()).await, params);
    for params in &params {
        // One at a time: what does not wait for a response may be overtaken.
        say(&client, METHOD, Some(params)).await;
        server.hears(&format!("{METHOD} {params}")).await;
    }
}

#[tokio::test]
async fn updates_reach_those_who_subscribed_and_nobody_else() {
    for door in DOORS {
        let (gate, server) = gate().await;
        let client = || gate.client_at(door, "/mcp/s/s", json!({}), vec![]);
        let (one, two, three) = (client().await, client().await, client().await);
        let asked = || server.heard_besides().len();
        subscription(&one, "subscribe", "memo://both").await;
        subscription(&two, "subscribe", "memo://both").await;
        subscription(&two, "subscribe", "memo://s").await;
        three.call("update", json!({})).await;
        let both = r#"{"uri":"memo://both"}"#;
        assert_eq!(one.told_when(UPDATED, 1).await, [both], "{door:?}");
        assert_eq!(two.told_when(UPDATED, 1).await, [both], "{door:?}");
        let before = asked();
        subscription(&one, "unsubscribe", "memo://both").await;
        assert_eq!(asked(), before, "another client still wants it");
        three.call("update", json!({})).await;
        three.call("update_own", json!({})).await;
        assert_eq!(two.told_when(UPDATED, 3).await.len(), 3, "{door:?}");
        // The server restarts, and the gate subscribes again for those who are left.
        assert!(gate.gateway.restart("s").await);
        eventually(|| async { (asked() >= before + 2).then_some(()) }).await;
        three.call("update_own", json!({})).await;
        assert_eq!(two.told_when(UPDATED, 4).await.len(), 4, "{door:?}");
        two.peer.close("done");
        let left = || async { (server.count("resources/unsubscribe") == 2).then_some(()) };
        eventually(left).await;
        assert_eq!((one.told(UPDATED).len(), three.told(UPDATED).len()), (1, 0), "{door:?}");
    }
}

#[tokio::test]
async fn updates_of_all_servers_reach_subscribers_under_the_address_they_used() {
    for door in DOORS {
        let TwoOffers { gate, a, .. } = TwoOffers::start().await;
        let client = || gate.client_at(door, "/mcp/all", json!({}), vec![]);
        let (one, two, three) = (client().await, client().await, client().await);
        subscription(&one, "subscribe", ADDRESS_A).await;
        subscription(&two, "subscribe", ADDRESS_B).await;
        three.call("a__update", json!({})).await;
        three.call("b__update", json!({})).await;
        assert_eq!(one.told_when(UPDATED, 1).await, [json!({"uri": ADDRESS_A}).to_string()]);
        assert_eq!(two.told_when(UPDATED, 1).await, [json!({"uri": ADDRESS_B}).to_string()]);
        subscription(&one, "unsubscribe", ADDRESS_A).await;
        let asked = a.heard_besides();
        let own = r#"resources/unsubscribe {"uri":"memo://both"}"#;
        assert!(asked.contains(&own.to_owned()), "{door:?}: {asked:?}");
        three.call("a__update", json!({})).await;
        three.call("b__update", json!({})).await;
        assert_eq!(two.told_when(UPDATED, 2).await.len(), 2, "{door:?}");
        assert_eq!((one.told(UPDATED).len(), three.told(UPDATED).len()), (1, 0), "{door:?}");
    }
}

async fn set_level(client: &Client, level: &str) {
    client.request("logging/setLevel", json!({"level": level})).await.unwrap();
}

#[tokio::test]
async fn log_messages_reach_each_client_from_its_own_level_on() {
    for door in DOORS {
        let (gate, server) = gate().await;
        let client = || gate.client_at(door, "/mcp/s/s", json!({}), vec![]);
        let (quiet, curious, silent) = (client().await, client().await, client().await);
        set_level(&curious, "debug").await;
        set_level(&quiet, "error").await;
        let most = r#"logging/setLevel {"level":"debug"}"#;
        assert_eq!(server.heard_besides(), [most, most], "it keeps the most detailed level");
        let refused = silent.refused("logging/setLevel", json!({"level": "loud"})).await;
        assert_eq!(refused.code, -32602, "{door:?}");
        silent.call("debug", json!({})).await;
        silent.call("error", json!({})).await;
        assert_eq!(curious.told_when(MESSAGE, 2).await.len(), 2, "{door:?}");
        let heard = quiet.told_when(MESSAGE, 1).await;
        assert_eq!(heard, [r#"{"level":"error","data":"s"}"#], "{door:?}");
        assert_eq!(silent.told(MESSAGE), [""; 0], "{door:?}");
    }
}

#[tokio::test]
async fn a_log_level_reaches_all_servers_and_those_that_come_later() {
    let TwoOffers { gate, a, b, tools } = TwoOffers::start().await;
    let (curious, silent) = (gate.client("/mcp/all").await, gate.client("/mcp/all").await);
    let answer = curious.request("logging/setLevel", json!({"level": "debug"})).await.unwrap();
    assert_eq!(answer, json!({}));
    let refused = silent.refused("logging/setLevel", json!({"level": "loud"})).await;
    assert_eq!(refused.code, -32602);
    let later = Server::scripted(offer("later"));
    let servers = [("a", &a), ("b", &b), ("tools", &tools), ("later", &later)];
    gate.reconfigure(&servers, json!({})).await;
    gate.ready("later").await;
    later.hears(r#"logging/setLevel {"level":"debug"}"#).await;
    for name in ["a", "b", "later"] {
        silent.call(&format!("{name}__debug"), json!({})).await;
    }
    let mut heard = curious.told_when(MESSAGE, 3).await;
    heard.sort();
    let message = |name: &str| format!(r#"{{"level":"debug","data":"{name}"}}"#);
    assert_eq!(heard, ["a", "b", "later"].map(message));
    assert_eq!(silent.told(MESSAGE), [""; 0]);
}

#[tokio::test]
async fn a_client_with_its_own_connection_hears_everything_within_its_call() {
    for door in DOORS {
        let (gate, server) = gate().await;
        let able = || gate.able_at(door, "/mcp/s/s", "me");
        let (one, two) = (able().await, able().await);
        let shared = gate.client_at(door, "/mcp/s/s", json!({}), vec![]).await;
        for client in [&one, &two] {
            client.call("plain", json!({})).await;
        }
        for (tool, method, params) in [
            ("debug", MESSAGE, r#"{"level":"debug","data":"s"}"#),
            ("moved", "notifications/custom/moved", r#"{"n":1E2}"#),
            ("opened", "notifications/elicitation/complete", r#"{"elicitationId":"s"}"#),
            ("update_own", UPDATED, r#"{"uri":"memo://s"}"#),
        ] {
            one.call(tool, json!({})).await;
            let heard = one.told(method);
            assert_eq!(heard, [params], "{door:?}: it comes before the result of {tool}");
            shared.call(tool, json!({})).await;
            assert!(two.told(method).is_empty() && shared.told(method).is_empty(), "{tool}");
        }
        let asked = one.call("ask_own", json!({})).await;
        assert!(asked.to_string().contains("answer"), "{door:?}: {asked}");
        say(&one, "notifications/roots/list_changed", None).await;
        say(&one, "notifications/custom/hello", Some(r#"{"n":1E2}"#)).await;
        server.hears("notifications/roots/list_changed -").await;
        server.hears(r#"notifications/custom/hello {"n":1E2}"#).await;
    }
}

#[tokio::test]
async fn a_client_of_all_servers_hears_the_protocols_notifications_and_no_others() {
    for door in DOORS {
        let TwoOffers { gate, b, .. } = TwoOffers::start().await;
        let one = gate.able_at(door, "/mcp/all", "one").await;
        let two = gate.able_at(door, "/mcp/all", "two").await;
        for (tool, method, params) in [
            ("b__debug", MESSAGE, json!({"level": "debug", "data": "b"})),
            ("b__opened", "notifications/elicitation/complete", json!({"elicitationId": "b"})),
            ("b__update", UPDATED, json!({"uri": ADDRESS_B})),
        ] {
            one.call(tool, json!({})).await;
            let heard = one.told(method).into_iter();
            let heard: Vec<Value> = heard.map(|it| serde_json::from_str(&it).unwrap()).collect();
            assert_eq!(heard, [params], "{door:?}: it comes before the result of {tool}");
        }
        one.call("b__moved", json!({})).await;
        let asked = one.call("b__ask_own", json!({})).await;
        assert!(text(&asked).contains("method not found"), "{asked}");
        say(&one, "notifications/roots/list_changed", None).await;
        b.hears("notifications/roots").await;
        assert_eq!(one.told("notifications/custom/moved"), [""; 0], "{door:?}");
        assert!(two.notices.lock().unwrap().is_empty(), "{door:?}: nothing crosses");
    }
}

#[tokio::test]
async fn a_change_of_resources_is_told_once_to_each_client_that_sees_the_server() {
    let (gate, _) = gate().await;
    let mut clients: Vec<Client> = gate.doors("/mcp/s/s").await.map(|(_, client)| client).into();
    clients.push(gate.able("/mcp/s/s", "me").await);
    let all = gate.client("/mcp/all").await;
    for client in &clients {
        client.request("resources/list", json!({})).await.unwrap();
    }
    clients[0].call("changed", json!({})).await;
    for client in &clients[..2] {
        assert_eq!(client.told_when(RESOURCES_CHANGED, 1).await.len(), 1);
    }
    clients[2].call("changed", json!({})).await;
    clients[2].told_when(RESOURCES_CHANGED, 1).await;
    for client in &clients {
        client.request("ping", json!({})).await.unwrap();
        assert_eq!(client.told(RESOURCES_CHANGED).len(), 1);
    }
    assert_eq!(all.told(RESOURCES_CHANGED), [""; 0]);
}
