//! `run --resume`: a run continues from the step that failed, after a failure, Ctrl+C or SIGKILL.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::program::{run, stderr, stdout};

use crate::agents::stage::Stage;
use crate::ledger::rows;
use crate::run_story::Running;

/// Appends its name to a file, so that each run of a step leaves a trace.
fn step(name: &str, command: &str, next: &str) -> Value {
    let command = format!("echo {name} >> trace; {command}");
    json!({"type": "step", "command": command, "on_success": next, "on_failure": "bad"})
}

fn flow(stage: &Stage, states: Value) -> PathBuf {
    let mut states = states;
    states["done"] = json!({"type": "terminal", "status": "success"});
    states["bad"] = json!({"type": "terminal", "status": "failure", "message": "it failed"});
    let inputs = json!([{"name": "env", "default": "dev"}, {"name": "password"}]);
    let file = stage.dir().join("flow.yaml");
    let text = json!({"name": "flow", "inputs": inputs, "states": states}).to_string();
    std::fs::write(&file, text).unwrap();
    file
}

/// Three steps, the second of which fails until the file `fixed` exists.
fn three(stage: &Stage) -> PathBuf {
    flow(
        stage,
        json!({
            "initial": "a",
            "a": step("a", "echo {{.inputs.env}}-42", "b"),
            "b": step("b", "test -e fixed", "c"),
            "c": step("c", "echo got {{.states.a.Output}}", "done"),
        }),
    )
}

