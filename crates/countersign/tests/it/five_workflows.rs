//! Five workflows as people write them, with scripted models: a bug is fixed with tests, three agents
//! meet in one repository, a plugin works between two agents, conditions and retries decide, and
//! reviews run in parallel. Four of them are the examples. Two also run with the real agent programs.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::model::{Model, Turn, codex_config, opencode_config};
use testkit::program::{stderr, stdout};
use testkit::run::is_long_or_skipped;
use tokio::process::Command;

use crate::agents::stage::{Stage, ended};
use crate::agents::{ours, say};
use crate::ledger::records_when;
use crate::plugins::install_approved;

/// Returns the text of an example.
fn example(name: &str) -> String {
    let file = Path::new("../../examples/workflows").join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{}", file.display()))
}

/// Has a provider do the work of the one that the example names, with a scripted model.
fn with_provider(text: &str, named: &str, provider: &str, url: &str) -> String {
    let options = match provider {
        "gemini" => json!({"model": "gemini-2.5-flash",
            "env": {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "test"}}),
        "codex" => json!({"model": "gpt-5.5", "env": {"FAKE_KEY": "test"},
            "config": codex_config(url)}),
        "opencode" => json!({"config": opencode_config(url)}),
        _ => json!({"base_url": format!("{url}/v1"), "model": "m-1", "api_key": "test"}),
    };
    let line = format!("    provider: {named}\n");
    assert!(text.contains(&line), "{text}");
    text.replacen(&line, &format!("    provider: {provider}\n    options: {options}\n"), 1)
}

fn written(stage: &Stage, text: &str) -> PathBuf {
    let file = stage.dir().join("flow.yaml");
    std::fs::write(&file, text).unwrap();
    file
}

/// Runs a workflow whose Claude talks to the stage's model.
async fn ran(stage: &Stage, file: &Path, args: &[&str]) -> (Option<i32>, Value, String) {
    let mut command: Command = stage.command(file, &[args, &["-o", "json"]].concat());
    command.env("ANTHROPIC_BASE_URL", stage.model.url()).env("ANTHROPIC_API_KEY", "test");
    let output = ended(command).await;
    let words = format!("{}\n{}", stdout(&output), stderr(&output));
    let told = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{words}"));
    (output.status.code(), told, words)
}

