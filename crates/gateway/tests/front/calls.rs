//! Calls on each view: the server gets what the client sent, except for what no server may get, and
//! the client gets the server's answer, or an error with a code where that cannot be passed on.

use std::sync::{Arc, Mutex};

use mcp::peer::{Ask, RequestError};
use serde_json::{Value, json};
use testkit::client::{code, refusal, text};
use testkit::wait::eventually;
use tokio_util::sync::CancellationToken;

use crate::gate::{DOORS, Gate};
use crate::server::Server;
use crate::view::{PASSING, VIEWS, ask_on, call_on, name_on};

const WELCOME: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"written","version":"0.1","x-number":1.50},"instructions":"Handle with care"}"#;

/// Definitions in a formatting that none of our programs would produce.
const DEFINITIONS: [&str; 2] = [
    r#"{ "x-number" : 1E2, "name" : "one", "description":"\u0041 name \/ \"name\"", "inputSchema":{"type":"object" ,"properties":{"name":{"type":"string","default":0.10}}},"_meta":{"z":1,"a":null} }"#,
    r#"{"inputSchema":{"type":"object"},"title":"é日本","annotations":{"readOnlyHint":true,"x-hint":[ ]},"name":"two","x-big":123456789012345678901234567890}"#,
];

const RESULT: &str = r#"{ "content":[{"type":"text","text":"\u0041","x-block":1.0}], "structuredContent":{"z":1E2,"a":[0.10]},"_meta":{"x":{"k":1.50}}, "x-big":12345678901234567890123 }"#;

