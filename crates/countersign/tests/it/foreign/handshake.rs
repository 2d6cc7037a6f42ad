//! Clients that request a newer protocol first: they get a response, and continue with our version.

use serde_json::{Value, json};
use testkit::client::text;
use testkit::foreign;
use testkit::gate::Gate;

use super::clients::{Python, trace};

#[tokio::test]
async fn a_client_that_probes_for_a_newer_protocol_falls_back_at_once() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = Gate::scripted(json!([{"name": "echo"}])).await;
    for door in ["http", "stdio"] {
        let mut client = Python::through(door, &gate, &["--trace"]);
        let opened = client.perform(json!({"op": "initialize"})).await;
        assert_eq!(opened["handshake"], "initialize", "{door}: {opened}");
        assert_eq!(opened["protocol_version"], "2025-11-25", "{door}: {opened}");
        assert_eq!(opened["result"]["serverInfo"]["name"], "countersign", "{door}: {opened}");
        let arguments =
            json!({"name": "s:echo", "args": {"a": 1}, "intent": {"operation_type": "write"}});
        let result = client.call("call_tool_write", arguments).await;
        assert!(text(&result).contains(r#""arguments":{"a":1}"#), "{door}: {result}");
        client.end().await;
        let messages = trace(&gate);
        let asked: Vec<&str> = messages
            .iter()
            .filter(|(sent, _)| *sent)
            .filter_map(|(_, message)| message["method"].as_str())
            .take(3)
            .collect();
        let expected = ["server/discover", "initialize", "notifications/initialized"];
        assert_eq!(asked, expected, "{door}");
        // The client gives up on an unanswered request; this one was refused first.
        let place = |fits: &dyn Fn(bool, &Value) -> bool| {
            messages.iter().position(|(sent, message)| fits(*sent, message)).unwrap()
        };
        let question = &messages[place(&|sent, it| sent && it["method"] == "server/discover")].1;
        let refused = place(&|sent, it| !sent && it["id"] == question["id"]);
        let greeted = place(&|sent, it| sent && it["method"] == "initialize");
        assert!(messages[refused].1["error"].is_object(), "{door}: {messages:?}");
        assert!(refused < greeted, "{door}: {messages:?}");
    }
}
