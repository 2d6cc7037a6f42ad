//! Agent programs are probed before their first isolated step. Versions that are not in the table
//! of what they read, such as older ones from npm, run in coexistence if they keep their own tools,
//! with the reason, or not at all; a version of the table that does so is refused.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::foreign;
use testkit::program::{stderr, stdout};
use testkit::run::is_long_or_skipped;

use super::coexistence::{coexists, reads};
use super::say;
use super::stage::{Stage, ended};

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

/// Starts a program without the arguments that remove its tools.
const KEEPS_TOOLS: &str = r#"left=$#
while [ "$left" -gt 0 ]; do
    arg=$1; shift; left=$((left - 1))
    if [ "$arg" = --tools ]; then shift; left=$((left - 1)); else set -- "$@" "$arg"; fi
done
exec "$PROGRAM" "$@""#;

/// A scripted agent of a version that the table does not have.
const UNKNOWN: &str = "[ \"$*\" = --version ] && echo '9.9.9 (Claude Code)' && exit";

/// Asserts that a program is probed by the first command, and runs isolated.
async fn is_probed_once(stage: &Stage, program: &Path) {
    let flow = flow(stage, program, "required");
    let told = validated(stage, &flow).await;
    assert_eq!((&told["valid"], &told["warnings"]), (&json!(true), &json!([])), "{told}");
    assert!(stage.model.requests().is_empty(), "a probe asks no model of the person's");
    let kept = records(stage);
    let [record] = &kept[..] else { panic!("{kept:?}") };
    let text = std::fs::read_to_string(record).unwrap();
    assert!(text.contains("\"isolated\":true"), "{text}");
    let written = record.metadata().unwrap().modified().unwrap();

    let (ran, words) = stage.run_json(&flow, &[]).await;
    assert_eq!(ran["status"], "success", "{words}");
    assert_eq!(ran["steps"][0]["isolation"], "full", "{words}");
    assert!(stage.model.results()[0].contains("one line"), "{words}");
    assert_eq!(records(stage), kept);
    assert_eq!(record.metadata().unwrap().modified().unwrap(), written, "probed again");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn an_unknown_version_is_probed_once_and_then_isolated() {
    let stage = Stage::scripted(reads()).await;
    let program = stage.program(&format!("{UNKNOWN}\nexec \"$REAL\" \"$@\""));
    is_probed_once(&stage, &program).await;
}

#[tokio::test]
async fn long_claude_2_1_is_probed_once_and_then_isolated() {
    if is_long_or_skipped() {
        let stage = Stage::unprobed("claude", reads()).await;
        is_probed_once(&stage, &old("claude-2.1")).await;
    }
}

/// Asserts that a program of an unknown version is warned about, as it still offers these tools.
async fn is_warned_about(stage: &Stage, program: &Path, offers: &str) {
    let told = validated(stage, &flow(stage, program, "preferred")).await;
    let message = told["warnings"][0]["message"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert!(message.contains(&format!("Reason: version {offers}")), "{message}");
    assert!(message.contains("Use 'openai_compatible' for guaranteed"), "{message}");
    let told = validated(stage, &flow(stage, program, "required")).await;
    assert_eq!(told["errors"][0]["code"], UNSUPPORTED, "{told}");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn an_unknown_version_that_keeps_tools_is_found_by_the_probe() {
    let stage = Stage::scripted([]).await;
    let program = stage.program(&format!("{UNKNOWN}\nPROGRAM=\"$REAL\"\n{KEEPS_TOOLS}"));
    is_warned_about(&stage, &program, "9.9.9 still offers Bash, Read.").await;
}

#[tokio::test]
async fn long_claude_2_1_that_keeps_tools_is_found_by_the_probe() {
    if is_long_or_skipped() {
        let stage = Stage::new("claude", []).await;
        let script = format!("PROGRAM='{}'\n{KEEPS_TOOLS}", old("claude-2.1").display());
        let offers = "2.1.100 still offers Agent, AskUserQuestion, Bash and ";
        is_warned_about(&stage, &stage.program(&script), offers).await;
    }
}

/// Asserts that a program which says that it is the version of the table is refused, as it still
/// offers these tools.
async fn is_refused(stage: &Stage, offers: &str) {
    let program = stage.program(&format!("PROGRAM=\"$REAL\"\n{KEEPS_TOOLS}"));
    let flow = flow(stage, &program, "preferred");
    let output = stage.run(&flow, &[]).await;
    let words = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    let reason = format!("claude cannot be isolated here: version 2.1.325 still offers {offers}");
    let code = "USER.WORKFLOW.AGENT_UNAVAILABLE";
    assert!(words.contains(code) && words.contains(&reason), "{words}");
    let told = validated(stage, &flow).await;
    assert!(told["errors"][0]["message"].as_str().unwrap().contains(&reason), "{told}");
    assert!(stage.model.requests().is_empty(), "{words}");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn a_known_version_that_keeps_tools_is_refused_before_any_request() {
    is_refused(&Stage::scripted([say("well")]).await, "Bash, Read").await;
}

#[tokio::test]
async fn long_claude_that_keeps_its_tools_is_refused_before_any_request() {
    if is_long_or_skipped() {
        is_refused(&Stage::new("claude", [say("well")]).await, "Agent, ").await;
    }
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

#[tokio::test]
async fn long_old_versions_coexist() {
    if !is_long_or_skipped() {
        return;
    }
    let codex = "version 0.120.0 does not support --ignore-user-config, --ignore-rules";
    for (provider, name, reason) in [
        ("claude", "claude-2.0", "version 2.0.0 does not support --tools"),
        ("codex", "codex-0.120", codex),
        ("gemini", "gemini-0.20", "version 0.20.0 does not support --policy, --skip-trust"),
        ("gemini", "gemini-0.30", "version 0.30.0 does not support --skip-trust"),
    ] {
        coexists(&Stage::new(provider, reads()).await, &old(name), reason).await;
    }
}