/// Returns a server with exactly these texts.
fn written() -> Server {
    let list = format!(r#"{{"tools":[{}]}}"#, DEFINITIONS.join(","));
    let texts = json!({"initialize": WELCOME, "tools/list": list, "tools/call": RESULT});
    Server::written(texts)
}

#[tokio::test]
async fn definitions_and_results_come_byte_for_byte() {
    let gate = Gate::of(&written()).await;
    for view in PASSING {
        let renamed = DEFINITIONS
            .join(",")
            .replace(r#""name" : "one""#, &format!(r#""name" : "{}""#, name_on(view, "one")))
            .replace(r#""name":"two""#, &format!(r#""name":"{}""#, name_on(view, "two")));
        for (door, client) in gate.doors(view).await {
            let list = client.request_text("tools/list", "{}").await.unwrap();
            assert_eq!(list, format!(r#"{{"tools":[{renamed}]}}"#), "{door:?} {view}");
            let params = json!({"name": name_on(view, "one")}).to_string();
            let result = client.request_text("tools/call", &params).await.unwrap();
            assert_eq!(result, RESULT, "{door:?} {view}");
        }
    }
}

#[tokio::test]
async fn one_server_introduces_itself_unless_it_is_locked() {
    let kept = written().with("quarantined", true);
    let gate = Gate::start(&[("s", &written()), ("kept", &kept)], json!({})).await;
    let expected: Value = serde_json::from_str(WELCOME).unwrap();
    for (door, client) in gate.doors("/mcp/s/s").await {
        assert_eq!(client.welcome["serverInfo"], expected["serverInfo"], "{door:?}");
        assert_eq!(client.welcome["instructions"], expected["instructions"], "{door:?}");
    }
    for view in ["/mcp/all", "/mcp/s/kept"] {
        let client = gate.client(view).await;
        assert_eq!(client.welcome["serverInfo"]["name"], "countersign", "{view}");
        assert_eq!(client.welcome.get("instructions"), None, "{view}");
    }
}

/// The arguments of a call, `_meta` and an unknown member, in spellings that must survive.
const ARGUMENTS: &str =
    r#"{"n": 1E2,"big":123456789012345678,"s":"\u0041","deep":{"z":1,"a":[0.10]}}"#;
const MEMBERS: &str = r#""_meta":{"x-trace":{"k":1.50}},"x-other":{"ttl":60}"#;

#[tokio::test]
async fn the_text_of_a_call_survives_in_both_directions_on_every_view() {
    let gate = Gate::of(&Server::scripted(json!([{"name": "echo"}]))).await;
    let two_keys = format!(
        r#"{{"name":"call_tool_write","arguments":{{"name":"s:echo","args":{ARGUMENTS},"intent":{{"operation_type":"write"}}}},{MEMBERS}}}"#
    );
    let sent = format!(r#"{{"name":"echo","arguments":{ARGUMENTS},{MEMBERS}}}"#);
    let on_all = sent.replacen("echo", "s__echo", 1);
    for (view, params) in [("/mcp/s/s", &sent), ("/mcp/all", &on_all), ("/mcp", &two_keys)] {
        for (door, client) in gate.doors(view).await {
            let answer = client.request_text("tools/call", params).await.unwrap();
            let value: Value = serde_json::from_str(&answer).unwrap();
            let arrived = text(&value);
            for part in [r#""name":"echo""#, ARGUMENTS, r#""x-trace":{"k":1.50}"#, r#""ttl":60"#] {
                assert!(arrived.contains(part), "{door:?} {view}: {arrived}");
            }
            let is_whole = view == "/mcp" || arrived == sent;
            assert!(is_whole, "{door:?} {view}: {arrived}");
            let result =
                r#""x-number":1E2,"x-big":12345678901234567890123,"_meta":{"x-meta":{"kept":1.0}}"#;
            assert!(answer.contains(result), "{door:?} {view}: {answer}");
            assert!(answer.contains(r#""x-block":1"#), "{door:?} {view}: {answer}");
        }
    }
}

#[tokio::test]
async fn errors_of_a_server_and_unknown_names_are_told_apart() {
    let gate = Gate::of(&Server::scripted(json!([
        {"name": "error", "x-do": "error"}, {"name": "is_error", "x-do": "is_error"},
    ])))
    .await;
    let failed = json!({"content": [{"type": "text", "text": "went wrong"}], "isError": true});
    for view in VIEWS {
        for (door, client) in gate.doors(view).await {
            let is_error = call_on(view, "is_error", json!({}));
            let result = client.request("tools/call", is_error).await.unwrap();
            assert_eq!(result, failed, "{door:?} {view}");
            let error = call_on(view, "error", json!({}));
            if view == "/mcp" {
                let result = client.request("tools/call", error).await.unwrap();
                let expected =
                    json!({"code": -32042, "message": "no luck", "data": {"why": "scripted"}});
                assert_eq!(refusal(&result)["code"], "UPSTREAM_ERROR", "{door:?}");
                assert_eq!(refusal(&result)["details"]["error"], expected, "{door:?}");
                continue;
            }
            let error = client.refused("tools/call", error).await;
            assert_eq!((error.code, error.message.as_str()), (-32042, "no luck"), "{door:?}");
            assert!(error.text().get().contains(r#""data":{"why":"scripted"}"#), "{error:?}");
            let unknown = client.refused("tools/call", call_on(view, "nothing", json!({}))).await;
            assert_eq!(unknown.code, -32602, "{door:?} {view}: {}", unknown.message);
            assert!(unknown.message.contains("nothing"), "{door:?} {view}: {}", unknown.message);
        }
    }
    let all = gate.client("/mcp/all").await;
    for name in ["nothing", "s:is_error", "is_error", ""] {
        assert_eq!(all.refused("tools/call", json!({"name": name})).await.code, -32602, "{name}");
    }
}

#[tokio::test]
async fn locked_tools_are_not_shown_and_not_called() {
    let tools = json!([{"name": "open"}, {"name": "shut"}]);
    let partly = Server::scripted(tools.clone()).with("disabled_tools", json!(["shut"]));
    let kept = Server::scripted(tools.clone()).with("quarantined", true);
    let off = Server::scripted(tools).with("enabled", false);
    let servers = [("partly", &partly), ("kept", &kept), ("off", &off)];
    let gate = Gate::start(&servers, json!({})).await;
    let all = gate.client("/mcp/all").await;
    assert_eq!(all.listed("tools/list").await, ["partly__open"]);
    for name in ["partly__shut", "kept__open"] {
        assert_eq!(code(&all.call(name, json!({})).await), "TOOL_BLOCKED", "{name}");
    }
    let unlisted = all.refused("tools/call", json!({"name": "off__open"})).await;
    assert_eq!(unlisted.code, -32602, "nobody knows what it would offer");
    for (server, shown, locked, status) in [
        ("partly", vec!["open"], "shut", "disabled_by_config"),
        ("kept", vec![], "open", "server_quarantined"),
        ("off", vec![], "open", "server_disabled"),
    ] {
        for (door, client) in gate.doors(&format!("/mcp/s/{server}")).await {
            assert_eq!(client.listed("tools/list").await, shown, "{door:?} {server}");
            let result = client.call(locked, json!({})).await;
            assert_eq!(code(&result), "TOOL_BLOCKED", "{door:?} {server}: {result}");
            assert!(text(&result).contains(status), "{door:?} {server}: {result}");
        }
    }
    assert_eq!(off.opened(), 0, "a server that is off is never started");
    for server in [&partly, &kept] {
        let calls = server.heard().into_iter().filter(|line| line.starts_with("tools/call"));
        assert_eq!(calls.count(), 0);
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_do_not_reach_the_server() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let server = Server::scripted(json!([{"name": "work", "inputSchema": schema}]));
    let gate = Gate::of(&server).await;
    for (made, view) in VIEWS.into_iter().enumerate() {
        let client = gate.client(view).await;
        for arguments in [json!({}), json!({"n": "1"}), json!({"n": 1.5})] {
            let params = call_on(view, "work", arguments);
            let result = client.request("tools/call", params).await.unwrap();
            assert_eq!(code(&result), "INVALID_ARGUMENTS", "{view}: {result}");
        }
        assert_eq!(server.count("tools/call"), made, "{view}");
        let fitting = call_on(view, "work", json!({"n": 1}));
        let result = client.request("tools/call", fitting).await.unwrap();
        assert_eq!(code(&result), "ok", "{view}: {result}");
    }
}

#[tokio::test]
async fn progress_comes_under_the_clients_own_token() {
    let steps = json!([{"name": "steps", "x-do": {"progress": 3}}]);
    let gate = Gate::of(&Server::scripted(steps)).await;
    for view in VIEWS {
        for (door, client) in gate.doors(view).await {
            let told = Arc::new(Mutex::new(Vec::new()));
            let sink = told.clone();
            let progress = move |params: mcp::Raw| {
                let params: Value = serde_json::from_str(params.get()).unwrap();
                sink.lock().unwrap().push((params["progress"].as_u64(), params["x-step"].as_u64()));
            };
            let ask = Ask { progress: Some(Arc::new(progress)), ..ask_on(view, "steps") };
            client.peer.request(ask).await.unwrap();
            let expected = [1, 2, 3].map(|step| (Some(step), Some(step)));
            assert_eq!(*told.lock().unwrap(), expected, "{door:?} {view}");
        }
        let mut wire = gate.wire(view);
        wire.greet().await;
        let mut params = call_on(view, "steps", json!({}));
        params["_meta"] = json!({"progressToken": "my own"});
        let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params});
        wire.say(&call.to_string()).await;
        for _ in 0..3 {
            let told: Value = serde_json::from_str(&wire.hear().await).unwrap();
            assert_eq!(told["params"]["progressToken"], "my own", "{view}: {told}");
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_upstream() {
    for view in VIEWS {
        for door in DOORS {
            let server = Server::scripted(json!([{"name": "hang", "x-do": "hang"}]));
            let gate = Gate::of(&server).await;
            let client = gate.client_at(door, view, json!({}), vec![]).await;
            let cancel = CancellationToken::new();
            let ask = Ask { cancel: cancel.clone(), ..ask_on(view, "hang") };
            let hanging = client.peer.request(ask);
            tokio::pin!(hanging);
            tokio::select! {
                answer = &mut hanging => panic!("{door:?} {view}: {answer:?}"),
                _ = server.hears("tools/call") => {}
            }
            assert_eq!(server.count("cancelled"), 0, "{door:?} {view}");
            cancel.cancel();
            assert!(matches!(hanging.await, Err(RequestError::Cancelled)), "{door:?} {view}");
            server.hears("cancelled").await;
        }
    }
}

#[tokio::test]
async fn the_reason_of_a_cancellation_reaches_the_server() {
    for view in VIEWS {
        let server = Server::scripted(json!([{"name": "hang", "x-do": "hang"}]));
        let gate = Gate::of(&server).await;
        let mut wire = gate.wire(view);
        wire.greet().await;
        let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call",
                          "params": call_on(view, "hang", json!({}))});
        wire.say(&call.to_string()).await;
        server.hears("tools/call").await;
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": {"requestId": "c", "reason": "the user pressed Esc"}});
        wire.say(&cancel.to_string()).await;
        assert_eq!(
            server.hears("cancelled").await,
            r#"cancelled "the user pressed Esc""#,
            "{view}"
        );
    }
}

#[tokio::test]
async fn absent_arguments_stay_absent_and_tasks_are_not_asked_for() {
    let server = Server::scripted(json!([{"name": "t", "inputSchema": {"type": "object"}}]));
    let gate = Gate::of(&server).await;
    let client = gate.client("/mcp/s/s").await;
    for (given, sent) in [
        (json!({"name": "t"}), json!({"name": "t"})),
        (
            json!({"name": "t", "arguments": {}, "task": {"ttl": 1000}, "x-other": 1}),
            json!({"name": "t", "arguments": {}, "x-other": 1}),
        ),
    ] {
        let echo = client.request("tools/call", given).await.unwrap();
        let arrived: Value = serde_json::from_str(text(&echo)).unwrap();
        assert_eq!(arrived, sent);
    }
}

/// A tool that only runs as a task could never be called.
#[tokio::test]
async fn a_tool_that_requires_a_task_is_left_out() {
    let slow = json!({"name": "slow", "execution": {"taskSupport": "required"}});
    let gate = Gate::of(&Server::scripted(json!([{"name": "t"}, slow]))).await;
    for (view, expected) in [("/mcp/s/s", "t"), ("/mcp/all", "s__t")] {
        assert_eq!(gate.client(view).await.listed("tools/list").await, [expected]);
    }
}

#[tokio::test]
async fn nothing_is_executed_before_initialize() {
    let server = Server::scripted(json!([{"name": "t"}]));
    let gate = Gate::of(&server).await;
    for view in VIEWS {
        let mut wire = gate.wire(view);
        let mut params = call_on(view, "t", json!({}));
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "x"});
        let answer = wire.ask("early", "tools/call", params).await;
        assert_eq!(answer["error"]["code"], -32600, "{view}: {answer}");
        wire.greet().await;
    }
    assert_eq!(server.count("tools/call"), 0);
}

/// Clients check structured content against the tool's output schema, and drop a result that does
/// not fit it with all that it says.
#[tokio::test]
async fn a_refusal_of_a_tool_with_an_output_schema_has_no_structured_content() {
    let output = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let tools = json!([{"name": "t", "outputSchema": output}]);
    let gate = Gate::of(&Server::scripted(tools)).await;
    gate.disable_tool("s", "t").await;
    for view in PASSING {
        for (door, client) in gate.doors(view).await {
            let refused = client.call(&name_on(view, "t"), json!({})).await;
            assert_eq!(refused["structuredContent"], Value::Null, "{door:?} {view}: {refused}");
            let found = &refused["_meta"]["countersign/error"]["code"];
            assert_eq!(found, "TOOL_BLOCKED", "{door:?} {view}: {refused}");
            assert!(text(&refused).contains("disabled"), "{door:?} {view}: {refused}");
        }
    }
}

#[tokio::test]
async fn a_response_over_the_limit_fails_its_call_and_nothing_else() {
    let tools = json!([{"name": "big", "x-do": {"text": 17 << 20}}, {"name": "echo"}]);
    let gate = Gate::of(&Server::scripted(tools)).await;
    for view in VIEWS {
        let client = gate.client(view).await;
        for (tool, expected) in [("big", "RESPONSE_TOO_LARGE"), ("echo", "ok")] {
            let params = call_on(view, tool, json!({}));
            let result = client.request("tools/call", params).await.unwrap();
            assert_eq!(code(&result), expected, "{view}");
        }
    }
}

#[tokio::test]
async fn long_results_are_cut_and_read_on() {
    let server = Server::scripted(json!([{"name": "long", "x-do": {"text": 2500}}]));
    let gate = Gate::start(&[("s", &server)], json!({"tool_response_limit": 1000})).await;
    for (door, client) in gate.doors("/mcp").await {
        let result = client.two_key_call("write", "s:long", json!({})).await;
        assert_eq!(text(&result).len(), 1000, "{door:?}");
        assert_eq!(result["structuredContent"], json!({"length": 2500}), "{door:?}");
        let note = result["content"][1]["text"].as_str().unwrap();
        assert!(note.starts_with("[cut: 1000 of 2500 characters shown"), "{door:?}: {note}");
        let key = note.split('"').nth(3).unwrap();
        let mut whole = text(&result).to_owned();
        while whole.len() < 2500 {
            let page = client.call("read_cache", json!({"key": key, "offset": whole.len()})).await;
            whole.push_str(text(&page));
        }
        let expected: String = (0..2500u32).map(|n| char::from(b'a' + (n % 26) as u8)).collect();
        assert_eq!(whole, expected, "{door:?}");
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_with_its_code() {
    let tools = json!([{"name": "hang", "x-do": "hang"}, {"name": "echo"}]);
    let server = Server::scripted(tools).with("call_timeout", "300ms");
    let gate = Gate::of(&server).await;
    for view in VIEWS {
        for (door, client) in gate.doors(view).await {
            for (tool, expected) in [("hang", "TIMEOUT"), ("echo", "ok")] {
                let params = call_on(view, tool, json!({}));
                let result = client.request("tools/call", params).await.unwrap();
                assert_eq!(code(&result), expected, "{door:?} {view}");
            }
        }
    }
}

#[tokio::test]
async fn the_outcome_of_a_call_whose_connection_is_lost_is_unknown() {
    let tools = json!([{"name": "hang_up", "x-do": "hang_up"}, {"name": "echo"}]);
    let gate = Gate::of(&Server::scripted(tools)).await;
    for view in VIEWS {
        let client = gate.client(view).await;
        let lost = call_on(view, "hang_up", json!({}));
        let lost = client.request("tools/call", lost).await.unwrap();
        assert_eq!(code(&lost), "OUTCOME_UNKNOWN", "{view}: {lost}");
        // The server is started again.
        eventually(|| async {
            let echo = call_on(view, "echo", json!({}));
            let result = client.request("tools/call", echo).await.unwrap();
            (code(&result) == "ok").then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_shared_connection_has_nobody_to_ask() {
    let tools = json!([{"name": "ask", "x-do": {"ask": "roots/list"}}]);
    let gate = Gate::of(&Server::scripted(tools)).await;
    for view in VIEWS {
        let params = call_on(view, "ask", json!({}));
        let asked = gate.client(view).await.request("tools/call", params).await.unwrap();
        assert!(text(&asked).contains("method not found"), "{view}: {asked}");
    }
}
