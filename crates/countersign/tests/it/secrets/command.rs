//! The key of the secrets from a command of the config.

use std::path::Path;

use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{stderr, stdout};

use super::{PLANTED, assert_clean, config, files, list, secret, set, talkative, told};

/// Returns a command that notes its environment and prints what a file has.
fn noting(dir: &Path) -> Value {
    let script = r#"env > "$0/env"; cat "$0/key""#;
    json!({"command": ["sh", "-c", script, dir]})
}

const KEY: &str = "ABEiM0RVZneImaq7zN3u/wARIjNEVWZ3iJmqu8zd7v8=";
const OTHER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

#[tokio::test]
async fn a_command_s_key_opens_the_secrets_and_another_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let print = |key: &str| std::fs::write(path.join("key"), format!("{key}\n")).unwrap();
    let servers = json!({"n": talkative(path, "n")});
    config(path, &json!({"secrets": {"key": noting(path)}, "mcpServers": servers}));
    print(KEY);
    let output = set(path, "TOKEN", PLANTED[0]).await;
    assert_eq!(stdout(&output), "secret 'TOKEN' is set; its key is printed by a command\n");
    set(path, "pin", PLANTED[1]).await;
    assert_eq!(list(path).await["key"], "command");
    let text = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
    assert!(text("env").contains("PATH=") && !text("env").contains("COUNTERSIGN_"));
    for file in files(&path.join("home")) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let shown = file.display();
        assert!(!String::from_utf8_lossy(&bytes).contains(KEY), "the key is in {shown}");
        assert_clean(&shown.to_string(), &bytes);
    }
    // Every command that stores a secret takes its key from there.
    std::fs::create_dir_all(path.join("xdg-config/countersign")).unwrap();
    let own = path.join("xdg-config/countersign/config.json");
    std::fs::copy(path.join("config.json"), own).unwrap();
    let other = json!({"mcpServers": {"o": {"command": "x", "env": {"API_TOKEN": PLANTED[2]}}}});
    std::fs::write(path.join("other.json"), other.to_string()).unwrap();
    let import = ["connect", "zed", "--import", "--from", "other.json", "--yes"];
    let output = testkit::program::run(path, import).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(list(path).await["secrets"].as_array().unwrap().len(), 3);

    let vault = text("home/secrets/vault.json");

    print(OTHER_KEY);
    let output = secret(path, &["set", "TOKEN"], PLANTED[2]).await;
    assert_eq!(output.status.code(), Some(4));
    let said = stderr(&output);
    assert!(said.contains("SECRETS_UNAVAILABLE: ") && said.contains("another key"), "{said}");
    std::fs::remove_file(path.join("key")).unwrap();
    let output = secret(path, &["set", "TOKEN"], PLANTED[2]).await;
    assert!(stderr(&output).contains("No such file"), "its last line: {}", stderr(&output));
    assert_eq!(text("home/secrets/vault.json"), vault, "nothing was changed");

    print(KEY);
    let mut gate = Gate::open(dir).await;
    assert_eq!(told(gate.dir.path()).await, "tuesday-lunch --pin=wednesday-lunch\n");
    gate.end().await;
}
