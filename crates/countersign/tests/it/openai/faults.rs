//! Servers that refuse, fail, disconnect, fall silent, respond without end or redirect: the step
//! fails with its code and the reason, or the request is retried. Retries are counted.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::model::{Model, ModelAnswer, Then, Turn};

use super::{Ran, calls, chunk, run_with};
use crate::agents::say;
use crate::ledger::records_when;

/// A server's behaviour, the number of requests it gets, and the step's outcome.
struct Case {
    turns: Vec<Turn>,
    requests: usize,
    status: &'static str,
    code: &'static str,
    words: &'static str,
}

fn case(turns: Vec<Turn>, requests: usize, words: &'static str) -> Case {
    Case { turns, requests, status: "failure", code: "AGENT_FAILED", words }
}

/// Returns a case that succeeds in the end; the log holds the words.
fn well(turns: Vec<Turn>, requests: usize, words: &'static str) -> Case {
    Case { status: "success", code: "", ..case(turns, requests, words) }
}

/// Returns a case in which the step's time limit comes first.
fn late(turn: Turn) -> Case {
    let words = "the step timed out after 3 s";
    Case { status: "timed_out", code: "TIMEOUT", ..case(vec![turn], 1, words) }
}

async fn check(cases: Vec<Case>) {
    let checks = cases.into_iter().map(|case| async move {
        let name = format!("{:?}", case.turns[0]);
        let name: String = name.chars().take(200).collect();
        let timeout = if case.status == "timed_out" { json!(3) } else { json!("1m") };
        let ran = run_with(case.turns, |step, _| step["timeout"] = timeout).await;
        let Ran { stage, step, words } = &ran;
        assert_eq!(step["status"], case.status, "{name}: {words}");
        let (code, message) = ran.error();
        assert_eq!(code, case.code, "{name}: {words}");
        let told = if case.status == "success" { words } else { message };
        assert!(told.contains(case.words), "{name}: {words}");
        assert_eq!(stage.model.requests().len(), case.requests, "{name}: {words}");
    });
    join_all(checks).await;
}

fn status(status: u16, message: &str) -> ModelAnswer {
    let body = json!({"error": {"message": message}}).to_string();
    ModelAnswer::status(status, &body).with("content-type", "application/json")
}

#[tokio::test]
async fn refusals_are_reported_and_transient_errors_are_retried() {
    let raw = Turn::Raw;
    let quota = json!({"error": {"message": "buy more", "code": "insufficient_quota"}}).to_string();
    check(vec![
        case(
            vec![raw(status(401, "no such\nkey")), say("never")],
            1,
            "model server at 127.0.0.1: rejected the api_key (HTTP 401): no such key",
        ),
        case(vec![raw(status(403, "not you"))], 1, "responded with HTTP 403 Forbidden: not you"),
        case(
            vec![raw(status(404, "no model m-1"))],
            1,
            "path /v1/chat/completions or the model does not exist (HTTP 404): no model m-1",
        ),
        case(
            vec![raw(ModelAnswer::status(400, "<html>"))],
            1,
            "responded with HTTP 400 Bad Request",
        ),
        case(vec![raw(ModelAnswer::status(429, &quota))], 1, "Too Many Requests: buy more"),
        well(
            vec![raw(status(429, "slow down").with("retry-after", "1")), say("at last")],
            2,
            "wait_ms=1",
        ),
        case(
            vec![raw(status(429, "slow down").with("retry-after", "3600")), say("never")],
            1,
            "slow down; the next attempt is due in 3600 s, after the step's timeout",
        ),
        case(
            vec![
                raw(status(503, "x").with("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT")),
                say("never"),
            ],
            1,
            "after the step's timeout",
        ),
        well(
            vec![
                raw(status(503, "x").with("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")),
                say("at once"),
            ],
            2,
            "retrying",
        ),
        well(vec![raw(status(500, "oops")), say("at last")], 2, "oops; retrying"),
        case(vec![raw(status(502, "oops")); 9], 4, "Bad Gateway: oops; gave up after 4 attempts"),
    ])
    .await;
}

