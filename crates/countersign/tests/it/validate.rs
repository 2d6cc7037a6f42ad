//! `countersign validate`: every fault of every step at once, with its place, as text and as JSON;
//! and files that are not workflows.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::program::{program, run, stderr, stdout};

use crate::agents::stage::{Stage, ended};
use crate::plugins::install_approved;

async fn told(stage: &Stage, text: &str) -> (Option<i32>, Value) {
    let file = stage.dir().join("flow.yaml");
    std::fs::write(&file, text).unwrap();
    let mut command = stage.countersign("validate");
    command.arg(&file).args(["--format", "json"]);
    let output = ended(command).await;
    let told = serde_json::from_str(&stdout(&output));
    (output.status.code(), told.unwrap_or_else(|_| panic!("{}", stderr(&output))))
}

/// Returns code, path, line and column of each.
fn places(faults: &Value) -> Vec<String> {
    let faults = faults.as_array().unwrap().iter();
    let place = |fault: &Value| {
        let word = |name: &str| fault[name].as_str().unwrap().to_owned();
        let code = word("code").replace("USER.", "");
        format!("{code} {} {}:{}", word("path"), fault["line"], fault["column"])
    };
    faults.map(place).collect()
}

const WRONG: &str = "\
name: wrong
states:
  initial: one
  one:
    type: step
    agent: {provider: claude, prompt: hello}
    mcp_proxy:
      enable: true
      intercept_builtin: false
      mcp_servers: [github, nowhere]
    on_success: two
  two:
    type: agent
    provider: codex
    prompt: hello {{.inputs.nobody}}
    mcp_proxy: {enable: true, intercept_builtins: false}
    on_success: three
  three:
    type: step
    agent: {provider: claude, prompt: hello}
    mcp_proxy:
      enable: true
      plugin_tools:
        - {plugin: kubernetes, expos: [a]}
        - {plugin: other, expose: [a]}
    on_success: nowhere
  done: {type: terminal, status: success}
";

#[tokio::test]
async fn validate_reports_every_fault_of_every_step_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.json");
    std::fs::write(&config, json!({"mcpServers": {"github": {"command": "/bin/sh"}}}).to_string())
        .unwrap();
    let file = dir.path().join("flow.yaml");
    std::fs::write(&file, WRONG).unwrap();
    let (config, file) = (config.to_str().unwrap(), file.to_str().unwrap());
    // A project without any agent on the path.
    let project = dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let run = async |args: &[&str]| {
        let mut program = program(dir.path());
        program.args(["--config", config]).args(args).current_dir(&project).env("PATH", &project);
        ended(program).await
    };
    let output = run(&["validate", file, "-o", "json"]).await;
    let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(output.status.code(), Some(2), "{answer}");
    assert_eq!((&answer["valid"], &answer["workflow"]), (&json!(false), &json!("wrong")));
    let found = places(&answer["errors"]);
    let expected = [
        "WORKFLOW.AGENT_UNAVAILABLE states.one.agent.provider 6:23",
        "MCP_PROXY.UNKNOWN_KEY states.one.mcp_proxy.intercept_builtin 9:7",
        "MCP_PROXY.UNKNOWN_SERVER states.one.mcp_proxy.mcp_servers[1] 10:29",
        "WORKFLOW.AGENT_UNAVAILABLE states.two.provider 14:15",
        "WORKFLOW.BAD_TEMPLATE states.two.prompt 15:19",
        "MCP_PROXY.EMPTY_PROXY states.two.mcp_proxy 16:16",
        "WORKFLOW.AGENT_UNAVAILABLE states.three.agent.provider 20:23",
        "WORKFLOW.MISSING_KEY states.three.mcp_proxy.plugin_tools[0] 24:11",
        "MCP_PROXY.UNKNOWN_PLUGIN states.three.mcp_proxy.plugin_tools[0].plugin 24:20",
        "MCP_PROXY.UNKNOWN_KEY states.three.mcp_proxy.plugin_tools[0].expos 24:32",
        "MCP_PROXY.UNKNOWN_PLUGIN states.three.mcp_proxy.plugin_tools[1].plugin 25:20",
        "WORKFLOW.UNKNOWN_STATE states.three.on_success 26:17",
    ];
    assert_eq!(found, expected);
    let message = answer["errors"][1]["message"].as_str().unwrap();
    assert!(message.contains("intercept_builtins"), "the nearest: {message}");

    let output = run(&["validate", file]).await;
    let text = stdout(&output);
    assert_eq!((output.status.code(), stderr(&output)), (Some(2), String::new()), "{text}");
    assert_eq!(text.lines().count(), found.len() + answer["warnings"].as_array().unwrap().len());
    let line = format!(
        "{file}: error: USER.MCP_PROXY.UNKNOWN_SERVER: line 10, column 29: \
         states.one.mcp_proxy.mcp_servers[1]: "
    );
    assert!(text.contains(&line), "{text}");
    // A run makes the same checks, and starts nothing.
    let output = run(&["run", file]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("USER.MCP_PROXY.EMPTY_PROXY"), "{}", stderr(&output));
}

