//! Attacks by other users of the same machine.

mod files;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use testkit::gate::Gate;
use testkit::program::{run, stderr};

/// A user who is not the one that runs the tests.
const STRANGER: u32 = 54321;

#[tokio::test]
async fn a_config_that_others_decide_on_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.json");
    std::fs::write(&config, "{}").unwrap();
    let status = async |mode: u32| {
        std::fs::set_permissions(&config, Permissions::from_mode(mode)).unwrap();
        let output = run(dir.path(), ["--config", "config.json", "tools", "list"]).await;
        (output.status.code(), stderr(&output))
    };
    let (code, words) = status(0o646).await;
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("can be written by everybody (mode 646)"), "{words}");
    assert!(words.contains("chmod o-w"), "{words}");
    let (code, words) = status(0o664).await;
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("its group can write it"), "{words}");
    let (code, words) = status(0o644).await;
    assert_eq!((code, words.contains("config.json")), (Some(0), false), "{words}");
    if std::os::unix::fs::chown(&config, Some(STRANGER), None).is_err() {
        return testkit::run::skipped("only root can give a file away");
    }
    let (code, words) = status(0o644).await;
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("belongs to another user (uid 54321)"), "{words}");
}

#[tokio::test]
async fn a_running_gate_does_not_take_up_a_config_that_everybody_can_write() {
    let gate = Gate::start(|_| json!({}), json!({})).await;
    gate.rewrite(|config| config["tools_limit"] = 3.into());
    gate.log_line("configuration reloaded").await;
    std::fs::set_permissions(gate.config_file(), Permissions::from_mode(0o666)).unwrap();
    gate.log_line("can be written by everybody").await;
    let (_, status) = gate.rest(reqwest::Method::GET, "/api/v1/status", None).await;
    assert!(status.to_string().contains("can be written by everybody"), "{status}");
}
