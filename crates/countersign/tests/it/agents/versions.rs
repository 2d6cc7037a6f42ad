//! Versions of the agent programs that are not in the table of what they read: older ones from npm,
//! and ones that keep tools of their own. What cannot be isolated runs in coexistence, with the
//! reason, or not at all.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::foreign;
use testkit::program::{stderr, stdout};

use super::stage::{Stage, ended};
use super::{ours, say};

const UNSUPPORTED: &str = "USER.MCP_PROXY.UNSUPPORTED_PROVIDER";

fn old(name: &str) -> PathBuf {
    foreign::program(&format!("agents-old/bin/{name}"))
}

fn flow(stage: &Stage, program: &Path, isolation: &str) -> PathBuf {
    let mut step = stage.step_with(&json!({"enable": true}), program);
    step["isolation"] = json!(isolation);
    stage.flow_of(json!({"initial": "task", "task": step}))
}

async fn validated(stage: &Stage, flow: &Path) -> Value {
    let mut command = stage.countersign("validate");
    command.arg(flow).args(["--format", "json"]);
    let output = ended(command).await;
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

fn records(stage: &Stage) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(stage.home().join("probes")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Starts the real program without the arguments that remove its tools.
const KEEPS_TOOLS: &str = r#"left=$#
while [ "$left" -gt 0 ]; do
    arg=$1; shift; left=$((left - 1))
    if [ "$arg" = --tools ]; then shift; left=$((left - 1)); else set -- "$@" "$arg"; fi
done
exec "$PROGRAM" "$@""#;

#[tokio::test]
async fn an_unknown_version_is_probed_once_and_then_isolated() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new("claude", [ours("Read", json!({"path": "a.txt"})), say("well")]).await;
    let flow = flow(&stage, &old("claude-2.1"), "required");
    let told = validated(&stage, &flow).await;
    assert_eq!((&told["valid"], &told["warnings"]), (&json!(true), &json!([])), "{told}");
    assert!(stage.model.requests().is_empty(), "a probe asks no model of the person's");
    let kept = records(&stage);
    let [record] = &kept[..] else { panic!("{kept:?}") };
    let text = std::fs::read_to_string(record).unwrap();
    assert!(text.contains("\"isolated\":true"), "{text}");
    let written = record.metadata().unwrap().modified().unwrap();

    let (ran, words) = stage.run_json(&flow, &[]).await;
    assert_eq!(ran["status"], "success", "{words}");
    assert_eq!(ran["steps"][0]["isolation"], "full", "{words}");
    assert!(stage.model.results()[0].contains("one line"), "{words}");
    assert_eq!(records(&stage), kept);
    assert_eq!(record.metadata().unwrap().modified().unwrap(), written, "probed again");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn an_unknown_version_that_keeps_tools_is_found_by_the_probe() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new("claude", [say("well")]).await;
    let script = format!("PROGRAM='{}'\n{KEEPS_TOOLS}", old("claude-2.1").display());
    let program = stage.program(&script);
    let told = validated(&stage, &flow(&stage, &program, "preferred")).await;
    let message = told["warnings"][0]["message"].as_str().unwrap_or_else(|| panic!("{told}"));
    let reason = "Reason: version 2.1.100 still offers Agent, AskUserQuestion, Bash and ";
    assert!(message.contains(reason), "{message}");
    assert!(message.contains("Use 'openai_compatible' for guaranteed"), "{message}");
    let told = validated(&stage, &flow(&stage, &program, "required")).await;
    assert_eq!(told["errors"][0]["code"], UNSUPPORTED, "{told}");
    stage.assert_nothing_left().await;
}

/// A version that the table has is not probed; what it announces counts.
#[tokio::test]
async fn announced_tools_that_are_not_ours_end_the_step() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new("claude", [say("well")]).await;
    let program = stage.program(&format!("PROGRAM=\"$REAL\"\n{KEEPS_TOOLS}"));
    let (ran, words) = stage.run_json(&flow(&stage, &program, "required"), &[]).await;
    let step = &ran["steps"][0];
    assert_eq!((&ran["status"], &ran["exit_code"]), (&json!("failure"), &json!(3)), "{words}");
    assert_eq!(step["error_code"], "AGENT_NOT_ISOLATED", "{words}");
    let message = step["error_message"].as_str().unwrap();
    assert!(
        message.starts_with("claude started with tools that are not the gate's and was ended: "),
        "{message}"
    );
    assert!(message.contains("Bash"), "{message}");
    stage.assert_nothing_left().await;
}

/// Announces a tool of its own, and goes on when it is given the time.
const ANNOUNCES: &str = r#"cat > /dev/null
echo '{"type":"system","subtype":"init","model":"m","tools":["mcp__awf-proxy__Read","Bash"]}'
while read -r never < "$HOME_OF_GATE/../gate-is-shut"; do :; done
touch "$HOME_OF_GATE/../went-on""#;

#[tokio::test]
async fn a_program_that_announces_its_own_tools_is_ended_at_once() {
    let stage = Stage::new("claude", []).await;
    // A pipe that nobody writes to: the program waits at it until it is ended.
    let pipe = stage.dir().join("gate-is-shut");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let program = stage.fake_claude(ANNOUNCES);
    let (ran, words) = stage.run_json(&flow(&stage, &program, "preferred"), &[]).await;
    let step = &ran["steps"][0];
    assert_eq!(step["error_code"], "AGENT_NOT_ISOLATED", "{words}");
    assert!(step["error_message"].as_str().unwrap().ends_with("was ended: Bash"), "{words}");
    assert!(!stage.dir().join("went-on").exists(), "{words}");
    stage.assert_nothing_left().await;
}

/// Runs an old version in coexistence: its warning names the reason, and our tools work.
async fn coexists(provider: &str, name: &str, reason: &str) {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new(provider, [ours("Read", json!({"path": "a.txt"})), say("well")]).await;
    let (ran, words) = stage.run_json(&flow(&stage, &old(name), "preferred"), &[]).await;
    assert_eq!(ran["status"], "success", "{words}");
    assert_eq!(ran["steps"][0]["isolation"], "coexistence", "{words}");
    assert_eq!(ran["steps"][0]["calls"], 1, "{words}");
    assert!(stage.model.results().concat().contains("one line"), "{words}");
    assert!(words.contains(&format!("Reason: {reason}.")), "{words}");
    let asked: String = stage.model.turns().iter().map(|it| it.body.to_string()).collect();
    assert!(asked.contains("Use only MCP tools, never built-in tools."), "{words}");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn claude_2_0_coexists() {
    coexists("claude", "claude-2.0", "version 2.0.0 does not support --tools").await;
}

#[tokio::test]
async fn codex_0_120_coexists() {
    let reason = "version 0.120.0 does not support --ignore-user-config, --ignore-rules";
    coexists("codex", "codex-0.120", reason).await;
}

#[tokio::test]
async fn gemini_0_20_coexists() {
    coexists("gemini", "gemini-0.20", "version 0.20.0 does not support --policy, --skip-trust")
        .await;
}

#[tokio::test]
async fn gemini_0_30_coexists() {
    coexists("gemini", "gemini-0.30", "version 0.30.0 does not support --skip-trust").await;
}
