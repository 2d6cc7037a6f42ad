//! The two-key call: every row of the matrix and every code, over stdio and over HTTP.

use serde_json::{Value, json};
use testkit::client::text;
use testkit::gate::{Gate, both};
use testkit::upstream::scripted;
use testkit::wait::eventually;

fn tools() -> Value {
    json!([
        {"name": "read", "description": "Reads", "annotations": {"readOnlyHint": true}},
        {"name": "delete", "description": "Deletes", "annotations": {"destructiveHint": true}},
        {"name": "both", "description": "Contradicts itself",
         "annotations": {"destructiveHint": true, "readOnlyHint": true}},
        {"name": "plain", "description": "Says nothing of itself"},
        {"name": "mild", "description": "Writes", "annotations": {"destructiveHint": false}},
    ])
}

/// Returns `ok`, or the code of the refusal; its message must be the text block too.
fn outcome(result: &Value) -> String {
    if result["isError"] != true {
        return "ok".to_owned();
    }
    let error = &result["structuredContent"]["error"];
    assert_eq!(text(result), error["message"].as_str().unwrap(), "{result}");
    error["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_matrix_of_variants_and_annotations_holds() {
    let gate = Gate::scripted(tools()).await;
    for (door, client) in both(&gate).await {
        for (variant, expected) in [
            ("read", ["ok", "SERVER_MISMATCH", "SERVER_MISMATCH", "ok", "ok"]),
            ("write", ["ok", "SERVER_MISMATCH", "SERVER_MISMATCH", "ok", "ok"]),
            ("destructive", ["ok", "ok", "ok", "ok", "ok"]),
        ] {
            for (tool, expected) in ["read", "delete", "both", "plain", "mild"].iter().zip(expected)
            {
                let name = format!("s:{tool}");
                let nested = client.two_key_call(variant, &name, json!({})).await;
                assert_eq!(outcome(&nested), expected, "{door} {variant} {tool}");
                let flat = json!({"name": name, "intent_operation_type": variant});
                let flat = client.call(&format!("call_tool_{variant}"), flat).await;
                assert_eq!(outcome(&flat), expected, "{door} {variant} {tool}, flat");
            }
        }
    }
}

#[tokio::test]
async fn every_code_comes_with_its_exact_message_and_details() {
    let gate = Gate::scripted(tools()).await;
    let long = "x".repeat(1001);
    let cases = [
        (
            json!({}),
            "MISSING_INTENT",
            "intent parameter is required for call_tool_read",
            json!({"tool_variant": "call_tool_read", "expected": "read"}),
        ),
        (
            json!({"intent": {}}),
            "MISSING_OPERATION_TYPE",
            "intent.operation_type is required",
            json!({"valid_values": ["read", "write", "destructive"]}),
        ),
        (
            json!({"intent": {"operation_type": "unknown"}}),
            "INVALID_OPERATION_TYPE",
            "Invalid intent.operation_type 'unknown': must be read, write, or destructive",
            json!({"provided": "unknown", "valid_values": ["read", "write", "destructive"]}),
        ),
        (
            json!({"intent": {"operation_type": "write"}}),
            "INTENT_MISMATCH",
            "Intent mismatch: tool is call_tool_read but intent declares write",
            json!({"tool_variant": "call_tool_read", "declared": "write", "expected": "read"}),
        ),
        (
            json!({"intent": {"operation_type": "read"}, "intent_operation_type": "write"}),
            "INTENT_MISMATCH",
            "Intent mismatch: intent.operation_type is 'read' but intent_operation_type is 'write'",
            json!({"tool_variant": "call_tool_read", "declared": "write", "expected": "read"}),
        ),
        (
            json!({"intent": {"operation_type": "read", "data_sensitivity": "secret"}}),
            "INVALID_SENSITIVITY",
            "Invalid intent.data_sensitivity 'secret': must be public, internal, private, or unknown",
            json!({"provided": "secret", "valid_values": ["public", "internal", "private", "unknown"]}),
        ),
        (
            json!({"intent": {"operation_type": "read", "reason": long}}),
            "REASON_TOO_LONG",
            "intent.reason exceeds maximum length of 1000 characters",
            json!({"provided_length": 1001, "max_length": 1000}),
        ),
    ];
    for (door, client) in both(&gate).await {
        for (arguments, code, message, details) in &cases {
            let mut arguments = arguments.clone();
            arguments["name"] = "s:read".into();
            let mut result = client.call("call_tool_read", arguments).await;
            let error = &mut result["structuredContent"]["error"];
            let example = error["details"].as_object_mut().unwrap().remove("example").unwrap();
            let followed = client.call("call_tool_read", example).await;
            assert_eq!(outcome(&followed), "ok", "{door} {code}: the example is a correct call");
            let expected = json!({"error": {"code": code, "message": message, "details": details}});
            assert_eq!(result["structuredContent"], expected, "{door}");
            assert_eq!(outcome(&result), *code, "{door}");
        }
        let result = client.two_key_call("write", "s:delete", json!({})).await;
        let expected = json!({"error": {
            "code": "SERVER_MISMATCH",
            "message": "Tool 's:delete' is marked destructive by server, use call_tool_destructive",
            "details": {"server_tool": "s:delete", "destructive_hint": true,
                        "tool_variant": "call_tool_write", "recommended": "call_tool_destructive"},
        }});
        assert_eq!(result["structuredContent"], expected, "{door}");
    }
}

#[tokio::test]
async fn call_tool_without_a_variant_says_what_to_use() {
    let gate = Gate::scripted(tools()).await;
    for (door, client) in both(&gate).await {
        let result = client.call("call_tool", json!({"name": "s:read"})).await;
        assert_eq!(outcome(&result), "TOOL_NOT_FOUND", "{door}");
        assert_eq!(
            text(&result),
            "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or \
             call_tool_destructive with matching intent.operation_type. See retrieve_tools for \
             annotations and recommendations."
        );
    }
}

#[tokio::test]
async fn annotations_count_as_they_are_at_the_call_not_at_discovery() {
    let harmless = json!({"name": "t", "annotations": {"readOnlyHint": true}});
    let harmful = json!({"name": "t", "annotations": {"destructiveHint": true}});
    let change = json!({"name": "change", "x-do": {"become": [harmful]}});
    for door in ["stdio", "http"] {
        let gate = Gate::scripted(json!([harmless, change])).await;
        let client = if door == "stdio" { gate.stdio().await } else { gate.http().await };
        let found = client.document("retrieve_tools", json!({"query": "t"})).await;
        let tools = found["tools"].as_array().unwrap();
        assert!(tools.iter().any(|tool| tool["call_with"] == "call_tool_read"), "{door}");
        assert_eq!(outcome(&client.two_key_call("read", "s:t", json!({})).await), "ok");
        client.two_key_call("write", "s:change", json!({})).await;
        eventually(|| async {
            let result = client.two_key_call("read", "s:t", json!({})).await;
            (outcome(&result) == "SERVER_MISMATCH").then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn without_strictness_the_call_goes_through_with_a_warning() {
    let config = json!({"intent_declaration": {"strict_server_validation": false}});
    let gate = Gate::start(|dir| json!({"s": scripted(dir, "s", &tools())}), config).await;
    for (door, client) in both(&gate).await {
        let result = client.two_key_call("read", "s:delete", json!({})).await;
        assert_eq!(outcome(&result), "ok", "{door}");
        assert_eq!(
            result["_meta"]["countersign/warnings"],
            json!(["Tool 's:delete' is marked destructive by server, use call_tool_destructive"])
        );
        assert_eq!(result["_meta"]["x-meta"], json!({"kept": 1.0}), "the server's own _meta stays");
    }
}

#[tokio::test]
async fn a_call_allowed_against_annotations_is_logged_as_a_warning() {
    let config = json!({"intent_declaration": {"strict_server_validation": false}});
    let gate = Gate::start(|dir| json!({"s": scripted(dir, "s", &tools())}), config).await;
    let client = gate.http().await;
    for (operation, tool) in
        [("read", "s:delete"), ("destructive", "s:delete"), ("write", "s:read"), ("read", "s:mild")]
    {
        assert_eq!(outcome(&client.two_key_call(operation, tool, json!({})).await), "ok", "{tool}");
    }
    // The last call's own line: whatever the others logged is there.
    gate.log_line("tool call tool=s:mild").await;
    let log = gate.log();
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains(" WARN ")).collect();
    let [warning] = warnings[..] else { panic!("{log}") };
    for part in [
        "call allowed against the tool's annotations",
        "tool=s:delete",
        "variant=\"call_tool_read\"",
        "caller=agent-token",
        "Tool 's:delete' is marked destructive by server, use call_tool_destructive",
    ] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
}

#[tokio::test]
async fn smoke_a_refused_call_never_reaches_the_server() {
    let marker = tempfile::tempdir().unwrap();
    let file = marker.path().join("called");
    let tools = json!([{"name": "delete", "x-do": {"hang": file}, "annotations": {"destructiveHint": true}}]);
    let gate = Gate::scripted(tools).await;
    let client = gate.http().await;
    let result = client.two_key_call("write", "s:delete", json!({})).await;
    assert_eq!(outcome(&result), "SERVER_MISMATCH");
    assert_eq!(gate.stop().await, Some(0));
    assert!(!file.exists());
}

#[tokio::test]
async fn smoke_the_gate_lists_its_seven_tools_with_annotations() {
    let gate = Gate::scripted(tools()).await;
    for (door, client) in both(&gate).await {
        let list = client.request("tools/list", json!({})).await.unwrap();
        let names: Vec<&str> = list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        let expected = [
            "retrieve_tools",
            "describe_tool",
            "call_tool_read",
            "call_tool_write",
            "call_tool_destructive",
            "read_cache",
            "upstream_servers",
        ];
        assert_eq!(names, expected, "{door}");
        assert_eq!(list["tools"][3]["inputSchema"]["required"], json!(["name"]));
    }
}

#[tokio::test]
async fn retrieve_tools_answers_in_its_published_shape() {
    let gate = Gate::scripted(json!([
        {"name": "delete_repo", "description": "Delete a repository for good", "x-extra": 1,
         "inputSchema": {"type": "object", "properties": {"repo": {"type": "string"}}, "required": ["repo"]},
         "annotations": {"readOnlyHint": false, "destructiveHint": true, "x-hint": 1}},
        {"name": "list_repos", "description": "List repositories. Newest first."},
    ]))
    .await;
    for (door, client) in both(&gate).await {
        let asked = json!({"query": "delete repository", "detail": "full"});
        let found = client.document("retrieve_tools", asked).await;
        let first = &found["tools"][0];
        let score = first["score"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&score), "{door}: {score}");
        let mut rest = first.clone();
        rest.as_object_mut().unwrap().remove("score");
        assert_eq!(
            rest,
            json!({
                "name": "s:delete_repo", "description": "Delete a repository for good", "server": "s",
                "inputSchema": {"type": "object", "properties": {"repo": {"type": "string"}}, "required": ["repo"]},
                "annotations": {"readOnlyHint": false, "destructiveHint": true, "x-hint": 1},
                "call_with": "call_tool_destructive",
            })
        );
        assert_eq!(found["query"], "delete repository");
        assert_eq!(found["total"], found["tools"].as_array().unwrap().len());
        let other =
            found["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "s:list_repos");
        assert!(other.is_none_or(
            |tool| tool.get("annotations").is_none() && tool["call_with"] == "call_tool_write"
        ));
        let none = client.document("retrieve_tools", json!({"query": "zzzzqqq"})).await;
        assert_eq!(none["tools"], json!([]));
        let compact = json!({"query": "delete repository", "limit": 1});
        let compact = client.document("retrieve_tools", compact).await;
        assert_eq!(compact["tools"][0]["signature"], "(repo*:str)");
        assert_eq!(compact["tools"][0].get("inputSchema"), None);
        assert_eq!(compact["total"], 1);
        let described =
            client.document("describe_tool", json!({"tool_ids": ["s:delete_repo"]})).await;
        assert_eq!(described["tools"][0]["x-extra"], 1);
        assert_eq!(described["tools"][0]["name"], "s:delete_repo");
    }
}
