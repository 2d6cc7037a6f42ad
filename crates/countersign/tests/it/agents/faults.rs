//! Agents, models and prompts that go wrong: the step fails with its code and the reason, and no
//! process or file is left.

use std::iter::repeat_n;
use std::path::Path;

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use testkit::foreign::control;
use testkit::model::Turn;
use testkit::program::{stderr, stdout};
use testkit::run::is_long_or_skipped;
use testkit::wait::eventually_within;

use super::ending::pid;
use super::ours;
use super::stage::{PATIENCE, Stage, ended};
use crate::ledger::records_when;

/// Runs one step of a program with this script, and returns the step.
async fn step_of(script: &str, change: impl FnOnce(&mut Value)) -> (Stage, Value) {
    let stage = Stage::new("claude", []).await;
    let program = stage.fake_claude(script);
    let mut step = stage.step_with(&json!({"enable": true}), &program);
    change(&mut step);
    let (ran, words) =
        stage.run_json(&stage.flow_of(json!({"initial": "task", "task": step})), &[]).await;
    assert_eq!(ran["exit_code"], 3, "{words}");
    let told = ran["steps"][0].clone();
    stage.assert_nothing_left().await;
    (stage, told)
}

fn error(step: &Value) -> &str {
    step["error_message"].as_str().unwrap_or_else(|| panic!("{step}"))
}

#[tokio::test]
async fn a_program_that_crashes_or_hangs_fails_its_step() {
    let off = |step: &mut Value| step["mcp_proxy"] = json!({"enable": false});
    let (_, step) = step_of("echo boom >&2; exit 1", off).await;
    assert_eq!((&step["error_code"], &step["exit_code"]), (&json!("AGENT_FAILED"), &json!(1)));
    assert_eq!(error(&step), "the agent exited without a result; last lines of stderr: boom");
    let (_, step) =
        step_of("cat >/dev/null; exec sleep 1000", |step| step["timeout"] = json!(1)).await;
    assert_eq!((&step["status"], &step["error_code"]), (&json!("timed_out"), &json!("TIMEOUT")));
    assert_eq!(error(&step), "the step timed out after 1 s");
    // It reports success but has never listed its tools.
    let well = r#"echo '{"type":"result","subtype":"success","result":"well"}'"#;
    let (_, step) = step_of(well, |_| ()).await;
    assert_eq!(error(&step), "claude never listed the gate's tools: its MCP server did not start");
}

