//! `connect --undo` after others have edited the same files, and edits while `connect` writes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use testkit::program::{program, run, stderr, stdout};
use tokio::io::{AsyncBufReadExt, BufReader};

const CURSOR: &str = ".cursor/mcp.json";
const CONFIG: &str = "xdg-config/countersign/config.json";

/// The settings of a person, with a secret and remarks.
const SETTINGS: &str = r#"{
  // by hand
  "mcpServers": {
    "time": {
      "command": "uvx", // a tool of uv
      "args": ["mcp-server-time"]
    },
    "github": {"url": "https://mcp.example/mcp", "headers": {"Authorization": "Bearer tuesday-lunch-t0ken"}}
  },
  "size": 1
}
"#;

fn write(dir: &Path, file: &str, text: &str) {
    let path = dir.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn read(dir: &Path, file: &str) -> String {
    fs::read_to_string(dir.join(file)).unwrap_or_default()
}

async fn connect(dir: &Path, args: &[&str]) -> String {
    let output = run(dir, [&["connect"], args].concat()).await;
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// Moves the servers of a client to the gate, in a separate folder.
async fn moved() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), CURSOR, SETTINGS);
    connect(dir.path(), &["cursor", "--import", "--replace", "--yes"]).await;
    assert!(!read(dir.path(), CURSOR).contains("mcp-server-time"));
    assert!(read(dir.path(), CONFIG).contains("mcp-server-time"));
    dir
}

async fn secrets(dir: &Path) -> String {
    stdout(&run(dir, ["secret", "list"]).await)
}

#[tokio::test]
async fn moved_servers_come_back_beside_later_edits() {
    let dir = moved().await;
    let edited = read(dir.path(), CURSOR).replace("\"size\": 1", "\"size\": 2 // larger");
    write(dir.path(), CURSOR, &edited);
    let own = read(dir.path(), CONFIG).replacen('{', "{\n  // mine\n  \"tools_limit\": 7,", 1);
    write(dir.path(), CONFIG, &own);
    connect(dir.path(), &["cursor", "--undo"]).await;
    let expected = SETTINGS.replace("\"size\": 1", "\"size\": 2 // larger");
    assert_eq!(read(dir.path(), CURSOR), expected);
    let config = read(dir.path(), CONFIG);
    assert!(config.contains("// mine") && config.contains("\"tools_limit\": 7"), "{config}");
    assert!(!config.contains("mcp-server-time") && !config.contains("GITHUB"), "{config}");
    assert!(!secrets(dir.path()).await.contains("GITHUB"));
    let again = run(dir.path(), ["connect", "--undo"]).await;
    assert!(stderr(&again).contains("NOT_FOUND"), "{}", stderr(&again));
}

#[tokio::test]
async fn an_import_is_taken_back_whole_or_not_at_all() {
    type Meddle = fn(&str) -> Option<String>;
    let meddles: [Meddle; 4] = [
        |text| {
            let mut settings: Value =
                serde_json::from_str(&text.replace("// by hand", "")).unwrap();
            settings["mcpServers"]["time"] = json!({"command": "other"});
            Some(settings.to_string())
        },
        |text| Some(text.replace("\"mcp\"", "\"mcp\", \"--all\"")),
        |_| Some("{ \"mcpServers\": [".to_owned()),
        |_| None,
    ];
    for meddle in meddles {
        let dir = moved().await;
        let edited = meddle(&read(dir.path(), CURSOR));
        match &edited {
            Some(text) => write(dir.path(), CURSOR, text),
            None => fs::remove_file(dir.path().join(CURSOR)).unwrap(),
        }
        let config = read(dir.path(), CONFIG);
        let output = run(dir.path(), ["connect", "--undo"]).await;
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("EDITED"), "{}", stderr(&output));
        assert_eq!(read(dir.path(), CURSOR), edited.clone().unwrap_or_default());
        assert_eq!(read(dir.path(), CONFIG), config, "the gate keeps what the client lacks");
        assert!(secrets(dir.path()).await.contains("GITHUB_AUTHORIZATION"), "{edited:?}");
        let told = stdout(&output);
        let backup =
            told.split('\'').map(PathBuf::from).find(|path| path.ends_with("cursor-1-before"));
        assert_eq!(fs::read_to_string(backup.expect(&told)).unwrap(), SETTINGS);
        // Once the entry is settled, everything goes back.
        write(dir.path(), CURSOR, SETTINGS);
        connect(dir.path(), &["--undo"]).await;
        assert_eq!(read(dir.path(), CURSOR), SETTINGS);
        assert!(!read(dir.path(), CONFIG).contains("mcp-server-time"));
    }
}