/// The examples from the original request, completed by a first and a last state.
#[tokio::test]
async fn smoke_the_four_examples_are_understood() {
    let stage = Stage::new("claude", []).await;
    let program = stage.fake_claude("");
    let agent = format!(
        "type: step
    agent:
      provider: claude
      prompt: \"Apply the new k8s manifest\"
      options: {{command: {}}}",
        program.display()
    );
    for (proxy, errors) in [
        ("", vec![]),
        ("mcp_proxy:\n      enable: true", vec![]),
        (
            "mcp_proxy:\n      enable: true\n      plugin_tools:\n        - plugin: kubernetes
          expose: [kubectl_apply, kubectl_get]",
            vec!["MCP_PROXY.UNKNOWN_PLUGIN states.deploy.mcp_proxy.plugin_tools[0].plugin 13:19"],
        ),
        (
            "mcp_proxy:\n      enable: true\n      intercept_builtins: false
      plugin_tools:\n        - plugin: kubernetes\n          expose: [kubectl_apply]",
            vec!["MCP_PROXY.UNKNOWN_PLUGIN states.deploy.mcp_proxy.plugin_tools[0].plugin 14:19"],
        ),
    ] {
        let text = format!(
            "name: deploy\nstates:\n  initial: deploy\n  deploy:\n    {agent}\n    {proxy}\n    \
             on_success: done\n  done: {{type: terminal, status: success}}\n"
        );
        let (code, answer) = told(&stage, &text).await;
        assert_eq!(places(&answer["errors"]), errors, "{text}");
        assert_eq!(code, Some(if errors.is_empty() { 0 } else { 2 }), "{answer}");
    }
}

#[tokio::test]
async fn invalid_workflow_files_are_rejected_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let flow = dir.path().join("flow.yaml");
    let flow = flow.to_str().unwrap();
    for (name, text, code, words) in [
        ("empty", String::new(), 2, "USER.WORKFLOW"),
        ("a list", "[1, 2]".to_owned(), 2, "USER.WORKFLOW"),
        ("no YAML", "a: [b\nc: }".to_owned(), 2, "USER.WORKFLOW.SYNTAX"),
        ("deep", "[".repeat(100_000), 2, "USER.WORKFLOW"),
        ("anchors", bombs(), 2, "USER.WORKFLOW"),
        ("much", format!("name: \"{}\"", "x".repeat(2_000_000)), 2, "USER.WORKFLOW"),
        ("a prompt of 50 MB", "x".repeat(50_000_000), 1, "larger than 16777216 bytes"),
        ("many states", states(60_000), 2, "USER.WORKFLOW"),
    ] {
        std::fs::write(flow, &text).unwrap();
        for verb in ["validate", "run"] {
            let output = run(dir.path(), [verb, flow]).await;
            let told = format!("{}{}", stdout(&output), stderr(&output));
            assert_eq!(output.status.code(), Some(code), "{verb} {name}: {told:.300}");
            assert!(told.contains(words), "{verb} {name}: {told:.300}");
            assert!(told.len() < 500_000, "{name}: {} bytes", told.len());
        }
    }
    let folder = dir.path().to_str().unwrap();
    for (file, words) in [
        (folder, "is a directory"),
        ("/nowhere/flow.yaml", "No such file"),
        ("/dev/zero", "larger than 16777216 bytes"),
    ] {
        for verb in ["validate", "run"] {
            let output = run(dir.path(), [verb, file]).await;
            let told = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{verb} {file}: {told}");
            let told = told.to_lowercase();
            assert!(told.contains(&words.to_lowercase()), "{verb} {file}: {told}");
        }
    }
    std::fs::write(flow, b"name: \xff").unwrap();
    let output = run(dir.path(), ["validate", flow]).await;
    assert!(stderr(&output).contains("utf-8"), "{}", stderr(&output));
    std::fs::set_permissions(flow, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::read(flow).is_err() {
        let output = run(dir.path(), ["validate", flow]).await;
        assert!(stderr(&output).contains("ermission denied"), "{}", stderr(&output));
    }
}

