//! Servers that look for secrets in the environment of the gate.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::wait::eventually;

/// Writes its environment to the file in its first argument, in one step.
const NOTING: &str = "env > \"$0.part\" && mv \"$0.part\" \"$0\"";
const NOTING_FIRST: &str = "env > \"$1.part\" && mv \"$1.part\" \"$1\"";

/// Starts a gate whose own environment holds keys and the usual variables.
async fn gate(servers: impl FnOnce(&Path) -> Value) -> Gate {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"mcpServers": servers(dir.path())});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    Gate::open_with(dir, |command| {
        let keys = [("AWS_SECRET_ACCESS_KEY", "k1"), ("MY_KEY", "k2"), ("LD_PRELOAD_X", "k3")];
        let usual =
            [("LC_TIME", "C"), ("HTTPS_PROXY", "http://p:1"), ("XDG_X", "x"), ("TZ", "UTC")];
        command.envs(keys).envs(usual)
    })
    .await
}

/// Starts a gate with a plugin that only writes down its environment.
async fn gate_with_plugin(entry: Value) -> Gate {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("plugins/noting");
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = "name: noting\nversion: 1.0.0\ncapabilities: [operations]\n";
    std::fs::write(folder.join("plugin.yaml"), manifest).unwrap();
    let program = folder.join("countersign-plugin-noting");
    let noted = dir.path().join("noting");
    std::fs::write(&program, format!("#!/bin/sh\nset -- '{}'\n{NOTING_FIRST}\n", noted.display()))
        .unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let mut plugin = entry;
    plugin["path"] = json!(folder);
    let config = json!({"plugins": {"noting": plugin}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    Gate::open_with(dir, |command| {
        command.envs([("AWS_SECRET_ACCESS_KEY", "k1"), ("MY_KEY", "k2"), ("TZ", "UTC")])
    })
    .await
}

async fn environment(gate: &Gate, name: &str) -> String {
    let file = gate.dir.path().join(name);
    eventually(|| async { std::fs::read_to_string(&file).ok() }).await
}

#[tokio::test]
async fn a_server_inherits_usual_variables_and_what_env_names() {
    let gate = gate(|dir| {
        let server = |name: &str| json!({"command": "sh", "args": ["-c", NOTING, dir.join(name)]});
        let (mut named, mut whole) = (server("named"), server("whole"));
        named["env"] = json!({"MY_KEY": "${env:MY_KEY}", "OTHER": "o"});
        whole["inherit_env"] = true.into();
        json!({"plain": server("plain"), "named": named, "whole": whole})
    })
    .await;
    let plain = environment(&gate, "plain").await;
    for usual in ["PATH=", "HOME=", "LC_TIME=C", "HTTPS_PROXY=http://p:1", "XDG_X=x", "TZ=UTC"] {
        assert!(plain.contains(usual), "{usual} is not in {plain}");
    }
    for other in ["AWS_SECRET_ACCESS_KEY", "MY_KEY", "LD_PRELOAD_X", "COUNTERSIGN_"] {
        assert!(!plain.contains(other), "{other} is in {plain}");
    }
    let named = environment(&gate, "named").await;
    assert!(named.contains("MY_KEY=k2") && named.contains("OTHER=o"), "{named}");
    assert!(!named.contains("AWS_SECRET_ACCESS_KEY"), "{named}");
    let whole = environment(&gate, "whole").await;
    assert!(whole.contains("AWS_SECRET_ACCESS_KEY=k1"), "{whole}");
    assert!(!whole.contains("COUNTERSIGN_"), "{whole}");
}

#[tokio::test]
async fn a_failed_start_names_the_variables_that_were_withheld() {
    let needy = "test -n \"$MY_KEY\" || { echo 'MY_KEY is not set' >&2; exit 1; }";
    let gate = gate(|_| json!({"s": {"command": "sh", "args": ["-c", needy]}})).await;
    let failed = gate.server_when("s", |entry| entry["error"].is_string()).await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("not inherited from the gate: MY_KEY"), "{error}");
    assert!(error.contains(r#""env": {"MY_KEY": "${env:MY_KEY}"}"#), "{error}");
    assert!(!error.contains("AWS_SECRET_ACCESS_KEY"), "the others are for the operator: {error}");
    let line = gate.log_line("it inherited none of these").await;
    assert!(line.contains("AWS_SECRET_ACCESS_KEY") && !line.contains("k1"), "{line}");
}

#[tokio::test]
async fn a_plugin_inherits_usual_variables_and_what_env_names() {
    let gate = gate_with_plugin(json!({})).await;
    let plain = environment(&gate, "noting").await;
    assert!(plain.contains("TZ=UTC") && plain.contains("PATH="), "{plain}");
    for other in ["AWS_SECRET_ACCESS_KEY", "MY_KEY"] {
        assert!(!plain.contains(other), "{other} is in {plain}");
    }
    let env = json!({"MY_KEY": "${env:MY_KEY}", "OTHER": "o"});
    let gate = gate_with_plugin(json!({"env": env})).await;
    let named = environment(&gate, "noting").await;
    assert!(named.contains("MY_KEY=k2") && named.contains("OTHER=o"), "{named}");
    assert!(!named.contains("AWS_SECRET_ACCESS_KEY"), "{named}");
}
