//! Steps of a run: their folders, the servers they name, values of any length, short time limits,
//! and a log without arguments.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use testkit::model::{ModelAnswer, Then, Turn};
use testkit::program::{command, countersign, stderr, stdout};

use crate::agents::ours;
use crate::agents::stage::{Stage, ended};
use crate::plugins::install_approved;

/// Returns a step that runs a command.
fn shell(command: &str, next: &str) -> Value {
    json!({"type": "step", "command": command, "on_success": next})
}

/// Prints the variables of folders with which a shell itself was started, and where it is.
const FOLDERS: &str = "tr '\\0' '\\n' < /proc/$$/environ | grep -E '^(OLD)?PWD='; pwd";

fn folders(folder: &Path) -> String {
    format!("PWD={0}\n{0}\n", folder.display())
}

/// Runs a workflow as from a program that leaves the variables of another folder.
async fn run_astray(stage: &Stage, flow: &Path, args: &[&str]) -> Value {
    let mut command = stage.command(flow, args);
    command.args(["-o", "json"]).env("PWD", "/elsewhere").env("OLDPWD", "/before");
    let output = ended(command).await;
    let told = serde_json::from_str(&stdout(&output));
    told.unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

#[tokio::test]
async fn commands_and_agents_find_their_own_folder_in_their_variables() {
    for (proxy, is_private) in [(json!({"enable": false}), false), (json!({"enable": true}), true)]
    {
        let stage = Stage::new("claude", []).await;
        let folder = stage.workspace().join("sub");
        std::fs::create_dir(&folder).unwrap();
        let note = stage.dir().join("note");
        let program = stage.fake_claude(&format!("({FOLDERS}) > '{}'", note.display()));
        let mut agent = stage.step_with(&proxy, &program);
        let mut first = shell(FOLDERS, "agent");
        (first["dir"], agent["dir"]) = (json!("sub"), json!("./sub/../sub"));
        let flow = stage.flow_of(json!({"initial": "first", "first": first, "agent": agent}));
        let ran = run_astray(&stage, &flow, &[]).await;
        assert_eq!(ran["steps"][0]["output"], folders(&folder), "{ran}");
        let noted = std::fs::read_to_string(&note).unwrap();
        let private = format!("PWD={}/steps/", stage.home().canonicalize().unwrap().display());
        if is_private {
            assert!(noted.starts_with(&private) && noted.lines().count() == 2, "{noted}");
        } else {
            assert_eq!(noted, folders(&folder));
        }
    }
}

#[tokio::test]
async fn smoke_servers_and_plugins_find_their_own_folder_in_their_variables() {
    let stage = Stage::new("claude", []).await;
    let folder = stage.workspace().join("sub");
    std::fs::create_dir(&folder).unwrap();
    let note = |name: &str| format!("({FOLDERS}) > '{}/{name}'", stage.dir().display());
    let entry = |name: &str| json!({"command": "sh", "args": ["-c", note(name)]});
    let mut placed = entry("placed");
    placed["cwd"] = json!(&folder);
    let config = stage.config(&json!({"placed": placed, "beside": entry("beside")}));
    install_approved(&stage, "deploy", "apply").await;
    let operation = json!({"type": "operation", "operation": "deploy.apply", "dir": "sub",
                           "inputs": {"table": "t"}, "on_success": "agent"});
    let servers = json!({"enable": true, "mcp_servers": ["placed", "beside"]});
    let agent = stage.step_with(&servers, &stage.fake_claude("exit 1"));
    let flow = stage.flow_of(json!({"initial": "first", "first": operation, "agent": agent}));
    let ran = run_astray(&stage, &flow, &[&config[0], &config[1]]).await;
    let inside = ran["steps"][0]["output"].as_str().unwrap();
    let inside: Value = serde_json::from_str(inside).unwrap();
    assert_eq!(inside["in"], json!(folder), "{ran}");
    assert_eq!(inside["pwd"], json!(folder), "{ran}");
    let noted = |name: &str| std::fs::read_to_string(stage.dir().join(name)).unwrap_or_default();
    assert_eq!(noted("placed"), folders(&folder), "{ran}");
    assert_eq!(noted("beside"), folders(&stage.workspace()), "{ran}");
}

#[tokio::test]
async fn a_wrapped_server_finds_the_folder_of_its_client() {
    let stage = Stage::new("claude", []).await;
    let note = stage.dir().join("note");
    let mut wrap = command(&countersign(), stage.dir());
    let script = format!("({FOLDERS}) > '{}'", note.display());
    wrap.args(["wrap", "--name", "s", "--", "sh", "-c", &script]);
    wrap.current_dir(stage.workspace()).env("PWD", "/elsewhere").env("OLDPWD", "/before");
    let _ = ended(wrap).await;
    assert_eq!(std::fs::read_to_string(&note).unwrap(), folders(&stage.workspace()));
}

/// An earlier step may create the folder of a later one, so its absence is a warning until then.
#[tokio::test]
async fn a_missing_folder_has_its_own_error() {
    let stage = Stage::new("claude", []).await;
    let mut second = shell("pwd", "done");
    second["dir"] = json!("made");
    let flow = |first: &str| {
        stage.flow_of(json!({"initial": "a", "a": shell(first, "b"), "b": second.clone()}))
    };
    let (ran, words) = stage.run_json(&flow("mkdir made"), &[]).await;
    let made = format!("{}\n", stage.workspace().join("made").display());
    assert_eq!((&ran["status"], &ran["steps"][1]["output"]), (&json!("success"), &json!(made)));
    assert!(words.contains("warning: USER.WORKFLOW.BAD_FOLDER"), "{words}");
    std::fs::remove_dir(stage.workspace().join("made")).unwrap();
    for first in ["true", "touch made"] {
        let (ran, words) = stage.run_json(&flow(first), &[]).await;
        let step = &ran["steps"][1];
        assert_eq!(step["error_code"], "USER.WORKFLOW.BAD_FOLDER", "{words}");
        assert!(step["error_message"].as_str().unwrap().contains("/made'"), "{words}");
    }
}

/// The agent would have gone on without the tools of these servers, and reported success.
#[tokio::test]
async fn a_server_that_does_not_come_up_fails_the_step_that_names_it() {
    let stage = Stage::new("claude", []).await;
    let dies = "for n in 1 2 3 4 5 6 7; do echo \"line $n\" >&2; done; exit 3";
    let servers = json!({
        "dies": {"command": "sh", "args": ["-c", dies]},
        "silent": {"command": "sleep", "args": ["1000"]},
        "unused": {"command": "sh", "args": ["-c", dies]},
    });
    let file = stage.dir().join("config.json");
    let config = json!({"mcpServers": servers, "connect_timeout": "1s"});
    std::fs::write(&file, config.to_string()).unwrap();
    let well = r#"echo '{"type":"result","subtype":"success","result":"well"}'"#;
    let program = stage.fake_claude(&format!("touch started; {well}"));
    for (server, words) in [
        (
            "dies",
            vec!["server 'dies' did not start: ", "exit status: 3", "line 3 | line 4", "line 7"],
        ),
        ("silent", vec!["server 'silent' did not start: "]),
    ] {
        let step = stage.step_with(&json!({"enable": true, "mcp_servers": [server]}), &program);
        let flow = stage.flow_of(json!({"initial": "task", "task": step}));
        let (ran, told) = stage.run_json(&flow, &["--config", "../config.json"]).await;
        let step = &ran["steps"][0];
        assert_eq!(step["error_code"], "UPSTREAM_UNAVAILABLE", "{told}");
        let message = step["error_message"].as_str().unwrap();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        assert!(!message.contains("line 2"), "only the end: {message}");
        stage.assert_nothing_left().await;
    }
    assert!(!stage.workspace().join("started").exists(), "no agent was started");
}

/// Returns the outcome of a run in which the first step prints this many bytes, and the second runs
/// this command.
async fn passed_on(bytes: usize, command: &str) -> (Value, String) {
    let stage = Stage::new("claude", []).await;
    let print = format!("head -c {bytes} /dev/zero | tr '\\0' \"'\"");
    let states = json!({"initial": "a", "a": shell(&print, "b"), "b": shell(command, "done")});
    let (ran, words) = stage.run_json(&stage.flow_of(states), &[]).await;
    (ran["steps"][1].clone(), words)
}

/// Each byte is a quote, which takes four in the shell's own notation.
#[tokio::test]
async fn long_values_are_passed_to_commands() {
    for bytes in [1_000, 300_000, 2_000_000] {
        let count = "printf %s {{.states.a.Output}} | wc -c; cat; echo \"$0\"";
        let (step, words) = passed_on(bytes, count).await;
        assert_eq!(step["output"], format!("{bytes}\nsh\n"), "{bytes}: {words:.2000}");
    }
    let (step, words) =
        passed_on(300_000, "printf %s {{.states.a.Output}} > /dev/null; exit 7").await;
    assert_eq!(step["exit_code"], 7, "{words:.2000}");
}

#[tokio::test]
async fn values_beyond_a_limit_are_reported() {
    let (step, words) = passed_on(3_000_000, "echo {{.states.a.Output}}").await;
    let message = step["error_message"].as_str().unwrap_or_else(|| panic!("{words:.2000}"));
    assert!(message.contains("larger than 8 MiB"), "{message:.2000}");
    let (step, words) = passed_on(5_000_000, "echo {{.states.a.Output}}").await;
    let message = step["error_message"].as_str().unwrap_or_else(|| panic!("{words:.2000}"));
    assert!(message.contains("it is larger than 4 MiB: write it to a file"), "{message:.2000}");
    // The kernel's own limit for an argument of a program; `echo` of the shell is not one.
    let (step, words) = passed_on(300_000, "/bin/echo {{.states.a.Output}}").await;
    let message = step["error_message"].as_str().unwrap_or_else(|| panic!("{words:.2000}"));
    assert!(message.contains("no argument over 128 KiB; pass"), "{message:.2000}");
}

/// A whole second would have been enough.
#[tokio::test]
async fn a_time_limit_can_be_shorter_than_a_second() {
    let stage = Stage::new("claude", []).await;
    let mut step = shell("sleep 0.9", "done");
    step["timeout"] = json!("500ms");
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (ran, words) = stage.run_json(&flow, &[]).await;
    let step = &ran["steps"][0];
    assert_eq!(step["status"], "timed_out", "{words}");
    assert_eq!(step["error_message"], "the step timed out after 500 ms", "{words}");
}

/// A text that must not be in the log. It does not look like a key, which would be redacted.
const PRIVATE: &str = "walrus-at-noon";

/// Returns a model's call whose arguments are not JSON.
fn malformed_call() -> Turn {
    let function = json!({"name": "Bash", "arguments": format!("{{\"command\": {PRIVATE}")});
    let call = json!({"id": "c", "type": "function", "function": function});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let body = json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]});
    Turn::Raw(ModelAnswer {
        status: 200,
        headers: vec![("content-type", "application/json".to_owned())],
        body: body.to_string(),
        then: Then::End,
    })
}

