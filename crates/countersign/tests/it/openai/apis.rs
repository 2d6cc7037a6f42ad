//! Both APIs of a model's server. Reasoning, signatures and items go back to it, and requests carry the
//! headers and limits that the step sets.

use serde_json::{Value, json};
use testkit::model::{ModelAnswer, ModelCall, Turn};

use super::{KEY, chunk, run_with};
use crate::agents::{ours, say};
use crate::ledger::records_when;

/// The API is chosen by an option; streams and single objects work alike.
#[tokio::test]
async fn the_responses_api_works_like_chat_completions() {
    for stream in [true, false] {
        let turns = [ours("Read", json!({"path": "a.txt"})), say("it is done")];
        let ran = run_with(turns, |step, _| {
            step["options"]["api"] = json!("responses");
            step["options"]["stream"] = json!(stream);
            step["options"]["max_completion_tokens"] = json!(700);
            step["system_prompt"] = json!("be brief");
        })
        .await;
        let step = &ran.step;
        assert_eq!(step["output"], "it is done", "{}", ran.words);
        assert_eq!((&step["tokens"], &step["calls"]), (&json!(30), &json!(1)), "{step}");
        assert_eq!(step["isolation"], "full");
        let asked = ran.stage.model.turns();
        assert_eq!(asked.len(), 2, "{}", ran.words);
        for request in &asked {
            assert_eq!(request.path, "/v1/responses");
            assert_eq!(request.authorization, Some(format!("Bearer {KEY}")));
            let body = &request.body;
            assert_eq!((&body["store"], &body["max_output_tokens"]), (&json!(false), &json!(700)));
            assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
            for tool in body["tools"].as_array().unwrap() {
                assert_eq!((&tool["type"], &tool["strict"]), (&json!("function"), &json!(false)));
                assert_eq!(tool["parameters"]["type"], "object", "{tool}");
            }
        }
        let input = asked[1].body["input"].as_array().unwrap();
        assert_eq!(input[0], json!({"role": "system", "content": "be brief"}));
        assert_eq!(input[2]["type"], "function_call");
        assert_eq!(input[3]["type"], "function_call_output");
        assert_eq!(input[3]["call_id"], input[2]["call_id"]);
        assert!(input[3]["output"].as_str().unwrap().contains("one line"), "{input:?}");
        records_when(&ran.stage.home(), |records| records.len() == 1).await;
    }
}

