//! Attacks by other users of the same machine.

mod files;

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use serde_json::json;
use testkit::gate::Gate;
use testkit::program::{run, stderr, stdout};

use crate::events::hook;

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
    if chown(&config, Some(STRANGER), None).is_err() {
        return testkit::run::skipped("only root can give a file away");
    }
    let (code, words) = status(0o644).await;
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("belongs to another user (uid 54321)"), "{words}");
}

/// Runs a command; returns its exit code and what it says.
async fn said(dir: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = run(dir, args).await;
    (output.status.code(), stderr(&output))
}

#[tokio::test]
async fn no_command_uses_a_home_of_another_user() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let home = path("home");
    let give = |path: &Path, owner: u32| chown(path, Some(owner), None);
    let own = std::fs::metadata(dir.path()).unwrap().uid();
    let (code, words) = said(dir.path(), &["tools", "list"]).await;
    assert_eq!(code, Some(0), "{words}");
    if give(&home, STRANGER).is_err() {
        return testkit::run::skipped("only root can give a file away");
    }
    symlink(&home, path("link")).unwrap();
    let link = path("link").to_str().unwrap().to_owned();
    for (args, expected) in [
        (&["serve", "--listen", "127.0.0.1:0"][..], 4),
        (&["serve", "--listen", "127.0.0.1:0", "--home", &link], 4),
        (&["tools", "list"], 4),
        (&["mcp"], 4),
        (&["wrap", "--name", "s", "--", "true"], 4),
        (&["keys", "show"], 4),
        (&["status"], 4),
        (&["doctor"], 4),
        (&["activity", "list"], 4),
        (&["receipt", "verify"], 2),
    ] {
        let (code, words) = said(dir.path(), args).await;
        assert_eq!(code, Some(expected), "{args:?}: {words}");
        assert!(words.contains("belongs to another user (uid 54321)"), "{args:?}: {words}");
        assert!(words.contains("--home"), "{args:?}: {words}");
    }
    let output = hook(dir.path(), br#"{"hook_event_name":"Stop","tool_name":"x"}"#).await;
    assert_eq!(output.status.code(), Some(0), "it records nothing, so it needs no home");
    let event = br#"{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Read"}"#;
    assert_eq!(hook(dir.path(), event).await.status.code(), Some(4));
    assert!(!home.join("spool").exists() && !home.join("serve.lock").exists());
    give(&home, own).unwrap();
    let (code, words) = said(dir.path(), &["tools", "list"]).await;
    assert_eq!(code, Some(0), "{words}");
}

#[tokio::test]
async fn doctor_names_a_folder_in_which_others_can_swap_the_home() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("between");
    let home = folder.join("below/home");
    std::fs::create_dir_all(&home).unwrap();
    let words = "can put another home in the place of";
    let said = async |mode: u32| {
        std::fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        stdout(&run(dir.path(), ["doctor", "--home", home.to_str().unwrap()]).await)
    };
    let screen = said(0o755).await;
    assert!(!screen.contains(words), "{screen}");
    let screen = said(0o1777).await;
    assert!(!screen.contains(words), "only their owners rename what is in it: {screen}");
    let screen = said(0o777).await;
    assert!(screen.contains(&format!("everybody {words}")), "{screen}");
    assert!(screen.contains(&format!("chmod go-w '{}'", folder.display())), "{screen}");
    if chown(&folder, Some(STRANGER), Some(STRANGER)).is_err() {
        return testkit::run::skipped("only root can give a folder away");
    }
    let screen = said(0o755).await;
    assert!(screen.contains(&format!("its owner (uid 54321) {words}")), "{screen}");
    chown(&folder, Some(0), None).unwrap();
    let screen = said(0o775).await;
    assert!(screen.contains(&format!("its group (gid 54321) {words}")), "{screen}");
}

#[tokio::test]
async fn nothing_that_another_user_put_into_the_home_is_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let (code, words) = said(dir.path(), &["tools", "list"]).await;
    assert_eq!(code, Some(0), "{words}");
    let home = dir.path().join("home");
    let own = std::fs::metadata(&home).unwrap().uid();
    for name in ["api-key", "keys", "ledger.db"] {
        let entry = home.join(name);
        if chown(&entry, Some(STRANGER), None).is_err() {
            return testkit::run::skipped("only root can give a file away");
        }
        let (code, words) = said(dir.path(), &["serve", "--listen", "127.0.0.1:0"]).await;
        assert_eq!(code, Some(4), "{name}: {words}");
        assert!(words.contains(&format!("{name}' belongs to another user (uid 54321)")), "{words}");
        assert!(words.contains(&format!("chown {own}")), "{words}");
        chown(&entry, Some(own), None).unwrap();
    }
    let (code, words) = said(dir.path(), &["tools", "list"]).await;
    assert_eq!(code, Some(0), "{words}");
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
