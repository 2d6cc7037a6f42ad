//! Tables, colours and progress for a person at a terminal, and errors for programs.

use std::path::Path;

use serde_json::{Value, json};
use testkit::program::{countersign, run, stderr, stdout};
use tokio::process::Command;

/// Runs a command line of the program on a terminal of 70 columns; returns what the terminal shows.
async fn on_terminal(dir: &Path, words: &str) -> String {
    let line = format!("stty cols 70 && {} {words}", countersign().display());
    let mut terminal: Command = testkit::program::command(Path::new("script"), dir);
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    terminal.env("TERM", "xterm").env_remove("NO_COLOR");
    let output = tokio::time::timeout(testkit::client::PATIENCE, terminal.output());
    stdout(&output.await.unwrap().unwrap())
}

/// Writes a config with servers that are shell scripts.
fn config(dir: &Path, servers: &[(&str, &str)]) {
    let server = |script: &str| json!({"command": "sh", "args": ["-c", script]});
    let servers: Value =
        servers.iter().map(|(name, script)| ((*name).to_owned(), server(script))).collect();
    let file = dir.join("xdg-config/countersign/config.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, json!({"mcpServers": servers}).to_string()).unwrap();
}

const CRASHES: &str = "printf 'starting\\nError: no token in the environment, and nobody to ask for \
                       one\\n    at main (x.js:1:1)\\nbye\\n' >&2; exit 1";

#[tokio::test]
async fn a_failed_server_is_told_by_its_first_error_in_a_table_that_fits() {
    let dir = tempfile::tempdir().unwrap();
    config(dir.path(), &[("broken", CRASHES)]);
    let listed = stdout(&run(dir.path(), ["upstream", "list"]).await);
    assert!(listed.contains("Error: no token in the environment, and nobody"), "{listed}");
    assert!(!listed.contains("bye") && !listed.contains('\u{1b}'), "{listed}");
    if cfg!(target_os = "linux") && testkit::foreign::are_here_or_skipped() {
        let shown = on_terminal(dir.path(), "upstream list 2>/dev/null").await;
        assert!(shown.contains("\u{1b}[31merror\u{1b}[0m"), "{shown:?}");
        let row = shown.lines().find(|line| line.starts_with("broken")).unwrap();
        let row = row.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
        let row = row.trim_end();
        assert!(row.ends_with('…') && row.chars().count() <= 70, "{row:?}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn whoever_waits_at_a_terminal_sees_why() {
    if !testkit::foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    config(dir.path(), &[("slow", "sleep 2; exit 1")]);
    let shown = on_terminal(dir.path(), "tools list").await;
    assert!(shown.contains("waiting for the servers (1 s)"), "{shown:?}");
    let output = run(dir.path(), ["tools", "list"]).await;
    assert!(!stderr(&output).contains("waiting"), "{}", stderr(&output));
}

#[tokio::test]
async fn smoke_errors_have_the_form_of_the_output() {
    let dir = tempfile::tempdir().unwrap();
    for (args, code, says) in [
        (&["activity", "show", "nothing", "-o", "json"][..], "NOT_FOUND", "nothing"),
        (&["tools", "list", "--nonsense", "-o", "json"], "INVALID_INPUT", "'--nonsense'"),
        (&["tools", "list", "--config", "none.json", "-o", "json"], "INVALID_CONFIG", "none.json"),
    ] {
        let output = run(dir.path(), args).await;
        assert!(!output.status.success());
        let error = stderr(&output);
        let error: Value = serde_json::from_str(error.lines().last().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{args:?}: {error}"));
        assert_eq!(error["error"]["code"], code, "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(says), "{error}");
    }
}
