//! Agent programs are probed before their first isolated step. Versions that are not in the table
//! of what they read, such as older ones from npm, run in coexistence if they keep their own tools,
//! with the reason, or not at all; a version of the table that does so is refused.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::foreign;
use testkit::program::{stderr, stdout};
use testkit::run::is_long_or_skipped;

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
    let entries = std::fs::read_dir(stage.probes()).into_iter().flatten();
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
    let turns = [ours("Read", json!({"path": "a.txt"})), say("well")];
    let stage = Stage::unprobed("claude", turns).await;
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

/// The real program, which says that it is the version of the table.
#[tokio::test]
async fn a_known_version_that_keeps_tools_is_refused_before_any_request() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let stage = Stage::new("claude", [say("well")]).await;
    let program = stage.program(&format!("PROGRAM=\"$REAL\"\n{KEEPS_TOOLS}"));
    let flow = flow(&stage, &program, "preferred");
    let output = stage.run(&flow, &[]).await;
    let words = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    let reason = "claude cannot be isolated here: version 2.1.325 still offers Agent, ";
    assert!(words.contains("USER.WORKFLOW.AGENT_UNAVAILABLE") && words.contains(reason), "{words}");
    let told = validated(&stage, &flow).await;
    assert!(told["errors"][0]["message"].as_str().unwrap().contains(reason), "{told}");
    assert!(stage.model.requests().is_empty(), "{words}");
    stage.assert_nothing_left().await;
}

/// Returns the events of a run.
async fn events(stage: &Stage, flow: &Path) -> Vec<Value> {
    let output = stage.run(flow, &["-o", "jsonl"]).await;
    let text = stdout(&output);
    let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let events: Vec<Value> = events.collect();
    assert!(events.iter().any(|event| event["type"] == "end"), "{text}{}", stderr(&output));
    events
}

#[tokio::test]
async fn a_probe_is_shown_and_its_result_is_kept_until_the_program_changes() {
    let stage = Stage::unprobed("claude", []).await;
    let well = r#"echo '{"type":"result","subtype":"success","result":"well"}'"#;
    let program = stage.fake_claude(well);
    let of_flow = flow(&stage, &program, "required");
    let seen = events(&stage, &of_flow).await;
    let probe = json!({"type": "probe", "step": null, "agent": "claude", "version": "2.1.325"});
    assert_eq!((&seen[0], &seen[1]["type"]), (&probe, &json!("run")), "{seen:?}");
    let again = events(&stage, &of_flow).await;
    assert!(again.iter().all(|event| event["type"] != "probe"), "{again:?}");

    // A program that an earlier step replaces is probed when its own step begins.
    let offers_more = stage.program(&format!(
        "case $1 in --version | --help) exec '{}.old' $1 ;; esac\n{}",
        program.display(),
        stage.offers("Bash"),
    ));
    std::fs::rename(&offers_more, stage.dir().join("new")).unwrap();
    stage.fake_claude(well);
    let name = program.display();
    let update = format!("cp {name} {name}.old && mv ../new {name}");
    let update = json!({"type": "step", "command": update, "on_success": "task"});
    let step = stage.step_with(&json!({"enable": true}), &program);
    let of_flow = stage.flow_of(json!({"initial": "update", "update": update, "task": step}));
    let seen = events(&stage, &of_flow).await;
    let probes = seen.iter().filter(|event| event["type"] == "probe");
    let steps: Vec<&Value> = probes.map(|event| &event["step"]).collect();
    assert_eq!(steps, [&json!(2)], "{seen:?}");
    let ended = seen.iter().rfind(|event| event["type"] == "step_ended").unwrap();
    assert_eq!(ended["error_code"], "AGENT_NOT_ISOLATED", "{seen:?}");
    let message = "claude cannot be isolated here: version 2.1.325 still offers Bash";
    assert_eq!(ended["error_message"], message, "{seen:?}");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn a_program_that_is_not_to_be_isolated_is_not_probed() {
    let stage = Stage::unprobed("claude", []).await;
    let step = stage.step_with(&json!({"enable": false}), &stage.fake_claude("exit 1"));
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    assert_eq!(validated(&stage, &flow).await["valid"], true);
    let seen = events(&stage, &flow).await;
    assert!(seen.iter().all(|event| event["type"] != "probe"), "{seen:?}");
    assert!(records(&stage).is_empty());
}

/// Announces one of its own tools, and continues when it is given the time.
const ANNOUNCES: &str = r#"cat > /dev/null
echo '{"type":"system","subtype":"init","model":"m","tools":["mcp__awf-proxy__Read","Bash"]}'
while read -r never < "$HOME_OF_GATE/../gate-is-shut"; do :; done
touch "$HOME_OF_GATE/../went-on""#;

#[tokio::test]
async fn a_program_that_announces_its_own_tools_is_ended_at_once() {
    let stage = Stage::new("claude", []).await;
    // A pipe without a writer: the program blocks on it until it is ended.
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
async fn long_gemini_0_30_coexists() {
    if !is_long_or_skipped() {
        return;
    }
    coexists("gemini", "gemini-0.30", "version 0.30.0 does not support --skip-trust").await;
}