fn logged(output: &Output) -> String {
    let log = stderr(output);
    assert!(log.contains("tool call"), "{log}");
    log
}

#[tokio::test]
async fn arguments_prompts_and_keys_are_never_logged() {
    let stage = Stage::new(
        "openai_compatible",
        [
            ours("Bash", json!({"command": format!("echo {PRIVATE}")})),
            ours("Bash", json!({"commando": PRIVATE})),
            ours(&format!("No{PRIVATE}"), json!({})),
            malformed_call(),
            Turn::Say("well".to_owned()),
        ],
    )
    .await;
    let mut agent = stage.step(&json!({"enable": true}));
    agent["prompt"] = json!(format!("find the {PRIVATE}"));
    agent["options"]["api_key"] = json!(PRIVATE);
    let mut fake = json!({"type": "agent", "provider": "claude", "prompt": PRIVATE,
                          "mcp_proxy": {"enable": true}, "on_success": "done", "on_failure": "done"});
    fake["options"] = json!({
        "command": stage.fake_claude("exit 1"), "args": ["--name", PRIVATE],
        "env": {"ANTHROPIC_API_KEY": PRIVATE},
    });
    agent["on_success"] = json!("fake");
    let command = format!("printf %s {PRIVATE} > /dev/null");
    let flow = stage.flow_of(json!({
        "initial": "a", "a": shell(&command, "agent"), "agent": agent, "fake": fake,
    }));
    let mut command = stage.command(&flow, &["-o", "json"]);
    command.env("COUNTERSIGN_LOG", "trace");
    let output = ended(command).await;
    let log = logged(&output);
    assert!(!log.contains(PRIVATE), "{log}");
    let ran: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(ran["steps"][1]["status"], "success", "{ran}\n{log}");
}
