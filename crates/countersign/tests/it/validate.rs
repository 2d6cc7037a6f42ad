//! `countersign validate`: every fault of every step at once, with its place, as text and as JSON;
//! and files that are not workflows.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use testkit::program::{run, stderr, stdout};

async fn told(dir: &Path, text: &str) -> (Option<i32>, Value) {
    let file = dir.join("flow.yaml");
    std::fs::write(&file, text).unwrap();
    let output = run(dir, ["validate", file.to_str().unwrap(), "--format", "json"]).await;
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
    std::fs::write(&config, json!({"mcpServers": {"github": {"command": "true"}}}).to_string())
        .unwrap();
    let file = dir.path().join("flow.yaml");
    std::fs::write(&file, WRONG).unwrap();
    let (config, file) = (config.to_str().unwrap(), file.to_str().unwrap());
    let output = run(dir.path(), ["--config", config, "validate", file, "-o", "json"]).await;
    let answer: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(output.status.code(), Some(2), "{answer}");
    assert_eq!((&answer["valid"], &answer["workflow"]), (&json!(false), &json!("wrong")));
    let found = places(&answer["errors"]);
    let expected = [
        "MCP_PROXY.UNKNOWN_KEY states.one.mcp_proxy.intercept_builtin 9:7",
        "MCP_PROXY.UNKNOWN_SERVER states.one.mcp_proxy.mcp_servers[1] 10:29",
        "WORKFLOW.BAD_TEMPLATE states.two.prompt 15:19",
        "MCP_PROXY.EMPTY_PROXY states.two.mcp_proxy 16:16",
        "WORKFLOW.MISSING_KEY states.three.mcp_proxy.plugin_tools[0] 24:11",
        "MCP_PROXY.UNKNOWN_PLUGIN states.three.mcp_proxy.plugin_tools[0].plugin 24:20",
        "MCP_PROXY.UNKNOWN_KEY states.three.mcp_proxy.plugin_tools[0].expos 24:32",
        "MCP_PROXY.UNKNOWN_PLUGIN states.three.mcp_proxy.plugin_tools[1].plugin 25:20",
        "WORKFLOW.UNKNOWN_STATE states.three.on_success 26:17",
    ];
    assert_eq!(found, expected);
    let message = answer["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("intercept_builtins"), "the nearest: {message}");

    let output = run(dir.path(), ["--config", config, "validate", file]).await;
    let text = stdout(&output);
    assert_eq!((output.status.code(), stderr(&output)), (Some(2), String::new()), "{text}");
    assert_eq!(text.lines().count(), found.len() + answer["warnings"].as_array().unwrap().len());
    let line = format!(
        "{file}: error: USER.MCP_PROXY.UNKNOWN_SERVER: line 10, column 29: \
         states.one.mcp_proxy.mcp_servers[1]: "
    );
    assert!(text.contains(&line), "{text}");
    // A run makes the same checks, and starts nothing.
    let output = run(dir.path(), ["--config", config, "run", file]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("USER.MCP_PROXY.EMPTY_PROXY"), "{}", stderr(&output));
}

/// The examples from the original request, completed by a first and a last state.
#[tokio::test]
async fn the_four_examples_are_understood() {
    let dir = tempfile::tempdir().unwrap();
    let agent = "type: step
    agent:
      provider: claude
      prompt: \"Apply the new k8s manifest\"";
    for (proxy, errors) in [
        ("", vec![]),
        ("mcp_proxy:\n      enable: true", vec![]),
        (
            "mcp_proxy:\n      enable: true\n      plugin_tools:\n        - plugin: kubernetes
          expose: [kubectl_apply, kubectl_get]",
            vec!["MCP_PROXY.UNKNOWN_PLUGIN states.deploy.mcp_proxy.plugin_tools[0].plugin 12:19"],
        ),
        (
            "mcp_proxy:\n      enable: true\n      intercept_builtins: false
      plugin_tools:\n        - plugin: kubernetes\n          expose: [kubectl_apply]",
            vec!["MCP_PROXY.UNKNOWN_PLUGIN states.deploy.mcp_proxy.plugin_tools[0].plugin 13:19"],
        ),
    ] {
        let text = format!(
            "name: deploy\nstates:\n  initial: deploy\n  deploy:\n    {agent}\n    {proxy}\n    \
             on_success: done\n  done: {{type: terminal, status: success}}\n"
        );
        let (code, answer) = told(dir.path(), &text).await;
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

/// Returns names that each stand for ten of the one before.
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
