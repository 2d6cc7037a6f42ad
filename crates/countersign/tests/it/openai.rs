//! Steps whose model this process calls itself: the tools offered to the model, the handling of its
//! calls, and the end of the conversation.

mod apis;
mod ending;
mod faults;
mod key;
mod llama;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::model::{Model, ModelAnswer, ModelCall, Turn};
use testkit::otlp::Collector;
use testkit::program::{stderr, stdout};
use testkit::upstream::scripted;

use crate::agents::stage::{Stage, ended};
use crate::agents::{ours, say, works_through_the_gate};
use crate::ledger::records_when;
use crate::plugins;

/// A key of no shape that the ledger recognizes.
const KEY: &str = "zebra-4711-violin-quagga";

const PROVIDER: &str = "openai_compatible";

/// One event of a stream.
fn chunk(delta: Value, finish: Option<&str>) -> Value {
    json!({"model": "m-2", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

/// Returns a response with these calls, each `{id, name, arguments}`, and this finish reason.
fn calls(pieces: &[Value], finish: &str) -> Turn {
    let calls: Vec<Value> = pieces
        .iter()
        .enumerate()
        .map(|(index, piece)| {
            let function = json!({"name": piece["name"], "arguments": piece["arguments"]});
            json!({"index": index, "id": piece["id"], "function": function})
        })
        .collect();
    let said = chunk(json!({"tool_calls": calls}), None);
    Turn::Raw(ModelAnswer::events([&said, &chunk(json!({}), Some(finish))]))
}

/// A run of one step, with the key in the environment.
struct Ran {
    stage: Stage,
    step: Value,
    /// All output of the program.
    words: String,
}

impl Ran {
    fn error(&self) -> (&str, &str) {
        let text = |name: &str| self.step[name].as_str().unwrap_or_default();
        (text("error_code"), text("error_message"))
    }

    /// Returns the messages of the last request.
    fn heard(&self) -> Vec<Value> {
        let last = self.stage.model.turns().pop().unwrap();
        last.body["messages"].as_array().unwrap().clone()
    }
}

async fn run_with(
    turns: impl IntoIterator<Item = Turn>,
    change: impl FnOnce(&mut Value, &Stage),
) -> Ran {
    let stage = Stage::new(PROVIDER, turns).await;
    let mut step = stage.step(&json!({"enable": true}));
    step["options"].as_object_mut().unwrap().remove("api_key");
    change(&mut step, &stage);
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let mut command = stage.command(&flow, &["-o", "json"]);
    command.env("OPENAI_API_KEY", KEY);
    let output = ended(command).await;
    let words = format!("{}\n{}", stdout(&output), stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{words}"));
    assert_eq!(told["exit_code"] == 0, told["steps"][0]["status"] == "success", "{words}");
    stage.assert_nothing_left().await;
    key::assert_nowhere(&stage, &words).await;
    Ran { step: told["steps"][0].clone(), stage, words }
}

#[tokio::test]
async fn smoke_a_model_works_through_the_gate() {
    works_through_the_gate(PROVIDER).await;
}

/// A single object works as well as a stream; tokens are summed, and the model's name is the
/// server's.
#[tokio::test]
async fn unstreamed_answers_work_like_streams() {
    for stream in [true, false] {
        let turns = [ours("Read", json!({"path": "a.txt"})), say("it is \u{2713} done")];
        let ran = run_with(turns, |step, _| {
            step["options"]["stream"] = json!(stream);
            step["options"]["temperature"] = json!(0.5);
            step["system_prompt"] = json!("be brief");
        })
        .await;
        let step = &ran.step;
        assert_eq!(step["output"], "it is \u{2713} done", "{}", ran.words);
        assert_eq!((&step["tokens"], &step["calls"]), (&json!(30), &json!(1)), "{step}");
        assert_eq!((&step["model"], &step["isolation"]), (&json!("m-1"), &json!("full")));
        let asked = ran.stage.model.turns();
        assert_eq!(asked.len(), 2);
        for request in &asked {
            assert_eq!(request.path, "/v1/chat/completions");
            assert_eq!(request.authorization, Some(format!("Bearer {KEY}")));
            let body = &request.body;
            assert_eq!(body["stream"], if stream { json!(true) } else { Value::Null }, "{body}");
            assert_eq!((&body["tool_choice"], &body["temperature"]), (&json!("auto"), &json!(0.5)));
        }
        let heard = ran.heard();
        let roles: Vec<&str> = heard.iter().map(|it| it["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"]);
        assert_eq!(heard[0]["content"], "be brief");
        assert_eq!(heard[3]["tool_call_id"], heard[2]["tool_calls"][0]["id"]);
        assert!(heard[3]["content"].as_str().unwrap().contains("one line"), "{heard:?}");
    }
}

#[tokio::test]
async fn a_model_is_shown_the_tools_of_its_step_and_no_others() {
    let built_in = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"];
    let beside = json!({"enable": true, "intercept_builtins": false, "mcp_servers": ["x"]});
    let both = json!({"enable": true, "mcp_servers": ["x"]});
    let all: Vec<&str> = built_in.into_iter().chain(["x__echo"]).collect();
    for (proxy, names, isolation) in [
        (json!({"enable": true}), built_in.to_vec(), "full"),
        (both, all, "full"),
        (beside, vec!["x__echo"], "none"),
        (json!({"enable": false}), vec![], "none"),
    ] {
        let turn = ours(names.last().unwrap_or(&"Bash"), json!({"path": "a.txt", "content": "x"}));
        let stage = Stage::new(PROVIDER, [turn, say("so be it")]).await;
        let tools = json!([{"name": "echo", "description": "says it again"}]);
        let config = stage.config(&json!({"x": scripted(stage.dir(), "x", &tools)}));
        let args: Vec<&str> = config.iter().map(String::as_str).collect();
        let (ran, words) = stage.run_json(&stage.flow(&proxy), &args).await;
        let step = &ran["steps"][0];
        assert_eq!((&step["output"], &step["isolation"]), (&json!("so be it"), &json!(isolation)));
        let calls = usize::from(!names.is_empty());
        assert_eq!(step["calls"], calls, "{words}");
        records_when(&stage.home(), |records| records.len() == calls).await;
        let expected: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(stage.model.advertised(), expected, "{proxy}");
        let body = &stage.model.turns()[0].body;
        if names.is_empty() {
            assert!(body.get("tools").is_none() && body.get("tool_choice").is_none(), "{body}");
            assert!(
                stage.model.results()[0].contains("there is no tool 'Bash'; available tools: none")
            );
        }
        for tool in body["tools"].as_array().into_iter().flatten() {
            assert_eq!(tool["type"], "function");
            assert_eq!(tool["function"]["parameters"]["type"], "object", "{tool}");
            assert!(tool["function"]["description"].is_string(), "{tool}");
        }
        stage.assert_nothing_left().await;
    }
}

/// Tools announced but none named: one request, and no further one.
#[tokio::test]
async fn a_model_that_calls_tools_without_naming_any_is_not_retried() {
    let empty = chunk(json!({"role": "assistant", "content": ""}), Some("tool_calls"));
    let whole = json!({"choices": [{"message": {"content": "hm", "tool_calls": []},
        "finish_reason": "tool_calls"}], "usage": {"total_tokens": 9}});
    let answers = [
        ModelAnswer::events([&empty]),
        ModelAnswer::status(200, &whole.to_string()).with("content-type", "application/json"),
    ];
    for answer in answers {
        let ran = run_with([Turn::Raw(answer), say("never")], |_, _| ()).await;
        let (code, message) = ran.error();
        assert_eq!(code, "USER.MCP_PROXY.INFINITE_LOOP_GUARD", "{}", ran.words);
        assert!(message.contains("made none"), "{message}");
        assert_eq!(ran.stage.model.requests().len(), 1);
        assert_eq!(ran.step["calls"], 0);
    }
}

/// The results of calls in the last turn would reach no model, so they are not made.
#[tokio::test]
async fn max_turns_limits_how_often_a_model_is_queried() {
    for turns in [1, 3] {
        let endless = vec![ours("Read", json!({"path": "a.txt"})); 9];
        let ran = run_with(endless, |step, _| step["options"]["max_turns"] = json!(turns)).await;
        let (code, message) = ran.error();
        assert_eq!(code, "USER.MCP_PROXY.INFINITE_LOOP_GUARD", "{}", ran.words);
        assert!(message.contains(&format!("after {turns} turns: raise max_turns")), "{message}");
        assert_eq!(ran.stage.model.requests().len(), turns);
        assert_eq!(ran.step["tokens"], 15 * turns, "{}", ran.step);
        records_when(&ran.stage.home(), |records| records.len() == turns - 1).await;
        assert_eq!(ran.step["calls"], turns - 1);
    }
    let answer = vec![ours("Read", json!({"path": "a.txt"})), say("in time")];
    let ran = run_with(answer, |step, _| step["options"]["max_turns"] = json!(2)).await;
    assert_eq!(ran.step["output"], "in time", "{}", ran.words);
}

/// The first waits for an effect of the second, so running them in sequence would never end.
#[tokio::test]
async fn calls_of_one_turn_run_at_once_and_are_answered_in_order() {
    let bash = |command: &str| ModelCall::ours("Bash", json!({"command": command}));
    let wait = "until [ -e made ]; do sleep 0.05; done; echo first";
    let turn = Turn::Call(vec![bash(wait), bash("touch made; echo second"), bash("echo third")]);
    let ran = run_with([turn, say("all three")], |_, _| ()).await;
    assert_eq!(ran.step["output"], "all three", "{}", ran.words);
    let results = ran.stage.model.results();
    for (result, word) in results.iter().zip(["first", "second", "third"]) {
        assert!(result.contains(word), "{results:?}");
    }
    let heard = ran.heard();
    let ids = |value: &Value| value.as_str().unwrap().to_owned();
    let asked: Vec<String> =
        heard[1]["tool_calls"].as_array().unwrap().iter().map(|call| ids(&call["id"])).collect();
    let answered: Vec<String> = heard[2..].iter().map(|it| ids(&it["tool_call_id"])).collect();
    assert_eq!((asked.len(), &asked), (3, &answered));
    records_when(&ran.stage.home(), |records| records.len() == 3).await;
}

/// Calls are made whatever the finish reason, and the model gets an error for those that cannot be
/// made.
#[tokio::test]
async fn odd_calls_are_made_or_answered_with_an_error() {
    let turn = calls(
        &[
            json!({"name": "Read", "arguments": "{\"path\": \"a."}),
            json!({"id": "same", "name": "Nope", "arguments": "{}"}),
            json!({"id": "same", "name": "Read", "arguments": "{\"path\": \"a.txt\"}"}),
            json!({"name": "Glob", "arguments": "[]"}),
            json!({"id": "refused", "name": "Read", "arguments": "{\"path\": \"../../etc/passwd\"}"}),
        ],
        "stop",
    );
    let ran = run_with([turn, say("I see")], |_, _| ()).await;
    assert_eq!(ran.step["output"], "I see", "{}", ran.words);
    assert_eq!(ran.step["model"], "m-1", "the last that was told: {}", ran.step);
    let heard = ran.heard();
    let said = heard[1]["tool_calls"].as_array().unwrap();
    let ids: Vec<&str> = said.iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["call_1_0", "same", "call_1_2", "call_1_3", "refused"]);
    // Servers that parse the arguments would refuse the conversation.
    assert_eq!(said[0]["function"]["arguments"], "{}");
    assert_eq!(said[2]["function"]["arguments"], "{\"path\": \"a.txt\"}");
    let results = ran.stage.model.results();
    for (result, words) in results.iter().zip([
        "error: the arguments are not valid JSON: it ends inside a string",
        "error: there is no tool 'Nope'; available tools: ",
        "one line",
        "error: the arguments are not valid JSON: expected an object",
        "error: ",
    ]) {
        assert!(result.starts_with(words), "{results:?}");
    }
    // A call that was never made is not recorded; one that the tool refused is.
    let records = records_when(&ran.stage.home(), |records| records.len() == 2).await;
    assert!(records.iter().all(|record| record["tool"] == "Read"), "{records:?}");
    assert_eq!(ran.words.matches("rejected a tool call of the model").count(), 3, "{}", ran.words);
}

/// The costs that the server reports are summed, and the model's name is the server's.
#[tokio::test]
async fn tokens_and_costs_are_those_of_all_turns() {
    let priced = |delta: Value, finish: &str| {
        let usage = json!({"prompt_tokens": 5, "completion_tokens": 2, "cost": 0.25});
        let last = json!({"choices": [], "usage": usage});
        Turn::Raw(ModelAnswer::events([&chunk(delta, Some(finish)), &last]))
    };
    let read = json!({"index": 0, "id": "a", "function": {"name": "Read",
        "arguments": "{\"path\": \"a.txt\"}"}});
    let turns =
        [priced(json!({"tool_calls": [read]}), "stop"), priced(json!({"content": "so"}), "stop")];
    let stage = Stage::new(PROVIDER, turns).await;
    let mut step = stage.step(&json!({"enable": true}));
    step["on_success"] = json!("count");
    let count = json!({"type": "step", "command": "echo {{.states.task.TokensUsed}}",
                       "on_success": "done"});
    let flow = stage.flow_of(json!({"initial": "task", "task": step, "count": count}));
    let (ran, words) = stage.run_json(&flow, &[]).await;
    let step = &ran["steps"][0];
    assert_eq!((&step["tokens"], &step["cost_usd"]), (&json!(14), &json!(0.5)), "{words}");
    assert_eq!((&step["model"], &step["output"]), (&json!("m-2"), &json!("so")), "{words}");
    assert_eq!(ran["steps"][1]["output"], "14\n", "{words}");
    let run = stage.last_run().await;
    assert_eq!((&run["tokens"], &run["cost_usd"]), (&json!(14), &json!(0.5)), "{run}");
}

/// Two providers at once and a plugin, each with its own span.
#[tokio::test]
async fn steps_that_run_at_once_keep_their_spans_apart() {
    let collector = Collector::grpc().await;
    let apply = ours("deploy_apply", json!({"table": "users"}));
    let turns = [ours("Read", json!({"path": "a.txt"})), apply, say("a")];
    let stage = Stage::new(PROVIDER, turns).await;
    plugins::install_approved(&stage, "deploy", "apply").await;
    let other = Stage::scripted([ours("Glob", json!({"pattern": "*"})), say("b")]).await;
    let tools = json!([{"plugin": "deploy", "expose": ["apply"]}]);
    let one = stage.step(&json!({"enable": true, "plugin_tools": tools}));
    let two = other.step(&json!({"enable": true}));
    let third = Model::start([ours("Bash", json!({"command": "false"})), say("c")]).await;
    let mut three = stage.step(&json!({"enable": true}));
    three["options"]["base_url"] = json!(third.url());
    let both = json!({"type": "parallel", "parallel": ["a", "b", "c"], "on_success": "done"});
    let flow =
        stage.flow_of(json!({"initial": "both", "both": both, "a": one, "b": two, "c": three}));
    let (ran, words) = stage.run_json(&flow, &["--otel-exporter", &collector.url]).await;
    assert_eq!(ran["status"], "success", "{words}");
    let spans = collector.spans(12).await;
    let parent = |id: &str| spans.iter().find(|span| span.span_id == id);
    for (tool, step, provider, source) in [
        ("Read", "a", PROVIDER, "builtin"),
        ("deploy_apply", "a", PROVIDER, "plugin:deploy"),
        ("Glob", "b", "claude", "builtin"),
        ("Bash", "c", PROVIDER, "builtin"),
    ] {
        let name = format!("tool.call.{tool}");
        let call = spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(call.attributes["tool.source"], source);
        let agent = parent(&call.parent_id).unwrap();
        assert_eq!(
            (agent.name.as_str(), &agent.attributes["provider"]),
            ("agent.call", &json!(provider))
        );
        assert!(agent.attributes["tokens_used"].as_i64().is_some_and(|tokens| tokens > 0));
        assert!(agent.attributes["model"].is_string(), "{agent:?}");
        let step_span = parent(&agent.parent_id).unwrap();
        assert_eq!(step_span.name, format!("step.{step}"));
        assert_eq!(parent(&step_span.parent_id).unwrap().name, "workflow.run");
    }
}

/// A run without a file: the report of missing settings, a dry run, and the run itself.
#[tokio::test]
async fn the_environment_configures_the_model_server() {
    let stage = Stage::new(PROVIDER, [ours("Read", json!({"path": "a.txt"})), say("done")]).await;
    let url = format!("{}/v1", stage.model.url());
    let command = |args: &[&str]| {
        let mut command = stage.countersign("run");
        command.args(["--provider", "openai-compatible", "--prompt", "do it"]).args(args);
        command
    };
    let output = ended(command(&[])).await;
    let words = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("base_url is missing: set options.base_url or OPENAI_BASE_URL"));
    assert!(words.contains("model is missing: set options.model or OPENAI_MODEL"), "{words}");
    for format in ["text", "json"] {
        let mut command = command(&["--dry-run", "-o", format]);
        command.env("OPENAI_BASE_URL", &url).env("OPENAI_MODEL", "m-9").env("OPENAI_API_KEY", KEY);
        let output = ended(command).await;
        let shown = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{shown}{}", stderr(&output));
        for word in [&format!("{url}/chat/completions"), "m-9", "Grep", "full"] {
            assert!(shown.contains(word), "{word}: {shown}");
        }
        assert!(!shown.contains(KEY), "{shown}");
    }
    assert!(stage.model.requests().is_empty());
    let mut command = command(&["--model", "m-7"]);
    command.env("OPENAI_BASE_URL", &url).env("OPENAI_MODEL", "m-9").env("OPENAI_API_KEY", KEY);
    let output = ended(command).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "done\n");
    assert_eq!(stage.model.turns()[0].body["model"], "m-7");
}