/// The config and the plugin that the faulty steps name.
async fn prepared() -> Stage {
    let stage = Stage::new("claude", []).await;
    stage.config(&json!({
        "off": {"command": "true", "enabled": false},
        "waits": {"command": "true", "quarantined": true},
        "gone": {"command": "no-such-program-anywhere"},
        "unset": {"command": "true", "args": ["${env:NOT_SET_ANYWHERE}"]},
        "nowhere": {"command": "true", "cwd": "/nowhere/at/all"},
        "theirs": {"url": "https://h.example/mcp", "login": "per_token"},
        "good": {"command": "true"},
    }));
    install_approved(&stage, "deploy", "apply bad!name").await;
    std::fs::write(stage.workspace().join("file"), "").unwrap();
    stage.program("exit 1");
    std::fs::rename(stage.dir().join("agent.sh"), stage.workspace().join("crashes")).unwrap();
    stage.fake_claude("touch started; exit 1");
    std::fs::rename(stage.dir().join("agent.sh"), stage.workspace().join("agent")).unwrap();
    stage
}

const AGENT: &str = "type: agent, provider: claude, options: {command: ./agent}";
const MODEL: &str = "type: agent, provider: openai_compatible, prompt: p";

/// The keys of a step each with a fault, its code and path, a part of its message, and its place,
/// which `§` marks. `A` is replaced by an agent that would start, `M` by a model.
const REFUSED: [(&str, &str, &str); 28] = [
    ("A, prompt: §' '", "WORKFLOW.BAD_VALUE states.s.prompt", "the prompt is empty"),
    (
        "type: agent, provider: claude, prompt: p, options: {command: §/nowhere/claude}",
        "WORKFLOW.AGENT_UNAVAILABLE states.s.options.command",
        "program '/nowhere/claude' not found",
    ),
    (
        "type: agent, provider: claude, prompt: p, options: {command: §./crashes}",
        "WORKFLOW.AGENT_UNAVAILABLE states.s.options.command",
        "failed",
    ),
    (
        "type: agent, provider: gemini, prompt: p, options: {command: §no-such-agent}",
        "WORKFLOW.AGENT_UNAVAILABLE states.s.options.command",
        "program 'no-such-agent' not found",
    ),
    (
        "type: agent, provider: claude, prompt: p, mcp_proxy: {enable: true}, options: {command: ./agent, args: [§--tools=x]}",
        "WORKFLOW.ISOLATION states.s.options.args[0]",
        "--tools is not known to be safe",
    ),
    (
        "type: agent, provider: claude, prompt: p, mcp_proxy: {enable: true}, options: {command: ./agent, env: {§HOME: x}}",
        "WORKFLOW.ISOLATION states.s.options.env.HOME",
        "affects the program's own tools",
    ),
    (
        "type: agent, provider: claude, prompt: p, options: {command: ./agent, model: §--debug}",
        "WORKFLOW.BAD_VALUE states.s.options.model",
        "cannot begin with '-'",
    ),
    ("M, options: §{model: m}", "WORKFLOW.BAD_VALUE states.s.options", "set options.base_url"),
    (
        "M, options: §{base_url: 'http://x.example'}",
        "WORKFLOW.BAD_VALUE states.s.options",
        "OPENAI_MODEL",
    ),
    (
        "M, options: {model: m, base_url: §'ftp://x.example'}",
        "WORKFLOW.BAD_VALUE states.s.options.base_url",
        "base_url is not an http or https URL",
    ),
    (
        "M, options: {model: m, base_url: 'http://x.example', api_key: §\"a\\nb\"}",
        "WORKFLOW.BAD_VALUE states.s.options.api_key",
        "not allowed in an HTTP header",
    ),
    (
        "type: step, command: pwd, dir: §nowhere",
        "WORKFLOW.BAD_FOLDER states.s.dir",
        "/nowhere' does not exist",
    ),
    ("type: step, command: pwd, dir: §file", "WORKFLOW.BAD_FOLDER states.s.dir", "not a folder"),
    ("type: step, command: pwd, dir: §/", "WORKFLOW.BAD_FOLDER states.s.dir", "too broad"),
    (
        "type: step, command: pwd, dir: §../home",
        "WORKFLOW.BAD_FOLDER states.s.dir",
        "inside Countersign's own home",
    ),
    (
        "type: step, command: pwd, timeout: §10 minutes",
        "WORKFLOW.BAD_VALUE states.s.timeout",
        "500ms, 1.5s, 10m or 1h30m",
    ),
    ("A, prompt: p, mcp_proxy: {enable: true, mcp_servers: [§off]}", SERVER, "it is disabled"),
    ("A, prompt: p, mcp_proxy: {enable: true, mcp_servers: [§waits]}", SERVER, "in quarantine"),
    ("A, prompt: p, mcp_proxy: {enable: true, mcp_servers: [§theirs]}", SERVER, "no agent token"),
    ("A, prompt: p, mcp_proxy: {enable: true, mcp_servers: [§gone]}", SERVER, "not found"),
    ("A, prompt: p, mcp_proxy: {enable: true, mcp_servers: [§unset]}", SERVER, "NOT_SET_ANYWHERE"),
    ("A, prompt: p, mcp_proxy: {enable: true, mcp_servers: [§nowhere]}", SERVER, "not a folder"),
    (
        "A, prompt: p, mcp_proxy: {enable: true, plugin_tools: [{plugin: deploy, expose: [apply, §bad!name]}]}",
        "MCP_PROXY.UNKNOWN_OPERATION states.s.mcp_proxy.plugin_tools[0].expose[1]",
        "operation 'bad!name': invalid tool name",
    ),
    (
        "type: operation, operation: §deploy.bad!name",
        "MCP_PROXY.UNKNOWN_OPERATION states.s.operation",
        "invalid tool name",
    ),
    (
        "type: operation, operation: §deploy.apply",
        "WORKFLOW.BAD_VALUE states.s.operation",
        "table is required",
    ),
    (
        "type: operation, operation: deploy.apply, inputs: §{table: t, times: often}",
        "WORKFLOW.BAD_VALUE states.s.inputs",
        "times must be a whole number",
    ),
    (
        "type: operation, operation: deploy.apply, inputs: §{table: t, tables: '{{.inputs.x}}'}",
        "WORKFLOW.BAD_VALUE states.s.inputs",
        "deploy.apply has no input 'tables'",
    ),
    (
        "type: operation, operation: deploy.apply, inputs: §{times: '{{.inputs.x}}'}",
        "WORKFLOW.BAD_VALUE states.s.inputs",
        "table is required",
    ),
];