/// Asserts that a step ends whose model talks rubbish, fails or loops.
async fn ends_with_its_model(stage: impl AsyncFn(Vec<Turn>) -> Stage) {
    for (turns, timeout, status) in [
        (vec![Turn::Rubbish; 20], "30s", "failure"),
        (vec![Turn::Fail(500); 20], "30s", "failure"),
        (repeat_n(ours("Read", json!({"path": "a.txt"})), 5_000).collect(), "5s", "timed_out"),
    ] {
        let turn = format!("{:?}", turns[0]);
        let stage = stage(turns).await;
        let mut step = stage.step(&json!({"enable": true}));
        step["timeout"] = json!(timeout);
        let flow = stage.flow_of(json!({"initial": "task", "task": step}));
        let (ran, words) = stage.run_json(&flow, &[]).await;
        let step = &ran["steps"][0];
        assert_eq!(step["status"], status, "{turn}: {words}");
        let code = if status == "failure" { "AGENT_FAILED" } else { "TIMEOUT" };
        assert_eq!(step["error_code"], code, "{turn}: {words}");
        assert!(!error(step).is_empty(), "{words}");
        let calls = step["calls"].as_u64().unwrap();
        let count = usize::try_from(calls).unwrap();
        assert_eq!(calls > 5, status == "timed_out", "{turn}: {words}");
        records_when(&stage.home(), |records| records.len() == count).await;
        stage.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn a_model_that_talks_rubbish_fails_or_loops_ends_the_step() {
    ends_with_its_model(async |turns| Stage::scripted(turns).await).await;
}

#[tokio::test]
async fn long_a_model_that_talks_rubbish_fails_or_loops_ends_codex() {
    if is_long_or_skipped() {
        ends_with_its_model(async |turns| Stage::new("codex", turns).await).await;
    }
}

#[tokio::test]
async fn prompts_of_any_size_are_accepted_or_rejected_with_a_reason() {
    // A command's output can be a prompt; this is 1.4 MB, which Claude takes and Codex does not.
    let print = json!({"type": "step", "command": "head -c 700000 /dev/zero | tr '\\0' x",
                       "on_success": "task"});
    let twice = "{{.states.print.Output}} {{.states.print.Output}}";
    for (provider, fits) in [("claude", true), ("codex", false)] {
        let (stage, mut step) = if fits {
            let stage = Stage::scripted([super::say("much")]).await;
            let step = stage.step(&json!({"enable": true}));
            (stage, step)
        } else {
            let stage = Stage::new(provider, []).await;
            let step = stage.step_with(&json!({"enable": true}), &stage.fake("exit 1"));
            (stage, step)
        };
        step["prompt"] = json!(twice);
        let flow = stage.flow_of(json!({"initial": "print", "print": print, "task": step}));
        let (ran, words) = stage.run_json(&flow, &[]).await;
        let step = &ran["steps"][1];
        if fits {
            assert_eq!(step["status"], "success", "{words}");
            let heard = stage.model.turns()[0].body.to_string().matches('x').count();
            assert!(heard >= 1_400_000, "{heard}");
        } else {
            assert_eq!(step["error_code"], "INVALID_ARGUMENTS", "{words}");
            let said = error(step);
            // Includes the sentence that names the root.
            assert!(said.starts_with("the prompt has 1400"), "{words}");
            assert!(said.contains(" characters, but codex accepts at most 1048576"), "{words}");
            assert!(stage.model.turns().is_empty());
        }
        stage.assert_nothing_left().await;
    }
    let (_, step) = step_of("", |step| step["prompt"] = json!("{{.env.NOTHING_IN_HERE}} ")).await;
    assert!(error(&step).contains("NOTHING_IN_HERE"), "{step}");
}

/// Values are text to the shell, both from an input and from a model's output.
#[tokio::test]
async fn nothing_that_is_put_into_a_command_is_run() {
    let evil = "$(touch pwned) `touch pwned`; touch pwned '\"$(touch pwned)\n touch pwned";
    let stage = Stage::scripted([super::say(evil)]).await;
    let shell = |value: &str, next: &str| {
        let command = format!("printf '%s\\n' {value} | tee -a heard.txt");
        json!({"type": "step", "command": command, "on_success": next})
    };
    let mut step = stage.step(&json!({"enable": true}));
    step["on_success"] = json!("second");
    let states = json!({
        "initial": "first", "first": shell("{{.inputs.word}}", "task"), "task": step,
        "second": shell("{{.states.task.Output}}", "third"),
        "third": shell("{{.states.second.Output}}", "done"),
        "done": {"type": "terminal", "status": "success"},
    });
    let inputs = json!([{"name": "word", "required": true}]);
    let file = stage.dir().join("flow.yaml");
    let flow = json!({"name": "flow", "inputs": inputs, "states": states});
    std::fs::write(&file, flow.to_string()).unwrap();
    let output = stage.run(&file, &["-i", &format!("word={evil}")]).await;
    let code = output.status.code();
    let heard = std::fs::read_to_string(stage.workspace().join("heard.txt")).unwrap_or_default();
    assert!(!stage.workspace().join("pwned").exists(), "{heard}");
    assert_eq!(code, Some(0), "{}{}{heard}", stdout(&output), stderr(&output));
    assert_eq!(heard.matches("$(touch pwned) `touch pwned`").count(), 3, "{heard}");
}

/// Returns options with which a program itself leaves the mark, and the place of the one that does.
fn detour(stage: &Stage, provider: &str, mark: &Path) -> (Value, &'static str) {
    let (mark, url) = (mark.display().to_string(), stage.model.url());
    let touch = "/usr/bin/touch";
    match provider {
        // A profile of AWS can name a command that prints the credentials.
        "claude" => {
            let file = stage.workspace().join("aws");
            let profile = format!("[profile evil]\ncredential_process = {touch} {mark}\n");
            std::fs::write(&file, profile).unwrap();
            let env = json!({
                "CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_BEDROCK_BASE_URL": url,
                "AWS_REGION": "us-east-1", "AWS_PROFILE": "evil", "AWS_CONFIG_FILE": file,
            });
            (json!({"env": env}), "options.env.AWS_CONFIG_FILE")
        }
        // So can a provider of models.
        "codex" => {
            let auth = json!({"command": touch, "args": [mark]});
            let provider = json!({"name": "evil", "base_url": format!("{url}/v1"), "auth": auth});
            let config = json!({"model_provider": "evil", "model_providers": {"evil": provider}});
            (
                json!({"config": config, "model": "gpt-5.5"}),
                "model_providers.evil.auth is not known",
            )
        }
        // A provider of models is a package, which may be a file.
        "opencode" => {
            let file = stage.workspace().join("evil.mjs");
            let script = format!(
                "import fs from 'node:fs';\nfs.writeFileSync({mark:?}, '');\n\
                 export function createEvil() {{ return {{}}; }}\n"
            );
            std::fs::write(&file, script).unwrap();
            let provider = json!({
                "npm": format!("file://{}", file.display()), "name": "evil",
                "models": {"m": {"name": "m"}},
            });
            let config = json!({"provider": {"evil": provider}, "model": "evil/m"});
            (json!({"config": config}), "provider.evil.npm is not known")
        }
        other => panic!("unknown provider {other}"),
    }
}

#[tokio::test]
async fn no_login_or_package_that_a_workflow_names_runs_beside_the_gate() {
    for provider in ["claude", "codex", "opencode"] {
        let stage = Stage::new(provider, []).await;
        let mark = stage.dir().join("mark");
        let (options, place) = detour(&stage, provider, &mark);
        let mut step = stage.step(&json!({"enable": true}));
        step["options"] = options;
        step["options"]["command"] = json!(stage.fake("exit 1"));
        let flow = stage.flow_of(json!({"initial": "task", "task": step}));
        let refused = stage.run(&flow, &[]).await;
        let words = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{words}");
        assert!(words.contains(place), "{words}");
        assert!(!mark.exists(), "{words}");
        stage.assert_nothing_left().await;
        let name = format!("login-or-package-{provider}");
        control(&name, include_str!("faults.rs"), works_without_isolation(provider)).await;
    }
}

/// The control: without isolation, what a workflow names runs outside the gate.
async fn works_without_isolation(provider: &str) {
    let stage = Stage::new(provider, []).await;
    let mark = stage.dir().join("mark");
    let mut step = stage.step(&json!({"enable": false}));
    step["options"] = detour(&stage, provider, &mark).0;
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let child = stage.command(&flow, &[]).spawn().unwrap();
    eventually_within(PATIENCE, || async { mark.exists().then_some(()) }).await;
    let _ = kill_process(pid(&child), Signal::INT);
    child.wait_with_output().await.unwrap();
    stage.assert_nothing_left().await;
}

/// A newer program replaces the running one, as an update does.
#[tokio::test]
async fn a_run_goes_on_when_its_program_is_replaced() {
    let stage = Stage::scripted([ours("Read", json!({"path": "a.txt"})), super::say("read")]).await;
    let program = stage.dir().join("countersign");
    std::fs::copy(env!("CARGO_BIN_EXE_countersign"), &program).unwrap();
    let (own, new) = (program.display(), stage.dir().join("new"));
    let replace = format!("cp {own} {new} && mv {new} {own}", new = new.display());
    let update = json!({"type": "step", "command": replace, "on_success": "task"});
    let step = stage.step(&json!({"enable": true}));
    let flow = stage.flow_of(json!({"initial": "update", "update": update, "task": step}));
    let mut command = stage.countersign_at(&program, "run");
    command.arg(&flow).args(["-o", "json"]);
    let output = ended(command).await;
    let words = format!("{}{}", stdout(&output), stderr(&output));
    let ran: Value = serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{words}"));
    assert_eq!(
        (&ran["status"], &ran["steps"][1]["calls"]),
        (&json!("success"), &json!(1)),
        "{words}"
    );
    stage.assert_nothing_left().await;
}

/// A repository can configure any program started in it; the step's tools still work there.
#[tokio::test]
async fn an_isolated_program_starts_in_an_empty_folder_of_its_own() {
    let script = r#"echo "$PWD" > "$HOME/started-in"; ls -A > "$HOME/seen"; cat > "$HOME/told""#;
    for enable in [true, false] {
        let off = |step: &mut Value| step["mcp_proxy"] = json!({"enable": enable});
        let (stage, _) = step_of(script, off).await;
        let left = |name: &str| std::fs::read_to_string(stage.dir().join(name)).unwrap();
        let workspace = stage.workspace();
        let folder = left("started-in");
        let folder = std::path::Path::new(folder.trim_end());
        if enable {
            assert!(folder.starts_with(stage.home().join("steps")), "{}", folder.display());
            assert_eq!(left("seen"), ".git\n");
            let root = format!("Your tools work in the folder {};", workspace.display());
            assert!(left("told").starts_with(&root), "{}", left("told"));
        } else {
            assert_eq!(folder, workspace);
        }
    }
}