fn steps(told: &Value) -> Vec<String> {
    let steps = told["steps"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    steps
        .map(|step| {
            format!("{} {} {}", word(&step["state"]), step["attempt"], word(&step["status"]))
        })
        .collect()
}

fn put_script(stage: &Stage, name: &str, script: &str) {
    let file = stage.workspace().join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn an_agent_fixes_a_bug_until_its_tests_pass() {
    let turns = [
        ours("Read", json!({"path": "answer.txt"})),
        ours("Edit", json!({"path": "answer.txt", "old": "41", "new": "42"})),
        ours("Bash", json!({"command": "make test"})),
        say("The answer was off by one."),
    ];
    let stage = Stage::scripted(turns).await;
    std::fs::write(stage.workspace().join("answer.txt"), "the answer is 41\n").unwrap();
    std::fs::write(stage.workspace().join("Makefile"), "test:\n\tgrep -q 42 answer.txt\n").unwrap();
    let file = written(&stage, &example("fix-tests.yaml"));
    let (code, told, words) = ran(&stage, &file, &[]).await;
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(steps(&told), ["test 1 failure", "fix 1 success", "again 1 success"], "{words}");
    let asked = stage.model.turns()[0].body.to_string();
    assert!(asked.contains("This command fails: make test"), "{asked}");
    let records = records_when(&stage.home(), |records| records.len() == 5).await;
    let who: Vec<&str> = records.iter().map(|record| record["token"].as_str().unwrap()).collect();
    let agent = "fix-tests/fix/claude";
    assert_eq!(who, ["fix-tests/test/sh", agent, agent, agent, "fix-tests/again/sh"]);
    assert!(records.iter().all(|record| record["receipt_id"].is_string()));
    stage.assert_nothing_left().await;
}

/// Runs the example of three agents with these providers for its `code`, `tests` and `notes`.
async fn three_agents_meet([code, tests, notes]: [&str; 3]) {
    let changes = |line: &str| {
        let text = format!("# Changes\n- {line}\n");
        [
            ours("Read", json!({"path": "CHANGES.md"})),
            ours("Write", json!({"path": "CHANGES.md", "content": text})),
            say("done"),
        ]
    };
    let stage = Stage::new(tests, changes("tests")).await;
    let (coding, noting) =
        (Model::start(changes("code")).await, Model::start(changes("notes")).await);
    std::fs::write(stage.workspace().join("CHANGES.md"), "# Changes\n").unwrap();
    let mut text = example("three-agents.yaml");
    for (named, provider, model) in
        [("gemini", tests, &stage.model), ("codex", code, &coding), ("opencode", notes, &noting)]
    {
        text = with_provider(&text, named, provider, &model.url());
    }
    let file = written(&stage, &text);
    let (status, told, words) = ran(&stage, &file, &["-i", "task=Describe it"]).await;
    assert_eq!(status, Some(0), "{words}");
    assert_eq!(steps(&told).len(), 3, "{words}");
    let path = stage.workspace().join("CHANGES.md");
    let records = records_when(&stage.home(), |records| records.len() == 6).await;
    for record in &records {
        assert_eq!(record["action"]["target"]["resource"], json!(path), "{record}");
    }
    let mut command = stage.countersign("contention");
    command.args(["-o", "json"]);
    let output = ended(command).await;
    let met: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let edges = met["edges"].as_array().unwrap_or_else(|| panic!("{met}"));
    let pair = |edge: &Value| {
        let mut pair = [&edge["from"], &edge["to"]].map(|agent| agent.as_str().unwrap().to_owned());
        pair.sort();
        pair
    };
    let pairs: BTreeSet<[String; 2]> = edges.iter().map(pair).collect();
    assert_eq!(pairs.len(), 3, "each met each: {met}");
    let mut command = stage.countersign("contention");
    command.args(["--system", "filesystem"]);
    let shown = stdout(&ended(command).await);
    for (state, provider) in [("code", code), ("tests", tests), ("notes", notes)] {
        let agent = format!("three-agents/{state}/{provider}");
        assert!(shown.contains(&agent), "{agent}: {shown}");
    }
    assert!(shown.contains("CHANGES.md"), "{shown}");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn smoke_three_agents_meet_in_one_repository() {
    three_agents_meet(["openai_compatible"; 3]).await;
}

#[tokio::test]
async fn long_three_real_agents_meet_in_one_repository() {
    if is_long_or_skipped() {
        three_agents_meet(["codex", "gemini", "opencode"]).await;
    }
}

/// A plugin's operation takes the words of one agent, and another agent gets its answer.
const RELAY: &str = "
name: relay
states:
  initial: draft
  draft:
    type: agent
    provider: claude
    prompt: Name the table to deploy.
    mcp_proxy: {enable: true}
    on_success: apply
  apply:
    type: operation
    operation: deploy.apply
    inputs: {table: \"{{.states.draft.Output}}\", times: 2}
    on_success: report
  report:
    type: agent
    provider: claude
    prompt: \"Report this: {{.states.apply.Output}}\"
    mcp_proxy: {enable: true, plugin_tools: [{plugin: deploy, expose: [apply]}]}
    on_success: done
  done: {type: terminal, status: success, message: \"{{.states.report.Output}}\"}
";

#[tokio::test]
async fn a_plugin_works_between_two_agents() {
    let turns = [
        say("users"),
        ours("deploy_apply", json!({"table": "orders", "times": 1})),
        say("both are deployed"),
    ];
    let stage = Stage::scripted(turns).await;
    install_approved(&stage, "deploy", "apply destroy").await;
    let file = written(&stage, RELAY);
    let (code, told, words) = ran(&stage, &file, &[]).await;
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(steps(&told), ["draft 1 success", "apply 1 success", "report 1 success"], "{words}");
    assert_eq!(told["message"], "both are deployed", "{words}");
    let heard = stage.model.turns().last().unwrap().body.to_string();
    assert!(heard.contains("Report this: ") && heard.contains("users"), "{heard}");
    // The approval of the plugin is recorded as well.
    let is_call = |record: &&Value| record["tool"] == "deploy_apply";
    let of_plugin = |records: &[Value]| records.iter().filter(is_call).count() == 2;
    let records = records_when(&stage.home(), of_plugin).await;
    let touched: Vec<&Value> =
        records.iter().filter(is_call).map(|record| &record["resource"]).collect();
    assert_eq!(touched, [&json!("users"), &json!("orders")]);
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn conditions_and_retries_decide_what_runs() {
    for (severity, code, last) in [
        ("high", 3, vec!["judge 1 success", "alert 1 success"]),
        ("low", 0, vec!["judge 1 success"]),
    ] {
        let judgement = json!({"severity": severity, "reason": "3 of 4 disks; $(touch pwned)"});
        let turns = [ours("Read", json!({"path": "report.txt"})), say(&judgement.to_string())];
        let stage = Stage::scripted(turns).await;
        // The third attempt succeeds.
        put_script(
            &stage,
            "fetch-report",
            "echo x >> tries; [ $(wc -l < tries) -ge 3 ] || { echo down >&2; exit 1; }; echo bad > \"$1\"",
        );
        put_script(&stage, "alert", "printf '%s' \"$1\" > alerted");
        let file = written(&stage, &example("nightly.yaml"));
        let (found, told, words) = ran(&stage, &file, &[]).await;
        assert_eq!(found, Some(code), "{words}");
        let fetched = ["fetch 1 failure", "fetch 2 failure", "fetch 3 success"];
        let expected: Vec<&str> = fetched.into_iter().chain(last).collect();
        assert_eq!(steps(&told), expected, "{words}");
        let alerted = std::fs::read_to_string(stage.workspace().join("alerted"));
        assert_eq!(alerted.is_ok(), severity == "high");
        if let Ok(alerted) = alerted {
            assert_eq!(alerted, judgement.to_string(), "a value is an argument, never a command");
        }
        assert!(!stage.workspace().join("pwned").exists());
        stage.assert_nothing_left().await;
    }
}

/// The output of the two agents that share a model.
fn reviews() -> [Turn; 2] {
    [say("bug in a.txt:1"), say("1. bug in a.txt:1\n2. no test")]
}

/// Runs the example of reviews with this provider for the one that has another model.
async fn reviews_are_merged(stage: Stage, clarity: &str) {
    let other = Model::start([ours("Read", json!({"path": "a.txt"})), say("no test")]).await;
    let text = with_provider(&example("review.yaml"), "codex", clarity, &other.url());
    let file = written(&stage, &text);
    let git = "git init -q -b main . && git add a.txt && git -c user.name=a -c user.email=a@b \
        commit -q -m one && git checkout -q -b change && echo more >> a.txt && git -c user.name=a \
        -c user.email=a@b commit -q -a -m two";
    let mut command = testkit::program::command(Path::new("sh"), stage.dir());
    command.args(["-c", git]).current_dir(stage.workspace());
    let made = ended(command).await;
    assert!(made.status.success(), "{}", stderr(&made));
    let (code, told, words) = ran(&stage, &file, &[]).await;
    assert_eq!(code, Some(0), "{words}");
    assert_eq!(told["message"], "1. bug in a.txt:1\n2. no test", "{words}");
    let mut ended_steps = steps(&told);
    assert_eq!(ended_steps.pop().as_deref(), Some("merge 1 success"));
    assert_eq!(ended_steps.len(), 3, "{words}");
    let merged = stage.model.turns().pop().unwrap().body.to_string();
    assert!(merged.contains("bug in a.txt:1") && merged.contains("no test"), "{merged}");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn two_reviews_run_at_once_and_a_third_agent_merges_them() {
    reviews_are_merged(Stage::scripted(reviews()).await, "openai_compatible").await;
}

#[tokio::test]
async fn long_two_real_agents_review_at_once_and_a_third_merges() {
    if is_long_or_skipped() {
        reviews_are_merged(Stage::new("claude", reviews()).await, "codex").await;
    }
}
