//! Agent programs that cannot be isolated, whose server does not come up, or that bypass the gate:
//! each is reported by its code.

use serde_json::{Value, json};
use testkit::foreign;
use testkit::model::Turn;
use testkit::program::{stderr, stdout};

use super::say;
use super::stage::{Stage, ended};
use crate::ledger::records_when;

const WARNING: &str = "mcp_proxy on provider=codex runs in coexistence mode. Built-in tools \
    cannot be disabled and may bypass the proxy. Use 'claude' or 'openai_compatible' for \
    guaranteed MCP-only isolation. Reason: version 0.166.0 does not support --ignore-rules.";

const CODE: &str = "USER.MCP_PROXY.UNSUPPORTED_PROVIDER";

/// A Codex from before `--ignore-rules` existed.
const OLD_CODEX: &str = r#"case "$*" in
    "exec --help") "$REAL" exec --help | sed 's/--ignore-rules//g' ;;
    *) exec "$REAL" "$@" ;;
esac"#;

async fn validate(stage: &Stage, flow: &std::path::Path, format: &str) -> (Option<i32>, String) {
    let mut command = stage.countersign("validate");
    command.arg(flow).args(["--format", format]);
    let output = ended(command).await;
    (output.status.code(), stdout(&output))
}

#[tokio::test]
async fn an_old_program_runs_in_coexistence_with_a_warning() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new("codex", [say("well")]).await;
    let program = stage.program(OLD_CODEX);
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

    let (ran, words) = stage.run_json(&flow, &[]).await;
    assert_eq!(ran["status"], "success", "{words}");
    assert_eq!(ran["steps"][0]["isolation"], "coexistence", "{words}");
    let logged = |line: &str| line.contains("WARN") && line.contains(WARNING);
    assert!(words.lines().any(logged), "{words}");
    let told: Vec<String> = stage.model.turns().iter().map(|it| it.body.to_string()).collect();
    assert!(told[0].contains("Use only MCP tools, never built-in tools."), "{}", told[0]);

    let mut step = stage.step_with(&json!({"enable": true}), &program);
    step["isolation"] = json!("required");
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (code, text) = validate(&stage, &flow, "json").await;
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &told["valid"]), (Some(2), &json!(false)), "{text}");
    assert_eq!(told["errors"][0]["code"], CODE, "{text}");
    let message = told["errors"][0]["message"].as_str().unwrap();
    assert_eq!(message, WARNING);
    let asked = stage.model.requests().len();
    let output = stage.run(&flow, &[]).await;
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(CODE), "{}", stderr(&output));
    assert_eq!(stage.model.requests().len(), asked, "nothing was started");
    stage.assert_nothing_left().await;
}

/// The programs as installed cause no such report; `required` changes nothing.
#[tokio::test]
async fn full_isolation_causes_no_warning() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new("codex", [say("well")]).await;
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

async fn server_never_up(provider: &str) {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new(provider, [say("I have no tools"), Turn::Stall]).await;
    // What it offers to a probe does not matter here.
    let program = stage.program(&format!("{}\n{WITHOUT_SERVER}", stage.offers("")));
    let step = stage.step_with(&json!({"enable": true}), &program);
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
async fn claude_without_its_server_has_failed() {
    server_never_up("claude").await;
}

#[tokio::test]
async fn gemini_without_its_server_has_failed() {
    server_never_up("gemini").await;
}

#[tokio::test]
async fn codex_without_its_server_has_failed() {
    server_never_up("codex").await;
}

#[tokio::test]
async fn opencode_without_its_server_has_failed() {
    server_never_up("opencode").await;
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