#[tokio::test]
async fn broken_answers_are_retried_and_no_call_is_made_twice() {
    let half = || {
        let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "Bash",
            "arguments": "{\"command\": \"echo x >> times.txt\"}"}}]});
        Turn::Raw(ModelAnswer::events([&chunk(call, None)]).then(Then::Cut))
    };
    let text = json!({"role": "assistant", "content": "well "});
    let ended_early = Turn::Raw(ModelAnswer::events([&chunk(text, None)]));
    check(vec![
        well(vec![half(), say("whole")], 2, "the response ended early; retrying"),
        well(vec![ended_early, say("whole")], 2, "the response ended early"),
        case(vec![half(); 9], 4, "the response ended early; gave up after 4 attempts"),
        case(vec![Turn::Rubbish; 9], 4, "cannot parse the response"),
        case(
            vec![Turn::Raw(ModelAnswer::status(200, "<html>hello</html>"))],
            1,
            "it has no choices",
        ),
        case(vec![Turn::Raw(ModelAnswer::status(200, "{}"))], 1, "it has no choices"),
        case(vec![Turn::Raw(ModelAnswer::status(204, ""))], 1, "it has no choices"),
        well(
            vec![
                Turn::Raw(ModelAnswer::events([
                    &json!({"error": {"message": "busy", "code": 503}}),
                ])),
                say("then"),
            ],
            2,
            "reported an error: busy; retrying",
        ),
        case(
            vec![Turn::Raw(ModelAnswer::events([
                &json!({"error": {"message": "bad", "code": 400}}),
            ]))],
            1,
            "reported an error: bad",
        ),
    ])
    .await;
    // The call in the broken response was not made; that in the complete one was, once.
    let whole =
        json!({"id": "a", "name": "Bash", "arguments": "{\"command\": \"echo x >> times.txt\"}"});
    let ran = run_with([half(), calls(&[whole], "tool_calls"), say("done")], |_, _| ()).await;
    assert_eq!(ran.step["output"], "done", "{}", ran.words);
    let made = std::fs::read_to_string(ran.stage.workspace().join("times.txt")).unwrap();
    assert_eq!(made, "x\n");
    records_when(&ran.stage.home(), |records| records.len() == 1).await;
}

#[tokio::test]
async fn silence_and_slowness_end_with_the_steps_time() {
    let begun = || ModelAnswer::events([&chunk(json!({"content": "well"}), None)]);
    let drip = begun().then(Then::Again(Duration::from_millis(20)));
    let alive = ModelAnswer::status(200, ": alive\n\n").with("content-type", "text/event-stream");
    check(vec![
        late(Turn::Stall),
        late(Turn::Raw(begun().then(Then::Silence))),
        late(Turn::Raw(drip)),
        late(Turn::Raw(alive.then(Then::Again(Duration::from_millis(20))))),
        late(Turn::Raw(status(500, "x").then(Then::Silence))),
    ])
    .await;
}

/// The step does not wait for anything after a complete response.
#[tokio::test]
async fn a_complete_answer_does_not_wait_for_the_connection_to_close() {
    let answer = ModelAnswer::events([&chunk(json!({"content": "said"}), Some("stop"))]);
    let done = ModelAnswer { body: format!("{}data: [DONE]\n\n", answer.body), ..answer.clone() };
    check(vec![
        well(vec![Turn::Raw(done.then(Then::Silence))], 1, "said"),
        well(vec![Turn::Raw(answer.clone().then(Then::Silence))], 1, "said"),
        well(vec![Turn::Raw(answer.then(Then::Cut))], 1, "said"),
    ])
    .await;
}

