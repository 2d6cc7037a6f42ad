//! The vault under several processes, of which some are killed while they write.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use domain::config::SecretsKey;
use vault::{Secret, Space, Vault};

/// The variables that give a child the home it writes to, and its name.
const CHILD_HOME: &str = "COUNTERSIGN_TEST_VAULT_HOME";
const CHILD_NAME: &str = "COUNTERSIGN_TEST_VAULT_NAME";

/// The processes that write at the same time.
const WRITERS: usize = 3;

fn vault(home: &Path) -> Vault {
    let vault = Vault::of_home(home);
    vault.choose_key(SecretsKey::File);
    vault
}

/// The body of a child, which this test runs as itself; part of the other tests, not a separate
/// one. It counts upwards in its own entry, and says each number once it is stored.
#[test]
fn child_that_counts() {
    let (Some(home), Ok(name)) = (std::env::var_os(CHILD_HOME), std::env::var(CHILD_NAME)) else {
        return testkit::run::skipped("it is what the others start, no test of its own");
    };
    let vault = vault(Path::new(&home));
    let first = count(&vault, &name).map_or(0, |last| last + 1);
    for number in first.. {
        let value = Secret::new(format!("{number} {}", "x".repeat(2_000)));
        vault.set(Space::Grant, &name, &value).unwrap();
        if writeln!(std::io::stdout(), "\n@{number}").is_err() {
            return;
        }
    }
}

/// Returns the number that a child stored last.
fn count(vault: &Vault, name: &str) -> Option<u64> {
    let value = vault.get(Space::Grant, name).unwrap()?;
    let (number, rest) = value.expose().split_once(' ').unwrap();
    assert_eq!(rest, "x".repeat(2_000));
    Some(number.parse().unwrap())
}

fn spawn(home: &Path, name: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_counts", "--nocapture", "--test-threads=1"])
        .env(CHILD_HOME, home)
        .env(CHILD_NAME, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// Reads on until a child has stored something more; returns the number.
fn next(output: &mut BufReader<ChildStdout>) -> Option<u64> {
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        if let Some(number) = line.trim().strip_prefix('@') {
            return Some(number.parse().unwrap());
        }
        line.clear();
    }
    None
}

/// Has several processes write at once, and kills one after the other, each after a number of writes.
/// Returns how many writes were confirmed.
fn kill_writers(rounds: usize) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path();
    let mut confirmed = 0;
    for round in 0..rounds {
        let name = |number: usize| format!("writer {number}");
        let mut writers: Vec<_> =
            (0..WRITERS).map(|number| (name(number), spawn(home, &name(number)))).collect();
        for (number, (name, (child, output))) in writers.iter_mut().enumerate() {
            let mut last = None;
            for _ in 0..=(round + number) % 5 {
                last = next(output);
            }
            child.kill().unwrap();
            child.wait().unwrap();
            while let Some(more) = next(output) {
                last = Some(more);
            }
            let last = last.expect("it wrote something");
            let stored = count(&vault(home), name).expect("what was confirmed is there");
            // It may have been killed between storing a number and saying so.
            assert!(stored == last || stored == last + 1, "{name}: {stored} after {last}");
            confirmed += 1;
        }
        assert_eq!(vault(home).names(Space::Grant).unwrap().len(), WRITERS);
    }
    confirmed
}

#[test]
fn writers_at_once_lose_nothing_even_when_they_are_killed() {
    kill_writers(2);
}

#[test]
fn long_killed_writers_lose_nothing() {
    if testkit::run::is_long_or_skipped() {
        eprintln!("{} kills, nothing lost", kill_writers(100));
    }
}

#[test]
fn a_lock_ends_with_its_process() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, mut output) = spawn_holder(dir.path());
    assert_eq!(next(&mut output), Some(1));
    let vault = vault(dir.path());
    assert!(vault.try_lock(Space::Grant, "one").unwrap().is_none());
    assert!(vault.try_lock(Space::Grant, "other").unwrap().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    drop(vault.lock(Space::Grant, "one").unwrap());
}

/// The body of a child that takes a lock and waits to be killed.
#[test]
fn child_that_holds_a_lock() {
    let Some(home) = std::env::var_os(CHILD_HOME) else {
        return testkit::run::skipped("it is what the others start, no test of its own");
    };
    let _lock = vault(Path::new(&home)).lock(Space::Grant, "one").unwrap();
    let _ = writeln!(std::io::stdout(), "\n@1");
    let _ = std::io::stdin().read_line(&mut String::new());
}

fn spawn_holder(home: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_holds_a_lock", "--nocapture"])
        .env(CHILD_HOME, home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}