fn trace(stage: &Stage) -> String {
    let text = std::fs::read_to_string(stage.workspace().join("trace")).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fix(stage: &Stage) {
    std::fs::write(stage.workspace().join("fixed"), "").unwrap();
}

async fn resume(stage: &Stage, args: &[&str]) -> (Option<i32>, String) {
    let mut command = stage.countersign("run");
    command.args(args);
    let output = crate::agents::stage::ended(command).await;
    (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
}

#[tokio::test]
async fn smoke_a_failed_run_goes_on_from_the_failed_step() {
    let stage = Stage::new("claude", []).await;
    let file = three(&stage);
    let (told, words) = stage.run_json(&file, &["-i", "env=prod"]).await;
    assert_eq!(told["status"], "failure", "{words}");
    let first = told["id"].as_str().unwrap().to_owned();
    let (code, words) = resume(&stage, &["--resume", &first[..13]]).await;
    assert_eq!(code, Some(3), "still broken: {words}");
    fix(&stage);
    let second = stage.last_run().await["id"].as_str().unwrap().to_owned();
    let (code, words) = resume(&stage, &["--resume", &second, "-i", "env=prod"]).await;
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains(&format!("goes on from run {second}")), "{words}");
    assert_eq!(trace(&stage), "a b b b c", "the first step ran once");
    assert!(words.lines().any(|line| line == "got prod-42"), "its output was kept: {words}");

    // The records tell the whole story.
    let third = stage.last_run().await;
    assert_eq!((&third["resumed_from"], &third["status"]), (&json!(second), &json!("success")));
    let states: Vec<&Value> =
        third["steps"].as_array().unwrap().iter().map(|step| &step["state"]).collect();
    assert_eq!(states, [&json!("b"), &json!("c")]);
    let shown = stdout(&run(stage.dir(), ["runs", "show", &second]).await);
    assert!(shown.contains(&format!("resumes   {first}")), "{shown}");
}

#[tokio::test]
async fn a_killed_run_goes_on_from_the_step_that_ran() {
    for signal in [rustix::process::Signal::KILL, rustix::process::Signal::INT] {
        let stage = Stage::new("claude", []).await;
        let waits = "until test -e fixed; do sleep 0.05; done; echo over";
        let file = flow(
            &stage,
            json!({
                "initial": "a",
                "a": step("a", "echo 42", "both"),
                "both": {"type": "parallel", "parallel": ["quick", "slow"], "on_success": "c",
                         "on_failure": "bad"},
                "quick": {"type": "step", "command": "echo quick >> trace; echo was quick"},
                "slow": {"type": "step", "command": format!("echo slow >> trace; {waits}")},
                "c": step("c", "echo {{.states.a.Output}} {{.states.quick.Output}} {{.states.slow.Output}}", "done"),
            }),
        );
        let mut running = Running::start(stage.command(&file, &["-o", "jsonl"]));
        let begun = running.until(r#""state":"slow""#).await;
        let id =
            serde_json::from_str::<Value>(&begun[0]).unwrap()["id"].as_str().unwrap().to_owned();
        // The other branch has ended, too, in either order.
        if !begun.iter().any(|line| line.contains("step_ended") && line.contains("quick")) {
            running
                .until(r#""state":"quick","kind":"command","attempt":1,"provider":null,"model""#)
                .await;
        }
        testkit::wait::eventually(|| async {
            let kept = rows(&stage.home(), "SELECT state FROM run_outcomes");
            (trace(&stage).contains("slow") && kept.len() == 2).then_some(())
        })
        .await;
        let pid =
            rustix::process::Pid::from_raw(running.child.id().unwrap().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let (code, rest) = running.rest().await;
        let status = if signal == rustix::process::Signal::KILL { None } else { Some(130) };
        assert_eq!(code, status, "{rest:?}");
        fix(&stage);
        let (code, words) = resume(&stage, &["--resume", &id]).await;
        assert_eq!(code, Some(0), "{words}");
        let ran = trace(&stage);
        let count = |name: &str| ran.split(' ').filter(|it| *it == name).count();
        assert_eq!((count("a"), count("quick"), count("slow"), count("c")), (1, 1, 2, 1), "{ran}");
        assert!(words.contains("42 was quick over"), "{words}");
        let told = stdout(&run(stage.dir(), ["runs", "show", &id, "-o", "json"]).await);
        let told: Value = serde_json::from_str(&told).unwrap();
        let expected = if status.is_none() { "interrupted" } else { "cancelled" };
        assert_eq!(told["status"], expected, "{told}");
        stage.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn what_cannot_go_on_is_refused_with_the_reason() {
    let stage = Stage::new("claude", []).await;
    let file = three(&stage);
    let secret = "password=ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let (told, _) = stage.run_json(&file, &["-i", secret]).await;
    let id = told["id"].as_str().unwrap().to_owned();
    let refused = async |args: &[&str], words: &str| {
        let (code, told) = resume(&stage, args).await;
        assert_eq!(code, Some(1), "{args:?}: {told}");
        assert!(told.contains(words), "{args:?}: {told}");
    };
    refused(&["--resume", "nothing"], "NOT_FOUND: run 'nothing' not found").await;
    let asks = "RUN_NOT_RESUMABLE: input 'password' holds a secret and was not kept: pass -i";
    refused(&["--resume", &id], asks).await;
    let differs = "RUN_NOT_RESUMABLE: input 'env' differs from that of the run";
    refused(&["--resume", &id, "-i", secret, "-i", "env=prod"], differs).await;
    refused(&["--resume", &id, "-i", secret, "-i", "x=1"], "input 'x' was not given").await;
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n")).unwrap();
    refused(&["--resume", &id, "-i", secret], "RUN_NOT_RESUMABLE: the workflow file has changed")
        .await;
    std::fs::write(&file, text).unwrap();

    let elsewhere = stage.dir().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = stage.countersign("run");
    command.args(["--resume", &id, "-i", secret]).current_dir(&elsewhere);
    let output = crate::agents::stage::ended(command).await;
    assert!(stderr(&output).contains("RUN_NOT_RESUMABLE: it ran in"), "{}", stderr(&output));

    fix(&stage);
    let (code, words) = resume(&stage, &["--resume", &id, "-i", secret]).await;
    assert_eq!(code, Some(0), "{words}");
    let last = stage.last_run().await["id"].as_str().unwrap().to_owned();
    refused(&["--resume", &last, "-i", secret], "RUN_NOT_RESUMABLE: the run succeeded").await;
    assert_no_secret_in(&stage.home(), "ghp_0123456789abcdefghij");
}

/// An output that had to be redacted is not what later steps would have seen.
#[tokio::test]
async fn an_output_with_a_secret_is_not_passed_on() {
    let stage = Stage::new("claude", []).await;
    let secret = "ghp_9876543210abcdefghijABCDEFGHIJ012345";
    let file = flow(
        &stage,
        json!({
            "initial": "a",
            "a": step("a", &format!("echo {secret}"), "b"),
            "b": step("b", "test -e fixed && echo {{.states.a.Output}}", "done"),
        }),
    );
    let (told, _) = stage.run_json(&file, &[]).await;
    fix(&stage);
    let (code, words) = resume(&stage, &["--resume", told["id"].as_str().unwrap()]).await;
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("RUN_NOT_RESUMABLE: the output of 'a' was too long"), "{words}");
}

fn assert_no_secret_in(folder: &Path, secret: &str) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_no_secret_in(&path, secret);
        } else if let Ok(bytes) = std::fs::read(&path) {
            assert!(!String::from_utf8_lossy(&bytes).contains(secret), "{}", path.display());
        }
    }
}