/// Encrypted reasoning is lost if its item does not come back as it was.
#[tokio::test]
async fn the_items_of_a_response_go_back_as_they_came() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "encrypted_content": "gAAAAB+/=", "x": 1e2});
    let words = json!({"type": "message", "id": "msg_1", "role": "assistant",
        "content": [{"type": "output_text", "text": "I look", "annotations": []}]});
    let call = |id: &str, name: &str, arguments: &str| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
            "arguments": arguments, "status": "completed"})
    };
    let calls = [call("a", "Read", "{\"path\": \"a.txt\"}"), call("b", "Read", "{\"path\":")];
    let items: Vec<Value> = [reasoning, words].into_iter().chain(calls).collect();
    let done = |(place, item): (usize, &Value)| json!({"type": "response.output_item.done", "output_index": place, "item": item});
    let mut events = vec![json!({"type": "response.created", "response": {"id": "r"}})];
    events.extend(items.iter().enumerate().map(done));
    // The last event of some servers repeats nothing.
    events.push(json!({"type": "response.completed", "response": {"status": "completed",
        "output": [], "usage": {"input_tokens": 4, "output_tokens": 3}}}));
    let first = Turn::Raw(ModelAnswer::events(&events));
    let cut = json!({"type": "response.incomplete", "response": {"status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "half"}]}]}});
    let second = Turn::Raw(ModelAnswer::events([&cut]));
    let ran =
        run_with([first, second], |step, _| step["options"]["api"] = json!("responses")).await;
    assert_eq!((&ran.step["output"], &ran.step["tokens"]), (&json!("half"), &json!(7)));
    assert!(ran.words.contains("truncated at its length limit"), "{}", ran.words);
    let input = ran.stage.model.turns()[1].body["input"].as_array().unwrap().clone();
    assert_eq!(input[1..4], items[..3]);
    // A server that parses the arguments would refuse the conversation.
    assert_eq!((&input[4]["call_id"], &input[4]["arguments"]), (&json!("b"), &json!("{}")));
    let results = ran.stage.model.results();
    assert!(results[0].contains("one line"), "{results:?}");
    assert!(results[1].starts_with("error: the arguments are not valid JSON"), "{results:?}");
}

#[tokio::test]
async fn a_failed_response_is_an_error_and_an_unknown_request_member_is_left_out() {
    let failed = json!({"type": "response.failed", "response": {"status": "failed",
        "error": {"code": "invalid_prompt", "message": "not like this"}}});
    let ran = run_with([Turn::Raw(ModelAnswer::events([&failed]))], |step, _| {
        step["options"]["api"] = json!("responses");
    })
    .await;
    let (code, message) = ran.error();
    assert_eq!(code, "AGENT_FAILED", "{}", ran.words);
    assert!(message.contains("reported an error: not like this"), "{message}");
    assert_eq!(ran.stage.model.requests().len(), 1);
    let refused = ModelAnswer::status(
        400,
        &json!({"error": {"message": "Encrypted content is not supported with this model"}})
            .to_string(),
    );
    let busy = json!({"type": "response.failed", "response": {"status": "failed",
        "error": {"code": "server_error", "message": "try again"}}});
    let turns = [Turn::Raw(refused), Turn::Raw(ModelAnswer::events([&busy])), say("done")];
    let ran = run_with(turns, |step, _| step["options"]["api"] = json!("responses")).await;
    assert_eq!(ran.step["output"], "done", "{}", ran.words);
    let asked = ran.stage.model.requests();
    assert_eq!(asked.len(), 3);
    assert!(asked[0].body.get("include").is_some() && asked[1].body.get("include").is_none());
}

/// Servers refuse a conversation whose reasoning or signatures are missing.
#[tokio::test]
async fn reasoning_and_signatures_go_back_with_the_calls() {
    let signature = json!({"google": {"thought_signature": "c2ln"}});
    let detail = |text: &str, more: Value| {
        let mut detail = json!({"type": "reasoning.text", "index": 0, "text": text});
        detail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        chunk(json!({"reasoning_details": [detail]}), None)
    };
    let hidden = json!({"type": "reasoning.encrypted", "index": 1, "data": "gAAA"});
    let read = json!({"index": 0, "id": "a", "extra_content": signature,
        "function": {"name": "Read", "arguments": "{\"path\": \"a.txt\"}"}});
    let turn = Turn::Raw(ModelAnswer::events([
        &chunk(json!({"reasoning": "first ", "reasoning_content": "x"}), None),
        &chunk(json!({"reasoning": "then"}), None),
        &detail("fir", json!({"format": "f"})),
        &detail("st", json!({"signature": "s1", "format": null})),
        &chunk(json!({"reasoning_details": [hidden]}), None),
        &chunk(json!({"tool_calls": [read]}), Some("tool_calls")),
    ]));
    let ran = run_with([turn, say("done")], |_, _| ()).await;
    assert_eq!(ran.step["output"], "done", "{}", ran.words);
    let said = &ran.heard()[1];
    assert_eq!(
        (&said["reasoning"], &said["reasoning_content"]),
        (&json!("first then"), &json!("x"))
    );
    let text = json!({"type": "reasoning.text", "index": 0, "text": "first", "format": "f",
        "signature": "s1"});
    assert_eq!(said["reasoning_details"], json!([text, hidden]));
    assert_eq!(said["tool_calls"][0]["extra_content"], signature);
}

/// Values of headers are secrets: they appear in no output, however the server repeats them.
#[tokio::test]
async fn further_headers_are_sent_and_a_limit_under_the_name_that_the_server_knows() {
    let secret = "header-secret-0815-zanzibar";
    let unknown = json!({"error": {"message": "extra fields: body.max_completion_tokens"}});
    let unknown = Turn::Raw(ModelAnswer::status(422, &unknown.to_string()));
    let call = Turn::Call(vec![ModelCall::ours("Read", json!({"path": "a.txt"}))]);
    let all = [unknown, call, say(&format!("you sent {secret}"))];
    let ran = run_with(all, |step, _| {
        step["options"]["headers"] = json!({"X-Title": "mine", "api-key": secret});
        step["options"]["max_completion_tokens"] = json!(9);
    })
    .await;
    assert_eq!(ran.step["output"], "you sent [redacted]", "{}", ran.words);
    for (number, request) in ran.stage.model.turns().iter().enumerate() {
        let header = |name: &str| request.headers.get(name).map(String::as_str);
        assert_eq!((header("x-title"), header("api-key")), (Some("mine"), Some(secret)));
        let limits = (&request.body["max_completion_tokens"], &request.body["max_tokens"]);
        let (sent, absent) = (&json!(9), &Value::Null);
        assert_eq!(limits, if number == 0 { (sent, absent) } else { (absent, sent) });
    }
    assert!(!ran.words.contains(secret), "{}", ran.words);
    let refused = ModelAnswer::status(400, &json!({"error": {"message": secret}}).to_string());
    let ran = run_with([Turn::Raw(refused)], |step, _| {
        step["options"]["headers"] = json!({"api-key": secret});
    })
    .await;
    let (_, message) = ran.error();
    assert!(message.ends_with(": [redacted]") && !ran.words.contains(secret), "{}", ran.words);
}
