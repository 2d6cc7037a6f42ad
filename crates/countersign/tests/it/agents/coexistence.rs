//! Agent programs that cannot be isolated, whose server does not come up, or that bypass the gate:
//! each is reported by its code.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::model::Turn;
use testkit::program::{stderr, stdout};
use testkit::run::is_long_or_skipped;

use super::stage::{PROVIDERS, Stage, answers, ended};
use super::{ours, say};
use crate::ledger::records_when;

const WARNING: &str = "mcp_proxy on provider=codex runs in coexistence mode. Built-in tools \
    cannot be disabled and may bypass the proxy. Use 'claude' or 'openai_compatible' for \
    guaranteed MCP-only isolation. Reason: version 0.166.0 does not support --ignore-rules.";

const CODE: &str = "USER.MCP_PROXY.UNSUPPORTED_PROVIDER";

/// A Codex from before `--ignore-rules` existed, which must not be started.
fn old_codex(stage: &Stage) -> PathBuf {
    let answers = answers("codex").replace("--ignore-rules ", "");
    stage.program(&format!("{answers}\ntouch '{}'", stage.dir().join("started").display()))
}

/// The stage's agent without one of its flags.
const WITHOUT_TOOLS_FLAG: &str = r#"case "$*" in
    --help) "$REAL" --help | sed 's/--tools//' ;;
    *) exec "$REAL" "$@" ;;
esac"#;

async fn validate(stage: &Stage, flow: &Path, format: &str) -> (Option<i32>, String) {
    let mut command = stage.countersign("validate");
    command.arg(flow).args(["--format", format]);
    let output = ended(command).await;
    (output.status.code(), stdout(&output))
}

#[tokio::test]
async fn an_old_program_is_reported_before_it_is_started() {
    let stage = Stage::new("codex", []).await;
    let program = old_codex(&stage);
    let step = stage.step_with(&json!({"enable": true}), &program);
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (code, text) = validate(&stage, &flow, "text").await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&format!("warning: {CODE}: ")) && text.contains(WARNING), "{text}");
    let (code, text) = validate(&stage, &flow, "json").await;
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &told["valid"], &told["errors"]), (Some(0), &json!(true), &json!([])));
    let warning = &told["warnings"][0];
    assert_eq!((&warning["code"], &warning["message"]), (&json!(CODE), &json!(WARNING)));
    assert_eq!(warning["path"], "states.task.provider");

    let mut step = stage.step_with(&json!({"enable": true}), &program);
    step["isolation"] = json!("required");
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (code, text) = validate(&stage, &flow, "json").await;
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &told["valid"]), (Some(2), &json!(false)), "{text}");
    assert_eq!(told["errors"][0]["code"], CODE, "{text}");
    let message = told["errors"][0]["message"].as_str().unwrap();
    assert_eq!(message, WARNING);
    let output = stage.run(&flow, &[]).await;
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(CODE), "{}", stderr(&output));
    assert!(!stage.dir().join("started").exists(), "{}", stderr(&output));
    stage.assert_nothing_left().await;
}

/// Runs an agent in coexistence: its warning names the reason, and our tools work.
pub(super) async fn coexists(stage: &Stage, program: &Path, reason: &str) {
    let step = stage.step_with(&json!({"enable": true}), program);
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (ran, words) = stage.run_json(&flow, &[]).await;
    assert_eq!(ran["status"], "success", "{words}");
    assert_eq!(ran["steps"][0]["isolation"], "coexistence", "{words}");
    assert_eq!(ran["steps"][0]["calls"], 1, "{words}");
    assert!(stage.model.results().concat().contains("one line"), "{words}");
    let reason = format!("Reason: {reason}.");
    let logged = |line: &str| line.contains("WARN") && line.contains(&reason);
    assert!(words.lines().any(logged), "{words}");
    let asked: String = stage.model.turns().iter().map(|it| it.body.to_string()).collect();
    assert!(asked.contains("Use only MCP tools, never built-in tools."), "{words}");
    stage.assert_nothing_left().await;
}

/// The output of a model in these runs.
pub(super) fn reads() -> [Turn; 2] {
    [ours("Read", json!({"path": "a.txt"})), say("well")]
}