#[tokio::test]
async fn a_server_that_was_edited_in_the_gate_s_config_keeps_the_import() {
    let dir = moved().await;
    let imported = read(dir.path(), CONFIG);
    let edited = imported.replace("mcp-server-time", "mcp-server-clock");
    assert_ne!(edited, imported);
    write(dir.path(), CONFIG, &edited);
    let client = read(dir.path(), CURSOR);
    let output = run(dir.path(), ["connect", "--undo"]).await;
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!((read(dir.path(), CONFIG), read(dir.path(), CURSOR)), (edited, client));
    assert!(secrets(dir.path()).await.contains("GITHUB_AUTHORIZATION"));
    write(dir.path(), CONFIG, &imported);
    connect(dir.path(), &["--undo"]).await;
    assert_eq!(read(dir.path(), CURSOR), SETTINGS);
}

#[tokio::test]
async fn copies_are_named_and_stay_until_the_change_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), CURSOR, SETTINGS);
    let told = connect(dir.path(), &["cursor", "--import", "--yes"]).await;
    let copy = dir.path().join("home/connections/cursor-1-before");
    assert!(told.contains(&format!("; before: {}", copy.display())), "{told}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), SETTINGS);
    connect(dir.path(), &["--undo"]).await;
    let left = fs::read_dir(dir.path().join("home/connections")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["changes.json", "lock"]);
}

#[tokio::test]
async fn two_runs_take_turns() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("home/connections");
    write(dir.path(), "home/connections/lock", "");
    for folder in [&dir.path().join("home"), &folder] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }
    let lock = fs::File::options().write(true).open(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut child = program(dir.path());
    child.args(["connect", "cursor", "--yes"]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = told.next_line().await.unwrap().unwrap_or_default();
    assert!(line.contains("waiting for another"), "{line}");
    assert!(!dir.path().join(CURSOR).exists());
    lock.unlock().unwrap();
    assert!(child.wait().await.unwrap().success());
    assert!(dir.path().join(CURSOR).exists());
}

#[tokio::test]
async fn a_secret_that_others_use_by_now_stays() {
    let dir = moved().await;
    let other = r#"{"mcpServers": {"mine": {"command": "x", "env": {"T": "${secret:GITHUB_AUTHORIZATION}"}},"#;
    let config = read(dir.path(), CONFIG).replacen(
        r#"{
  "mcpServers": {"#,
        other,
        1,
    );
    assert!(config.contains("\"mine\""), "{config}");
    write(dir.path(), CONFIG, &config);
    connect(dir.path(), &["--undo"]).await;
    assert!(read(dir.path(), CONFIG).contains("\"mine\""));
    assert!(secrets(dir.path()).await.contains("GITHUB_AUTHORIZATION"));
}

/// Waits until a file is being written next to the client's own, and then edits that one.
fn edit_meanwhile(path: &Path, text: &str, is_in_place: bool, is_over: &AtomicBool) {
    let is_written = || {
        let names = fs::read_dir(path.parent().unwrap()).unwrap();
        names.flatten().any(|entry| entry.file_name().to_string_lossy().contains(".countersign-"))
    };
    while !is_written() && !is_over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    if is_in_place {
        fs::write(path, text).unwrap();
    } else {
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }
}

async fn edits_are_kept(rounds: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(CURSOR);
    let mut merged = 0;
    for round in 0..rounds {
        write(dir.path(), CURSOR, "{\"mcpServers\": {}}\n");
        let is_over = Arc::new(AtomicBool::new(false));
        let editing = {
            let (path, is_over) = (path.clone(), is_over.clone());
            std::thread::spawn(move || {
                let text = format!("{{\"edit\": {round}, \"mcpServers\": {{}}}}\n");
                edit_meanwhile(&path, &text, round % 2 == 0, &is_over);
            })
        };
        let output = run(dir.path(), ["connect", "cursor", "--yes"]).await;
        is_over.store(true, Ordering::Relaxed);
        editing.join().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let left: Value = serde_json::from_str(&read(dir.path(), CURSOR)).unwrap();
        assert_eq!(left["edit"], round, "{left}");
        merged += usize::from(left["mcpServers"]["countersign"].is_object());
        let names = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(names, 1, "nothing is left beside it");
    }
    // An edit after the end of the command takes our entry out again: it was made without it.
    assert!(merged > 0, "at least one edit came in between");
}

#[tokio::test]
async fn edits_of_a_client_s_file_meanwhile_are_kept() {
    edits_are_kept(20).await;
}

#[tokio::test]
async fn long_two_hundred_edits_meanwhile_are_kept() {
    if testkit::run::is_long_or_skipped() {
        edits_are_kept(200).await;
    }
}
