//! Plugins: found, approved, checked, served, run as a step and by an agent, as real processes.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{example, run, stderr, stdout};
use testkit::upstream::ended;
use testkit::wait::eventually;

use crate::agents::stage::{self, Stage};
use crate::agents::{ours, say};
use crate::ledger::{record, records, records_when};

/// Installs a plugin. Each of its starts adds a line to `<name>.starts` in the surrounding folder.
fn install(dir: &Path, at: &str, name: &str, operations: &str) -> PathBuf {
    let folder = dir.join(at).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = format!("name: {name}\nversion: 1.2.3\ncapabilities: [operations]\n");
    std::fs::write(folder.join("plugin.yaml"), manifest).unwrap();
    let program = folder.join(format!("countersign-plugin-{name}"));
    let real = example("scripted_plugin");
    let starts = starts_file(dir, name);
    let text = format!(
        "#!/bin/sh\necho $$ >> '{}'\nSCRIPTED_PLUGIN='{name} {operations}' exec '{}'\n",
        starts.display(),
        real.display()
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

/// Installs a plugin of a run's project, and approves it.
pub(crate) async fn install_approved(stage: &Stage, name: &str, operations: &str) {
    install(&stage.workspace(), PROJECT, name, operations);
    let mut command = stage.countersign("plugin");
    command.args(["approve", name]);
    let output = stage::ended(command).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

const PROJECT: &str = ".countersign/plugins";

fn starts_file(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.starts"))
}

/// Returns the started processes, in order.
fn starts(dir: &Path, name: &str) -> Vec<i32> {
    let text = std::fs::read_to_string(starts_file(dir, name)).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Returns a workflow of one operation.
fn flow(dir: &Path, operation: &str, inputs: &Value) -> String {
    let states = json!({
        "initial": "only",
        "only": {
            "type": "operation", "operation": operation, "inputs": inputs, "timeout": "20s",
            "on_success": "done",
        },
        "done": {"type": "terminal", "status": "success", "message": "{{.states.only.JSON.table}}"},
    });
    let file = dir.join("flow.yaml");
    std::fs::write(&file, json!({"name": "flow", "states": states}).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Returns the code and path of each fault that `validate` reports.
async fn faults(dir: &Path, file: &str) -> Vec<(String, String)> {
    let output = run(dir, ["validate", file, "--format", "json"]).await;
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(output.status.code(), Some(if told["valid"] == true { 0 } else { 2 }), "{told}");
    let word = |fault: &Value, name: &str| fault[name].as_str().unwrap().to_owned();
    let errors = told["errors"].as_array().unwrap().iter();
    errors.map(|fault| (word(fault, "code").replace("USER.", ""), word(fault, "path"))).collect()
}

async fn run_json(dir: &Path, file: &str) -> (Value, Output) {
    let output = run(dir, ["run", file, "-o", "json"]).await;
    (serde_json::from_str(&stdout(&output)).unwrap_or_default(), output)
}

fn one(code: &str, path: &str) -> Vec<(String, String)> {
    vec![(code.to_owned(), path.to_owned())]
}

#[tokio::test]
async fn a_projects_plugin_is_never_started_before_it_is_approved_nor_after_it_changed() {
    let dir = tempfile::tempdir().unwrap();
    let program = install(dir.path(), PROJECT, "deploy", "apply");
    let file = flow(dir.path(), "deploy.apply", &json!({"table": "users"}));
    let listed = async || stdout(&run(dir.path(), ["plugin", "list"]).await);
    assert!(listed().await.contains("not approved"), "{}", listed().await);
    let shown = run(dir.path(), ["plugin", "show", "deploy"]).await;
    assert!(stdout(&shown).contains("(not started)"), "{}", stdout(&shown));
    let refused = one("MCP_PROXY.PLUGIN_NOT_APPROVED", "states.only.operation");
    assert_eq!(faults(dir.path(), &file).await, refused);
    let (_, output) = run_json(dir.path(), &file).await;
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("countersign plugin approve deploy"), "{}", stderr(&output));
    assert_eq!(starts(dir.path(), "deploy"), Vec::<i32>::new());

    let approved = run(dir.path(), ["plugin", "approve", "deploy"]).await;
    assert_eq!(approved.status.code(), Some(0), "{}", stderr(&approved));
    assert!(stdout(&approved).contains("countersign-plugin-deploy"), "{}", stdout(&approved));
    assert!(listed().await.contains("approved"));
    assert_eq!(starts(dir.path(), "deploy").len(), 0, "to approve is not to start");
    assert_eq!(faults(dir.path(), &file).await, []);
    let (ran, output) = run_json(dir.path(), &file).await;
    assert_eq!(ran["message"], "users", "{}", stderr(&output));
    let before = starts(dir.path(), "deploy").len();

    let mut text = std::fs::read_to_string(&program).unwrap();
    text.push_str("# changed\n");
    std::fs::write(&program, text).unwrap();
    assert_eq!(faults(dir.path(), &file).await, refused);
    let (_, output) = run_json(dir.path(), &file).await;
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(starts(dir.path(), "deploy").len(), before);
    let kinds: Vec<Value> = records_when(&dir.path().join("home"), |records| records.len() == 2)
        .await
        .into_iter()
        .map(|record| record["tool"].clone())
        .collect();
    assert_eq!(kinds, [json!(""), json!("deploy_apply")], "the approval is recorded, and the call");
}

#[tokio::test]
async fn an_approval_can_be_revoked_and_a_pin_in_the_config_is_one() {
    let dir = tempfile::tempdir().unwrap();
    install(dir.path(), PROJECT, "deploy", "apply");
    let file = flow(dir.path(), "deploy.apply", &json!({"table": "users"}));
    let cli = async |words: &[&str]| run(dir.path(), words.iter().copied()).await;
    assert_eq!(cli(&["plugin", "revoke", "deploy"]).await.status.code(), Some(1));
    assert_eq!(cli(&["plugin", "approve", "deploy"]).await.status.code(), Some(0));
    assert_eq!(faults(dir.path(), &file).await, []);
    assert_eq!(cli(&["plugin", "revoke", "deploy"]).await.status.code(), Some(0));
    let refused = one("MCP_PROXY.PLUGIN_NOT_APPROVED", "states.only.operation");
    assert_eq!(faults(dir.path(), &file).await, refused);
    let near = cli(&["plugin", "approve", "deplay"]).await;
    assert_eq!(near.status.code(), Some(1));
    assert!(stderr(&near).contains("deploy"), "{}", stderr(&near));

    let shown = cli(&["plugin", "show", "deploy", "-o", "json"]).await;
    let shown: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    let config = dir.path().join("xdg-config/countersign");
    std::fs::create_dir_all(&config).unwrap();
    let pin = |sha256: &Value| json!({"plugins": {"deploy": {"sha256": sha256}}}).to_string();
    std::fs::write(config.join("config.json"), pin(&shown["sha256"])).unwrap();
    assert_eq!(faults(dir.path(), &file).await, []);
    std::fs::write(config.join("config.json"), pin(&json!("0".repeat(64)))).unwrap();
    let wrong = one("MCP_PROXY.UNKNOWN_PLUGIN", "states.only.operation");
    assert_eq!(faults(dir.path(), &file).await, wrong);
}

#[tokio::test]
async fn unknown_plugins_and_operations_are_reported_with_suggestions() {
    let dir = tempfile::tempdir().unwrap();
    install(dir.path(), "xdg/countersign/plugins", "deploy", "apply destroy");
    let text = "\
name: flow
states:
  initial: one
  one: {type: operation, operation: deplay.apply, on_success: two}
  two: {type: operation, operation: deploy.aply, on_success: three}
  three:
    type: agent
    provider: claude
    prompt: hello
    mcp_proxy: {enable: true, plugin_tools: [{plugin: deploy, expose: [apply, nothing]}, {plugin: nobody, expose: [a]}]}
    on_success: done
  done: {type: terminal, status: success}
";
    let file = dir.path().join("flow.yaml");
    std::fs::write(&file, text).unwrap();
    let mut program = testkit::program::program(dir.path());
    program.env("XDG_DATA_HOME", dir.path().join("xdg")).arg("validate").arg(&file);
    let output = program.output().await.unwrap();
    let told = stdout(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    for words in [
        "UNKNOWN_PLUGIN: line 4, column 37: states.one.operation: plugin 'deplay' not found; did you mean 'deploy'?",
        "UNKNOWN_OPERATION: line 5, column 37: states.two.operation: plugin 'deploy' has no operation 'aply'; did you mean 'apply'?",
        "states.three.mcp_proxy.plugin_tools[0].expose[1]: plugin 'deploy' has no operation 'nothing'",
        "states.three.mcp_proxy.plugin_tools[1].plugin: plugin 'nobody' not found",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

/// `a` + `b_c` and `a_b` + `c` make the same name.
#[tokio::test]
async fn colliding_plugin_tool_names_fail_before_anything_starts() {
    let stage = Stage::new("claude", [say("never")]).await;
    for (name, operation) in [("a", "b_c"), ("a_b", "c")] {
        install_approved(&stage, name, operation).await;
    }
    let tools = json!([{"plugin": "a", "expose": ["b_c"]}, {"plugin": "a_b", "expose": ["c"]}]);
    let flow = stage.flow(&json!({"enable": true, "plugin_tools": tools}));
    for word in ["validate", "run"] {
        let mut command = stage.countersign(word);
        command.arg(&flow);
        let output = stage::ended(command).await;
        assert_eq!(output.status.code(), Some(2), "{word}");
        let words = format!("{}{}", stdout(&output), stderr(&output));
        assert!(words.contains("USER.MCP_PROXY.NAME_COLLISION"), "{word}: {words}");
    }
    assert!(stage.model.advertised().is_empty(), "the agent was not started");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn smoke_an_agent_has_its_own_tools_and_the_operation_and_calls_it() {
    let turns = [ours("deploy_apply", json!({"table": "users", "times": 3})), say("applied")];
    let stage = Stage::scripted(turns).await;
    install_approved(&stage, "deploy", "apply destroy").await;
    let tools = json!([{"plugin": "deploy", "expose": ["apply"]}]);
    let proxy = json!({"enable": true, "intercept_builtins": false, "plugin_tools": tools});
    let (ran, words) = stage.run_json(&stage.flow(&proxy), &[]).await;
    assert_eq!(ran["steps"][0]["output"], "applied", "{words}");
    let advertised = stage.model.advertised();
    assert!(advertised.contains("Bash") && advertised.contains("Read"), "{advertised:?}");
    let ours: Vec<&String> = advertised.iter().filter(|name| name.contains("awf-proxy")).collect();
    assert_eq!(ours, ["mcp__awf-proxy__deploy_apply"], "{advertised:?}");
    let heard = &stage.model.results()[0];
    assert!(heard.contains("users") && heard.contains('3'), "{heard}");
    let home = stage.home();
    let record = record(&home, "deploy_apply").await;
    assert_eq!(
        (&record["server"], &record["system"], &record["resource"]),
        (&json!("deploy"), &json!("deploy"), &json!("users")),
        "{record}"
    );
    assert!(record["receipt_id"].is_string(), "{record}");
    for pid in starts(&stage.workspace(), "deploy") {
        ended(pid).await;
    }
    stage.assert_nothing_left().await;
}

/// A model that this process calls has no built-in tools.
#[tokio::test]
async fn a_model_is_offered_the_operation_alone() {
    let turns = [ours("deploy_apply", json!({"table": "users"})), say("applied")];
    let stage = Stage::new("openai_compatible", turns).await;
    install_approved(&stage, "deploy", "apply destroy").await;
    let tools = json!([{"plugin": "deploy", "expose": ["apply"]}]);
    let proxy = json!({"enable": true, "intercept_builtins": false, "plugin_tools": tools});
    let (ran, words) = stage.run_json(&stage.flow(&proxy), &[]).await;
    assert_eq!(ran["steps"][0]["output"], "applied", "{words}");
    let advertised: Vec<String> = stage.model.advertised().into_iter().collect();
    assert_eq!(advertised, ["deploy_apply"]);
    assert!(stage.model.results()[0].contains("users"), "{:?}", stage.model.results());
}

/// Writes a workflow as people do, with the rest of its proxy; the options point at the model.
fn written(stage: &Stage, proxy: &str) -> PathBuf {
    let options = &stage.step(&json!({}))["options"];
    let text = format!(
        "\
name: deploy
version: \"1.0\"
states:
  initial: deploy
  deploy:
    type: step
    agent:
      provider: claude
      prompt: \"Apply the new k8s manifest\"
      options: {options}
    on_success: done
{proxy}
  done: {{type: terminal, status: success}}
"
    );
    let file = stage.dir().join("deploy.yaml");
    std::fs::write(&file, text).unwrap();
    file
}

const BUILT_IN: [&str; 6] = ["Bash", "Edit", "Glob", "Grep", "Read", "Write"];

/// No proxy; the built-in tools through the gate; these and a plugin's; the agent's own and a
/// plugin's.
#[tokio::test]
async fn the_four_kinds_of_steps_are_valid_and_run() {
    let plugins = "      plugin_tools:
        - plugin: kubernetes
          expose: [kubectl_apply, kubectl_get]";
    let enabled = "    mcp_proxy:\n      enable: true";
    let beside = "\n      intercept_builtins: false\n";
    let operations = ["kubernetes_kubectl_apply", "kubernetes_kubectl_get"];
    for (proxy, ours, has_native) in [
        (String::new(), vec![], true),
        (enabled.to_owned(), BUILT_IN.to_vec(), false),
        (format!("{enabled}\n{plugins}"), [&BUILT_IN[..], &operations].concat(), false),
        (format!("{enabled}{beside}{plugins}"), operations.to_vec(), true),
    ] {
        let stage = Stage::scripted([say("applied")]).await;
        let operations = "kubectl_apply kubectl_get kubectl_delete";
        install(&stage.workspace(), ".awf/plugins", "kubernetes", operations);
        let file = written(&stage, &proxy);
        for words in
            [vec!["plugin", "approve", "kubernetes"], vec!["validate", file.to_str().unwrap()]]
        {
            let mut command = stage.countersign(words[0]);
            command.args(&words[1..]);
            let output = stage::ended(command).await;
            assert_eq!(output.status.code(), Some(0), "{proxy}: {}", stdout(&output));
        }
        let (ran, words) = stage.run_json(&file, &[]).await;
        assert_eq!(ran["steps"][0]["output"], "applied", "{proxy}: {words}");
        let advertised = stage.model.advertised();
        let mut seen: Vec<&str> =
            advertised.iter().filter_map(|name| name.strip_prefix("mcp__awf-proxy__")).collect();
        seen.sort_unstable();
        assert_eq!(seen, ours, "{proxy}");
        assert_eq!(advertised.contains("Bash"), has_native, "{proxy}: {advertised:?}");
        stage.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn an_operation_is_a_step_of_its_own_and_says_how_it_failed() {
    let dir = tempfile::tempdir().unwrap();
    install(dir.path(), PROJECT, "deploy", "apply fail die");
    run(dir.path(), ["plugin", "approve", "deploy"]).await;
    let about = json!({"table": "users"});
    let by_name = json!({"table": "users", "times": "{{.workflow.name}}"});
    for (operation, inputs, code, words) in [
        ("apply", &about, Value::Null, ""),
        ("fail", &about, json!("OPERATION_FAILED"), "no luck"),
        ("die", &about, json!("OUTCOME_UNKNOWN"), "plugin 'deploy'"),
        // Known only once its value is filled in.
        ("apply", &by_name, json!("INVALID_ARGUMENTS"), "times"),
    ] {
        let file = flow(dir.path(), &format!("deploy.{operation}"), inputs);
        let (ran, output) = run_json(dir.path(), &file).await;
        let step = &ran["steps"][0];
        assert_eq!(step["error_code"], code, "{operation}: {ran} {}", stderr(&output));
        let error = step["error_message"].as_str().unwrap_or_default();
        assert!(error.contains(words), "{operation}: {error}");
        let expected = if code.is_null() { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(expected), "{operation}: {ran}");
    }
    for pid in starts(dir.path(), "deploy") {
        ended(pid).await;
    }
}

/// Starts a gate with a plugin of the user's own and an unapproved one of the project.
#[tokio::test]
async fn an_operation_that_may_have_changed_something_is_not_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    install(dir.path(), PROJECT, "deploy", "fail die");
    run(dir.path(), ["plugin", "approve", "deploy"]).await;
    for (operation, calls) in [("fail", 3), ("die", 1)] {
        let file = flow(dir.path(), &format!("deploy.{operation}"), &json!({"table": "users"}));
        let mut states: Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        states["states"]["only"]["retry"] = json!({"max_attempts": 3, "initial_delay": 0});
        std::fs::write(&file, states.to_string()).unwrap();
        let (ran, output) = run_json(dir.path(), &file).await;
        assert_eq!(output.status.code(), Some(3), "{ran} {}", stderr(&output));
        let records = records(&dir.path().join("home"));
        let tool = format!("deploy_{operation}");
        let made = records.iter().filter(|record| record["tool"] == *tool).count();
        assert_eq!(made, calls, "{operation}: {records:?}");
    }
}

async fn serving() -> Gate {
    let dir = tempfile::tempdir().unwrap();
    let own = install(dir.path(), "own", "deploy", "apply die hang");
    install(dir.path(), PROJECT, "strange", "apply");
    let config = json!({
        "plugins": {
            "deploy": {"path": own.parent().unwrap()},
            "strange": {},
            "nobody": {},
        },
    });
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    Gate::open(dir).await
}

#[tokio::test]
async fn a_gate_serves_the_plugins_of_its_config_like_servers() {
    let gate = serving().await;
    gate.ready("deploy").await;
    gate.server_when("strange", |server| server["state"] == "quarantined").await;
    let nobody = gate.server_when("nobody", |server| server["state"] == "error").await;
    assert!(nobody["error"].as_str().unwrap().contains("plugin 'nobody' not found"), "{nobody}");
    let client = gate.http().await;
    let found = client.call("retrieve_tools", json!({"query": "deploy apply"})).await;
    assert!(found.to_string().contains("deploy:deploy_apply"), "{found}");
    let all = gate.http_at("/mcp/all").await;
    let listed = all.request("tools/list", json!({})).await.unwrap();
    assert!(listed.to_string().contains("\"deploy_apply\""), "{listed}");
    let reply =
        client.two_key_call("write", "deploy:deploy_apply", json!({"table": "users"})).await;
    assert_eq!(reply["structuredContent"]["table"], "users", "{reply}");
    let refused =
        client.two_key_call("write", "strange:strange_apply", json!({"table": "x"})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    let record = record(&gate.home(), "deploy_apply").await;
    assert_eq!((&record["system"], &record["resource"]), (&json!("deploy"), &json!("users")));
    assert_eq!(starts(gate.dir.path(), "strange"), Vec::<i32>::new());

    let approved = gate.cli(&["plugin", "approve", "strange"]).await;
    assert_eq!(approved.status.code(), Some(0), "{}", stderr(&approved));
    gate.ready("strange").await;
    let reply = client.two_key_call("write", "strange:strange_apply", json!({"table": "x"})).await;
    assert_eq!(reply["structuredContent"]["table"], "x", "{reply}");
    let pids = [starts(gate.dir.path(), "deploy"), starts(gate.dir.path(), "strange")].concat();
    assert_eq!(gate.stop().await, Some(0));
    for pid in pids {
        ended(pid).await;
    }
}

#[tokio::test]
async fn a_plugin_that_dies_is_started_again_and_others_do_not_notice() {
    let mut gate = serving().await;
    gate.ready("deploy").await;
    let client = gate.http().await;
    let call =
        async |tool: &str| client.two_key_call("write", tool, json!({"table": "users"})).await;
    let died = call("deploy:deploy_die").await;
    assert!(died.to_string().contains("OUTCOME_UNKNOWN"), "{died}");
    let reply = eventually(|| async {
        let reply = call("deploy:deploy_apply").await;
        (reply["isError"] != true).then_some(reply)
    })
    .await;
    assert_eq!(reply["structuredContent"]["table"], "users", "{reply}");
    assert_eq!(starts(gate.dir.path(), "deploy").len(), 2);
    let (_, servers) = gate.rest(Method::GET, "/api/v1/servers", None).await;
    assert_eq!(servers["servers"].as_array().unwrap().len(), 3, "{servers}");
    gate.kill().await;
    for pid in starts(gate.dir.path(), "deploy") {
        ended(pid).await;
    }
    assert!(records(&gate.home()).iter().any(|record| record["tool"] == "deploy_die"));
}