#[tokio::test]
async fn an_old_program_runs_in_coexistence_with_a_warning() {
    let stage = Stage::scripted(reads()).await;
    let program = stage.program(WITHOUT_TOOLS_FLAG);
    coexists(&stage, &program, "version 2.1.325 does not support --tools").await;
}

/// A program that can be isolated causes no such report; `required` changes nothing.
#[tokio::test]
async fn full_isolation_causes_no_warning() {
    let stage = Stage::scripted([say("well")]).await;
    let mut step = stage.step(&json!({"enable": true}));
    step["isolation"] = json!("required");
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (code, text) = validate(&stage, &flow, "json").await;
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &told["warnings"]), (Some(0), &json!([])), "{text}");
    let (ran, words) = stage.run_json(&flow, &[]).await;
    assert_eq!(ran["steps"][0]["isolation"], "full", "{words}");
    assert!(!words.contains("coexistence"), "{words}");
    let told = stage.model.turns()[0].body.to_string();
    assert!(!told.contains("Use only MCP tools"), "{told}");
}

/// The real program, with its server's file removed before it starts.
const WITHOUT_SERVER: &str = r#"case "$*" in
    *--version* | *--help* | "debug models") ;;
    *) rm "$HOME_OF_GATE"/steps/*/step.json ;;
esac
exec "$REAL" "$@""#;

/// Asserts that a step fails whose program works without the gate's server.
async fn fails_without_its_server(stage: &Stage, program: &Path) {
    let provider = stage.provider();
    let step = stage.step_with(&json!({"enable": true}), program);
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (ran, words) = stage.run_json(&flow, &[]).await;
    assert_eq!((&ran["status"], &ran["exit_code"]), (&json!("failure"), &json!(3)), "{words}");
    let step = &ran["steps"][0];
    assert_eq!(step["error_code"], "AGENT_FAILED", "{words}");
    let said = format!("{provider} never listed the gate's tools: its MCP server did not start");
    assert!(step["error_message"].as_str().unwrap().starts_with(&said), "{words}");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn an_agent_without_its_server_has_failed() {
    for provider in PROVIDERS {
        let stage = Stage::new(provider, []).await;
        fails_without_its_server(&stage, &stage.fake("exit 0")).await;
    }
}

#[tokio::test]
async fn long_a_real_agent_without_its_server_has_failed() {
    if !is_long_or_skipped() {
        return;
    }
    for provider in PROVIDERS {
        let stage = Stage::new(provider, [say("I have no tools"), Turn::Stall]).await;
        // Its offer to a probe does not matter here.
        let program = stage.program(&format!("{}\n{WITHOUT_SERVER}", stage.offers("")));
        fails_without_its_server(&stage, &program).await;
    }
}

/// Claude Code's output for a call of its built-in Bash.
const BYPASSES: &str = r#"cat > /dev/null
echo '{"type":"system","subtype":"init","model":"m"}'
echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"touch pwned"}}]}}'
echo '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}}'
echo '{"type":"result","subtype":"success","result":"all well","usage":{"input_tokens":1,"output_tokens":2}}'"#;

#[tokio::test]
async fn a_tool_used_past_the_gate_fails_the_step_and_is_recorded() {
    let stage = Stage::new("claude", []).await;
    let program = stage.fake_claude(BYPASSES);
    let step = stage.step_with(&json!({"enable": true}), &program);
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (ran, words) = stage.run_json(&flow, &[]).await;
    let step = &ran["steps"][0];
    assert_eq!((&ran["status"], &ran["exit_code"]), (&json!("failure"), &json!(3)), "{words}");
    assert_eq!(step["error_code"], "AGENT_BYPASSED", "{words}");
    assert!(
        step["error_message"]
            .as_str()
            .unwrap()
            .contains("claude bypassed the gate with its own tool 'Bash'"),
        "{words}"
    );
    let records = records_when(&stage.home(), |records| records.len() == 1).await;
    let record = &records[0];
    assert_eq!((&record["surface"], &record["tool"]), (&json!("bypass"), &json!("Bash")));
    assert_eq!(record["error_code"], "AGENT_BYPASSED", "{record}");
    assert_eq!(record["token"], "flow/task/claude", "{record}");
    assert!(record["receipt_id"].is_string(), "{record}");
    stage.assert_nothing_left().await;
}
