//! Clients that ask for a newer protocol first: they are answered, and go on with what we speak.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::client::text;
use testkit::foreign;
use testkit::gate::Gate;

use super::clients::{Python, trace};

/// So long the SDK waits for a server that leaves its question unanswered.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_client_that_probes_for_a_newer_protocol_falls_back_at_once() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = Gate::scripted(json!([{"name": "echo"}])).await;
    for door in ["http", "stdio"] {
        let start = Instant::now();
        let mut client = Python::through(door, &gate, &["--trace"]);
        let opened = client.perform(json!({"op": "initialize"})).await;
        assert!(start.elapsed() < SOON, "{door}: {:?}", start.elapsed());
        assert_eq!(opened["handshake"], "initialize", "{door}: {opened}");
        assert_eq!(opened["protocol_version"], "2025-11-25", "{door}: {opened}");
        assert_eq!(opened["result"]["serverInfo"]["name"], "countersign", "{door}: {opened}");
        let arguments =
            json!({"name": "s:echo", "args": {"a": 1}, "intent": {"operation_type": "write"}});
        let result = client.call("call_tool_write", arguments).await;
        assert!(text(&result).contains(r#""arguments":{"a":1}"#), "{door}: {result}");
        client.end().await;
        let asked: Vec<String> = trace(&gate)
            .into_iter()
            .filter(|(sent, _)| *sent)
            .filter_map(|(_, message)| Some(message["method"].as_str()?.to_owned()))
            .take(3)
            .collect();
        let expected = ["server/discover", "initialize", "notifications/initialized"];
        assert_eq!(asked, expected, "{door}");
    }
}
