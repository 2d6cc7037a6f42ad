//! The programs that tests start, each in its own home: the product, the examples that cargo builds
//! next to it, and any other.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::client::{Answers, Client, PATIENCE};

/// Returns a command for the product, in its own home.
pub fn program(home: &Path) -> Command {
    command(&countersign(), home)
}

/// Returns the product's binary, which cargo builds before the tests of its package.
pub fn countersign() -> PathBuf {
    let program = built().join("countersign");
    assert!(program.exists(), "{} does not exist: run cargo test", program.display());
    program
}

/// Returns a command that writes nothing into the user's own folders and inherits no setting.
pub fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    let is_telemetry = |name: &OsString| name.to_string_lossy().starts_with("OTEL_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_telemetry(name)) {
        command.env_remove(name);
    }
    command
        .env_remove("COUNTERSIGN_CONFIG")
        .env_remove("COUNTERSIGN_API_KEY")
        .env("COUNTERSIGN_HOME", home.join("home"))
        .env("XDG_CONFIG_HOME", home.join("xdg-config"))
        .env("HOME", home)
        // Tests do not use the keychain of the person who runs them.
        .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")
        .current_dir(home)
        .kill_on_drop(true);
    command
}

/// Runs the product to its end.
pub async fn run(dir: &Path, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let running = program(dir).args(args).stdin(Stdio::null()).output();
    tokio::time::timeout(PATIENCE, running)
        .await
        .expect("the program exits in time")
        .expect("the program runs")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("stdout is UTF-8")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("stderr is UTF-8")
}

/// Reads the first lines that a child prints.
pub async fn first_lines(child: &mut Child, count: usize) -> String {
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut lines = String::new();
    for _ in 0..count {
        let reading = stdout.read_line(&mut lines);
        tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("the program prints in time")
            .expect("a line");
    }
    lines
}

/// Starts `countersign mcp` in this folder, and returns a client of it.
pub async fn stdio_client(
    dir: &Path,
    args: &[&str],
    capabilities: Value,
    answers: Answers,
) -> Client {
    let child = program(dir)
        .arg("mcp")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the program starts");
    client_of(child, capabilities, answers).await
}

/// Returns a client on a child's pipes; the child ends with it.
pub async fn client_of(mut child: Child, capabilities: Value, answers: Answers) -> Client {
    let stdout = child.stdout.take().expect("stdout is piped");
    let stdin = child.stdin.take().expect("stdin is piped");
    Client::greet(capabilities, answers, |service| {
        let peer = mcp::lines::connect(stdout, stdin, service);
        let ending = peer.clone();
        tokio::spawn(async move {
            ending.closed().await;
            drop(child);
        });
        peer
    })
    .await
}

/// Returns the path of an example. Cargo builds examples with `cargo test`, but not with `--test
/// it`: then they are built here.
pub fn example(name: &str) -> PathBuf {
    let program = built().join("examples").join(name);
    if !program.exists() {
        build_examples(&built());
    }
    program
}

/// Returns the folder that cargo builds into; a test runs from its `deps`.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    test.ancestors().nth(2).expect("target/<profile>/deps/<test>").to_owned()
}

fn build_examples(target: &Path) {
    static BUILT: std::sync::Once = std::sync::Once::new();
    let profile = match target.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    BUILT.call_once(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = std::process::Command::new(cargo)
            .args(["build", "--offline", "--examples", "--workspace", "--profile"])
            .arg(profile)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo runs").success(), "the examples cannot be built");
    });
}