const SERVER: &str = "MCP_PROXY.SERVER_UNUSABLE states.s.mcp_proxy.mcp_servers[0]";

fn flow_of(keys: &str) -> String {
    let keys = match keys.split_at(1) {
        ("A", rest) => format!("{AGENT}{rest}"),
        ("M", rest) => format!("{MODEL}{rest}"),
        _ => keys.to_owned(),
    };
    format!(
        "name: n\ninputs: [{{name: x}}]\nstates:\n  initial: s\n  \
         s: {{{keys}, on_success: done}}\n  done: {{type: terminal}}\n"
    )
}

/// A run makes the same checks as `validate`, and starts nothing.
#[tokio::test]
async fn what_a_run_would_refuse_is_refused_before_anything_starts() {
    let stage = prepared().await;
    for (keys, expected, words) in REFUSED {
        let text = flow_of(keys);
        let line = text.lines().position(|line| line.contains('§')).unwrap();
        let column = text.lines().nth(line).unwrap().chars().position(|c| c == '§').unwrap() + 1;
        let file = stage.dir().join("flow.yaml");
        std::fs::write(&file, text.replace('§', "")).unwrap();
        let mut validate = stage.countersign("--config");
        validate.args(["../config.json", "validate", "-o", "json"]).arg(&file);
        let output = ended(validate).await;
        let answer: Value = serde_json::from_str(&stdout(&output)).unwrap_or_default();
        assert_eq!(output.status.code(), Some(2), "{keys}: {answer}{}", stderr(&output));
        assert_eq!(
            places(&answer["errors"]),
            [format!("{expected} {}:{column}", line + 1)],
            "{keys}: {answer}"
        );
        let message = answer["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(words), "{keys}: {message}");
        let output = stage.run(&file, &["--config", "../config.json"]).await;
        assert_eq!(output.status.code(), Some(2), "{keys}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{keys}: {}", stderr(&output));
    }
    assert!(!stage.workspace().join("started").exists(), "an agent was started");
    let runs = stdout(&run(stage.dir(), ["runs", "list"]).await);
    assert_eq!(runs.trim(), "no matching runs");
}

/// Values are known only when a step runs, and not all of a plugin or config must be usable.
#[tokio::test]
async fn what_depends_on_values_or_is_not_used_is_valid() {
    let stage = prepared().await;
    for keys in [
        "A, prompt: '{{.inputs.x}}'",
        "type: agent, provider: claude, prompt: p, mcp_proxy: {enable: true}, options: {command: ./agent, args: ['{{.inputs.x}}', --tools], model: '{{.inputs.x}}'}",
        "M, options: {model: '{{.inputs.x}}', base_url: '{{.inputs.x}}', api_key: '{{.inputs.x}}'}",
        "type: step, command: pwd, dir: '{{.inputs.x}}'",
        "type: step, command: pwd, timeout: 1h30m",
        "A, prompt: p, mcp_proxy: {enable: true, mcp_servers: [good], plugin_tools: [{plugin: deploy, expose: [apply]}]}",
        "type: operation, operation: deploy.apply, inputs: {table: '{{.inputs.x}}', times: '{{.inputs.x}}'}",
        "type: operation, operation: deploy.apply, inputs: {table: t, times: 3}",
    ] {
        let file = stage.dir().join("flow.yaml");
        std::fs::write(&file, flow_of(keys)).unwrap();
        let mut validate = stage.countersign("--config");
        validate.args(["../config.json", "validate"]).arg(&file);
        let output = ended(validate).await;
        assert_eq!(output.status.code(), Some(0), "{keys}: {}", stdout(&output));
    }
    // The operation that cannot be a tool does not stand in the way of the one that can.
    std::fs::write(
        stage.dir().join("flow.yaml"),
        flow_of("type: operation, operation: deploy.apply, inputs: {table: t}"),
    )
    .unwrap();
    let (ran, words) = stage.run_json(&stage.dir().join("flow.yaml"), &[]).await;
    assert_eq!(ran["status"], "success", "{words}");
}

/// Returns YAML aliases that each expand to ten of the one before.
fn bombs() -> String {
    let mut text = "a0: &a0 [x]\n".to_owned();
    for n in 1..12 {
        let ten = vec![format!("*a{}", n - 1); 10].join(", ");
        text.push_str(&format!("a{n}: &a{n} [{ten}]\n"));
    }
    text
}

fn states(count: usize) -> String {
    let state = |n| format!("  s{n}: {{type: step, commando: x}}\n");
    format!("name: many\nstates:\n{}", (0..count).map(state).collect::<String>())
}
