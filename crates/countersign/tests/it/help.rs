//! The program's own documentation: the help of every command as last reviewed, and the man pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use testkit::program::{program, run, stderr, stdout};

/// `UPDATE_GOLDEN=1` rewrites them; a person then reviews the difference.
const GOLDEN: &str = "tests/it/golden/help";

/// The lines of a terminal that fills half of a large screen.
const SCREEN_LINES: usize = 46;

/// Returns the same help in any environment: without its variables or a terminal's width.
async fn help(dir: &Path, command: &[String]) -> String {
    let mut program = program(dir);
    for name in ["COUNTERSIGN_HOME", "COLUMNS", "LINES"] {
        program.env_remove(name);
    }
    let running = program.args(command).arg("--help").stdin(Stdio::null()).output();
    let output = tokio::time::timeout(testkit::client::PATIENCE, running).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{command:?}: {}", stderr(&output));
    assert_eq!(stderr(&output), "", "{command:?}");
    stdout(&output)
}

/// Returns the help of every command that help itself names, by the words that lead there.
async fn every_help() -> BTreeMap<Vec<String>, String> {
    let dir = tempfile::tempdir().unwrap();
    let mut found = BTreeMap::new();
    let mut left: Vec<Vec<String>> = vec![vec![]];
    while let Some(command) = left.pop() {
        let text = help(dir.path(), &command).await;
        let listed = text.split_once("Commands:\n").map_or("", |(_, rest)| rest);
        for line in listed.lines().take_while(|line| line.starts_with("  ")) {
            let word = line.split_whitespace().next().unwrap();
            if word != "help" {
                left.push(command.iter().cloned().chain([word.to_owned()]).collect());
            }
        }
        found.insert(command, text);
    }
    assert!(found.len() > 15, "{}", found.len());
    found
}

fn file(command: &[String]) -> PathBuf {
    let words = ["countersign".to_owned()].into_iter().chain(command.iter().cloned());
    Path::new(GOLDEN).join(words.collect::<Vec<_>>().join("-") + ".txt")
}

#[tokio::test]
async fn the_help_of_every_command_matches_its_golden_file() {
    let found = every_help().await;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = std::fs::remove_dir_all(GOLDEN);
        std::fs::create_dir_all(GOLDEN).unwrap();
        for (command, text) in &found {
            std::fs::write(file(command), text).unwrap();
        }
    }
    for (command, text) in &found {
        let known = std::fs::read_to_string(file(command)).unwrap_or_default();
        assert_eq!(*text, known, "{command:?}: if it is meant, run with UPDATE_GOLDEN=1");
    }
    let known: BTreeSet<PathBuf> =
        std::fs::read_dir(GOLDEN).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(known, found.keys().map(|command| file(command)).collect(), "no file is left over");
}

#[tokio::test]
async fn the_help_of_every_command_fits_on_a_screen() {
    for (command, text) in every_help().await {
        assert!(text.lines().count() <= SCREEN_LINES, "{command:?}:\n{text}");
    }
}

#[tokio::test]
async fn every_command_has_a_man_page() {
    let dir = tempfile::tempdir().unwrap();
    for command in every_help().await.keys() {
        let words = ["man".to_owned()].into_iter().chain(command.iter().cloned());
        let output = run(dir.path(), words).await;
        assert_eq!(output.status.code(), Some(0), "{command:?}: {}", stderr(&output));
        let page = stdout(&output);
        let words = ["countersign".to_owned()].into_iter().chain(command.iter().cloned());
        let name = words.collect::<Vec<_>>().join("-");
        let head = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
        assert!(head.starts_with(&format!(".TH {name} 1 ")), "{command:?}: {head}");
        let version = concat!("countersign ", env!("CARGO_PKG_VERSION"));
        assert!(head.contains(version), "{command:?}: {head}");
        for part in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"] {
            assert!(page.contains(part), "{command:?} has no {part}: {page}");
        }
        assert!(!page.contains("supervise"), "{command:?}: {page}");
    }
    let output = run(dir.path(), ["man", "activty"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is no command 'activty'"), "{}", stderr(&output));
}
