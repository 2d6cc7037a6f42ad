//! Requests besides calls are decided and recorded like calls: by the locks of their server and the
//! rights of their caller.

use domain::tool::Class;
use serde_json::json;
use store::RecordStatus;
use testkit::wait::eventually;

use crate::gate::Gate;
use crate::offer::{ADDRESS_B, OPERATIONS, TwoOffers, echoed, offer, say};
use crate::server::Server;

/// The code of a request that the gate refuses.
const REFUSED: i64 = -32003;

#[tokio::test]
async fn each_request_is_recorded_with_its_server_class_and_target() {
    let TwoOffers { gate, .. } = TwoOffers::start().await;
    let (one, all) = (gate.client("/mcp/s/b").await, gate.client("/mcp/all").await);
    for (client, method, params, recorded) in [
        (&one, "resources/read", json!({"uri": "memo://x"}), [("b", "memo://x")].as_slice()),
        (&one, "prompts/get", json!({"name": "p"}), &[("b", "prompt/p")]),
        (
            &one,
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {}}),
            &[("b", "prompt/p")],
        ),
        (&one, "custom/reindex", json!({}), &[("b", "")]),
        (&all, "resources/read", json!({"uri": ADDRESS_B}), &[("b", "memo://both")]),
        (&all, "prompts/get", json!({"name": "a__p"}), &[("a", "prompt/p")]),
        (&all, "logging/setLevel", json!({"level": "error"}), &[("a", ""), ("b", "")]),
    ] {
        let before = gate.records().await.len();
        client.request(method, params).await.unwrap();
        let mut records = gate.records().await;
        records.truncate(records.len() - before);
        let class = if method == "custom/reindex" { Class::Write } else { Class::Read };
        let mut found = Vec::new();
        for record in &records {
            assert_eq!((&*record.tool, record.status), (method, RecordStatus::Success));
            assert_eq!(record.effective_class, Some(class), "{method}");
            assert!(record.receipt_id.is_some(), "{method}");
            let target = record.target.as_ref();
            let resource = target.map_or("", |target| &*target.resource);
            assert!(target.is_none_or(|target| target.system == record.server), "{record:?}");
            found.push((&*record.server, resource));
        }
        found.sort_unstable();
        assert_eq!(found, recorded, "{method}");
    }
    let failed = one.refused("custom2/none", json!({})).await;
    assert_eq!(failed.code, -32601, "the server's own answer");
    assert_eq!(gate.records().await[0].error_code.as_deref(), Some("UPSTREAM_ERROR"));
}

/// Requests of each class, and whether they only read.
const CLASSES: [(&str, &str, bool); 4] = [
    ("resources/read", r#"{"uri":"memo://s"}"#, true),
    ("prompts/get", r#"{"name":"p"}"#, true),
    ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{}}"#, true),
    ("custom/reindex", "{}", false),
];

#[tokio::test]
async fn a_token_without_the_right_to_write_reads_and_uses_no_method_of_a_servers_own() {
    let server = Server::scripted(offer("s"));
    let gate = Gate::of(&server).await;
    let scope = json!({"operations": ["read"], "surfaces": ["passthrough"]});
    let secret = gate.token("reader", scope).await;
    let reader = gate.client_as(&secret, "/mcp/s/s", json!({}), vec![]).await;
    for (method, params, reads) in CLASSES {
        if reads {
            assert_eq!(reader.request_text(method, params).await.unwrap(), echoed(params));
        } else {
            let refused = reader.refused(method, json!({})).await;
            assert!(refused.text().get().contains("NOT_PERMITTED"), "{}", refused.text());
        }
    }
    say(&reader, "notifications/custom/x", None).await;
    let refused = || async {
        let records = gate.records().await;
        let mut blocked = records.iter().filter(|it| it.status == RecordStatus::Blocked);
        blocked.any(|record| record.tool == "notifications/custom/x").then_some(())
    };
    eventually(refused).await;
    assert_eq!(server.heard().iter().filter(|line| line.contains("custom")).count(), 0);
}

#[tokio::test]
async fn a_server_that_is_switched_off_shows_and_does_nothing() {
    let server = Server::scripted(offer("s"));
    let gate = Gate::of(&server).await;
    let client = gate.client("/mcp/s/s").await;
    client.request("resources/subscribe", json!({"uri": "memo://s"})).await.unwrap();
    gate.disable_server("s").await;
    let heard = server.heard_besides().len();
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        assert_eq!(client.listed(method).await, [""; 0], "{method}");
    }
    for (method, params, _) in CLASSES {
        let refused = client.refused(method, serde_json::from_str(params).unwrap()).await;
        assert_eq!(refused.code, REFUSED, "{method}: {}", refused.message);
        assert!(refused.message.contains("server_disabled"), "{}", refused.message);
    }
    assert!(server.heard_besides().len() <= heard + 1, "it may only be unsubscribed from");
}

#[tokio::test]
async fn scopes_and_locks_hold_for_everything_of_all_servers() {
    let script = |description: &str| {
        json!({"tools": [{"name": "tell", "x-do": "tell"}],
            "prompts": [{"name": "p", "description": description}],
            "resources": [{"uri": "memo://x", "name": "x"}]})
    };
    let server = Server::scripted(script("first"));
    let hidden = Server::scripted(offer("hidden"));
    let gate = Gate::start(&[("s", &server), ("hidden", &hidden)], json!({})).await;
    let scope = json!({"servers": ["s"], "operations": OPERATIONS, "surfaces": ["passthrough"]});
    let secret = gate.token("narrow", scope).await;
    let client = gate.client_as(&secret, "/mcp/all", json!({}), vec![]).await;
    assert_eq!(client.listed("prompts/list").await, ["s__p"]);
    assert_eq!(client.listed("resources/list").await, ["memo://x"]);
    assert!(client.welcome["capabilities"].get("logging").is_none(), "the other server's");
    for (method, params, code) in [
        ("prompts/get", json!({"name": "hidden__p"}), -32602),
        ("resources/read", json!({"uri": "ui://page"}), -32002),
        ("resources/read", json!({"uri": "countersign://server/hidden/memo://hidden"}), -32002),
    ] {
        assert_eq!(client.refused(method, params.clone()).await.code, code, "{params}");
    }
    server.replace(script("other"));
    client.call("s__tell", json!({})).await;
    let is_hidden = || async { client.listed("prompts/list").await.is_empty().then_some(()) };
    eventually(is_hidden).await;
    let locked = client.refused("prompts/get", json!({"name": "s__p"})).await;
    assert!(locked.text().get().contains("TOOL_BLOCKED"), "{}", locked.text());
    gate.disable_server("s").await;
    assert_eq!(client.listed("resources/list").await, [""; 0]);
    let address = json!({"uri": "countersign://server/s/memo://x"});
    let locked = client.refused("resources/read", address).await;
    assert!(locked.text().get().contains("server_disabled"), "{}", locked.text());
    assert_eq!(hidden.heard_besides(), [""; 0]);
}
