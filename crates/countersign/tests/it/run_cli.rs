//! `countersign run` as a person uses it: without a file, as a dry run, with each kind of output,
//! and the output of `runs` afterwards.

use serde_json::{Value, json};
use testkit::program::{run, stderr, stdout};

use crate::agents::stage::{Stage, ended};
use crate::agents::{ours, say};

/// The key is in the step's options, where a dry run would show it.
const KEY: &str = "sk-do-not-show-this-anywhere";

#[tokio::test]
async fn smoke_an_agent_runs_without_a_file_and_its_run_can_be_shown() {
    let turns =
        [ours("Bash", json!({"command": "env > env.txt; cat a.txt"})), say("it is\x1b[31m done")];
    let stage = Stage::scripted(turns).await;
    let mut command = stage.countersign("run");
    command
        .args(["--provider", "claude", "--prompt", "read {{a.txt}} $(touch pwned)"])
        .env("ANTHROPIC_BASE_URL", stage.model.url())
        .env("ANTHROPIC_API_KEY", "test");
    let output = ended(command).await;
    let (out, err) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    // The agent's output on stdout, the rest on stderr, without terminal control sequences.
    assert!(
        out.starts_with("it is") && out.lines().count() == 1 && !out.contains('\x1b'),
        "{out:?}"
    );
    let step = err.lines().find(|line| line.starts_with("ok ")).unwrap_or_else(|| panic!("{err}"));
    assert!(step.contains("agent (claude)") && step.contains(", 1 call, "), "{err}");
    assert!(step.contains("tokens"), "{err}");
    assert!(err.lines().any(|line| line.starts_with("success") && line.contains("run ")), "{err}");
    let asked = stage.model.turns()[0].body.to_string();
    assert!(asked.contains("read {{a.txt}} $(touch pwned)"), "{asked}");
    let env = std::fs::read_to_string(stage.workspace().join("env.txt")).unwrap();
    assert!(env.contains("PATH=") && !env.contains("COUNTERSIGN_"), "{env}");

    let list = stdout(&run(stage.dir(), ["runs", "list"]).await);
    assert_eq!(list.lines().count(), 2, "{list}");
    let row = list.lines().nth(1).unwrap();
    assert!(row.contains(" run ") && row.contains("success"), "{list}");
    let id = row.split_whitespace().next().unwrap();
    let shown = stdout(&run(stage.dir(), ["runs", "show", id]).await);
    for words in ["success (exit code 0)", "claude", "Bash", "agent"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let told = stage.last_run().await;
    assert!(told["tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{told}");
    let step = &told["steps"][0];
    assert_eq!((&step["status"], &step["calls_total"]), (&json!("success"), &json!(1)), "{told}");
    assert_eq!(step["calls"][0]["tool_name"], "Bash", "{told}");
    stage.assert_nothing_left().await;
}

/// A workflow as people write it, with the agent's endpoint in the environment; the step's proxy
/// follows.
const FLOW: &str = "\
name: refactor
version: \"1.0\"
states:
  initial: refactor
  refactor:
    type: step
    agent:
      provider: claude
      prompt: \"Refactor src/foo.go\"
    on_success: done
PROXY
  done: {type: terminal, status: success}
";

/// Without a proxy the agent has its own tools and nothing goes through the gate; with one,
/// everything does.
#[tokio::test]
async fn a_workflow_in_yaml_runs_with_the_proxy_and_without() {
    for (proxy, offered, calls) in
        [("", "Bash", 0), ("    mcp_proxy:\n      enable: true\n", "mcp__awf-proxy__Bash", 1)]
    {
        let turns = match calls {
            0 => vec![say("all done")],
            _ => vec![ours("Read", json!({"path": "a.txt"})), say("all done")],
        };
        let stage = Stage::scripted(turns).await;
        let file = stage.dir().join("flow.yaml");
        std::fs::write(&file, FLOW.replace("PROXY\n", proxy)).unwrap();
        let mut command = stage.command(&file, &["-o", "json"]);
        command.env("ANTHROPIC_BASE_URL", stage.model.url()).env("ANTHROPIC_API_KEY", "test");
        let output = ended(command).await;
        let told = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(0), "{told}");
        let ran: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let step = &ran["steps"][0];
        assert_eq!(
            (&step["output"], &step["calls"]),
            (&json!("all done"), &json!(calls)),
            "{told}"
        );
        assert!(stage.model.advertised().contains(offered), "{:?}", stage.model.advertised());
    }
}

#[tokio::test]
async fn a_dry_run_shows_what_would_start_and_no_key() {
    for provider in ["claude", "codex", "opencode", "gemini"] {
        let stage = Stage::new(provider, []).await;
        let mut step = stage.step_with(&json!({"enable": true}), &stage.fake("touch started"));
        for name in ["ANTHROPIC_API_KEY", "GEMINI_API_KEY", "FAKE_KEY"] {
            if step["options"]["env"][name].is_string() {
                step["options"]["env"][name] = json!(KEY);
            }
        }
        if provider == "opencode" {
            step["options"]["config"]["provider"]["fake"]["options"]["apiKey"] = json!(KEY);
        }
        if provider == "gemini" {
            let env = stage.dir().join(".gemini/.env");
            std::fs::write(env, format!("GEMINI_API_KEY={KEY}\n")).unwrap();
        }
        step["on_success"] = json!("say");
        let say = json!({"type": "step", "command": "echo {{.states.task.Output}}", "on_success": "done"});
        let flow = stage.flow_of(json!({"initial": "task", "task": step, "say": say}));
        let formats: &[&str] = if provider == "claude" { &["text", "json"] } else { &["json"] };
        for format in formats {
            let output = stage.run(&flow, &["--dry-run", "-o", format]).await;
            let text = stdout(&output);
            assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
            assert!(!text.contains(KEY), "{provider} {format}: {text}");
            assert!(text.contains("mcp-serve") && text.contains("isolation"), "{text}");
            if *format == "json" {
                let told: Value = serde_json::from_str(&text).unwrap();
                let step = &told["steps"][0];
                assert_eq!((&step["state"], &step["isolation"]), (&json!("task"), &json!("full")));
                assert!(step["argv"].as_array().is_some_and(|argv| argv.len() > 3), "{step}");
                assert!(step["env"].is_object() && step["files"].is_array(), "{step}");
                assert!(told["steps"][1]["unknown"].is_string(), "{told}");
            }
        }
        assert!(stage.model.requests().is_empty());
        assert!(!stage.workspace().join("started").exists(), "{provider} was started");
        stage.assert_nothing_left().await;
        let runs = stdout(&run(stage.dir(), ["runs", "list"]).await);
        assert_eq!(runs.trim(), "no matching runs");
    }
}

/// Neither the log nor a warning is printed: `b` cannot be reached, and the call would be logged.
#[tokio::test]
async fn a_quiet_run_that_succeeds_prints_nothing_at_all() {
    let stage = Stage::new("claude", []).await;
    let step = json!({"type": "step", "command": "echo out; echo err >&2", "on_success": "done"});
    let flow = stage.flow_of(json!({"initial": "a", "a": step, "b": step}));
    let output = stage.run(&flow, &["-o", "quiet"]).await;
    let told = (output.status.code(), stdout(&output), stderr(&output));
    assert_eq!(told, (Some(0), String::new(), String::new()));
    let loud = stage.run(&flow, &[]).await;
    assert!(stderr(&loud).contains("tool call"), "{}", stderr(&loud));
    assert!(stderr(&loud).contains("USER.WORKFLOW.UNREACHABLE"), "{}", stderr(&loud));
}

#[tokio::test]
async fn the_help_names_every_provider() {
    let dir = tempfile::tempdir().unwrap();
    let help = stdout(&run(dir.path(), ["run", "--help"]).await);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let named = "claude, gemini, codex, opencode or openai_compatible";
    assert!(help.contains(named), "{help}");
}

#[tokio::test]
async fn quiet_prints_only_errors_and_invalid_arguments_are_reported() {
    let stage = Stage::scripted([]).await;
    let fails = json!({"type": "step", "command": "echo out; echo err >&2; exit 7",
                       "on_failure": {"message": "no luck", "status": 9}, "on_success": "done"});
    let flow = stage.flow_of(json!({"initial": "a", "a": fails}));
    let output = stage.run(&flow, &["-o", "quiet"]).await;
    assert_eq!((output.status.code(), stdout(&output)), (Some(9), String::new()));
    assert_eq!(stderr(&output), "countersign: no luck\n");
    let output = stage.run(&flow, &[]).await;
    assert_eq!((output.status.code(), stdout(&output)), (Some(9), String::new()));
    assert!(stderr(&output).contains("no luck"), "{}", stderr(&output));
    assert!(stderr(&output).contains("the command failed with exit code 7"), "{}", stderr(&output));
    let flow = flow.to_str().unwrap();
    for (args, code, words) in [
        (vec!["run"], 1, "FILE"),
        (vec!["run", "--provider", "claude"], 1, "--prompt"),
        (vec!["run", "--provider", "nobody", "--prompt", "x"], 2, "nobody"),
        (vec!["run", "--provider", "claude", "--prompt", " "], 1, "the prompt is empty"),
        (vec!["run", "--provider", "claude", "--prompt", "x", "-i", "a=b"], 1, "--input requires"),
        (
            vec!["run", "--provider", "claude", "--prompt", "x", "--server", "no"],
            2,
            "UNKNOWN_SERVER",
        ),
        (vec!["run", flow, "-i", "a"], 1, "NAME=VALUE"),
        (vec!["run", flow, "-i", "a=b"], 1, "inputs.a: unknown input"),
        (vec!["run", flow, "--provider", "claude", "--prompt", "x"], 1, "cannot be used with"),
    ] {
        let mut command = stage.countersign(args[0]);
        command.args(&args[1..]);
        let output = ended(command).await;
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
}