#[tokio::test]
async fn endless_answers_are_cut_off() {
    let endless =
        |body: String| Turn::Raw(ModelAnswer::status(200, &body).then(Then::Again(Duration::ZERO)));
    let data = format!("data: {}", "x".repeat(1024 * 1024));
    let object = format!("{{\"a\": \"{}\", ", "x".repeat(1024 * 1024));
    let text = chunk(json!({"content": "x".repeat(1024 * 1024)}), None);
    check(vec![
        case(vec![endless(data)], 1, "the response has more than 16777216 bytes in one event"),
        case(vec![endless(object)], 1, "the response has more than 16777216 bytes in one event"),
        case(
            vec![endless(format!("data: {text}\n\n"))],
            1,
            "the response has more than 8388608 bytes",
        ),
        case(
            vec![Turn::Raw(
                ModelAnswer::status(400, &"x".repeat(1024 * 1024))
                    .then(Then::Again(Duration::ZERO)),
            )],
            1,
            "responded with HTTP 400 Bad Request: xxx",
        ),
    ])
    .await;
}

/// The key would be sent along.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Model::start([say("never")]).await;
    let elsewhere =
        format!("{}/v1/chat/completions", other.url()).replace("127.0.0.1", "localhost");
    let moved = ModelAnswer::status(307, "").with("location", elsewhere);
    let words =
        "redirected to localhost; redirects are not followed, because the key would be sent";
    check(vec![case(vec![Turn::Raw(moved), say("never")], 1, words)]).await;
    let near = ModelAnswer::status(302, "").with("location", "/v2/chat/completions");
    check(vec![case(vec![Turn::Raw(near), say("never")], 1, "redirected to 127.0.0.1")]).await;
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn a_model_may_refuse_and_a_filter_may_end_its_words() {
    let stop =
        |delta: Value, finish: &str| Turn::Raw(ModelAnswer::events([&chunk(delta, Some(finish))]));
    check(vec![
        case(vec![stop(json!({"refusal": "I cannot"}), "stop")], 1, "the model refused: I cannot"),
        case(vec![stop(json!({"content": "we"}), "content_filter")], 1, "content filter stopped"),
        well(vec![stop(json!({"content": "we"}), "length")], 1, "truncated at its length limit"),
    ])
    .await;
}

/// A few servers refuse to report a stream's usage: the request is repeated without it, and later
/// ones omit it.
#[tokio::test]
async fn stream_options_are_dropped_when_a_server_rejects_them() {
    let refused = status(400, "Unrecognized request argument supplied: stream_options");
    let read = json!({"id": "a", "name": "Read", "arguments": "{\"path\": \"a.txt\"}"});
    let turns = [Turn::Raw(refused), calls(&[read], "tool_calls"), say("done")];
    let ran = run_with(turns, |_, _| ()).await;
    assert_eq!(ran.step["output"], "done", "{}", ran.words);
    let asked = ran.stage.model.turns();
    let wanted: Vec<bool> =
        asked.iter().map(|asked| asked.body.get("stream_options").is_some()).collect();
    assert_eq!(wanted, [true, false, false]);
}

#[tokio::test]
async fn an_unreachable_or_invalid_base_url_is_reported() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    for (base_url, code, words) in [
        (closed.as_str(), "AGENT_FAILED", "no response: "),
        // With a value in it, an address is checked only when the step runs.
        ("https://user:pw@{{.workflow.name}}/v1", "INVALID_ARGUMENTS", "a user name or password"),
        ("ftp://{{.workflow.name}}/v1", "INVALID_ARGUMENTS", "base_url is not an http or https"),
    ] {
        let ran = run_with([], |step, _| step["options"]["base_url"] = json!(base_url)).await;
        let (found, message) = ran.error();
        assert_eq!(found, code, "{}", ran.words);
        assert!(message.contains(words) && !message.contains("pw"), "{message}");
        assert_eq!(
            message.contains("gave up after 4 attempts"),
            code == "AGENT_FAILED",
            "{message}"
        );
    }
}
