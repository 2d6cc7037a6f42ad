//! Processes of a measurement: started, awaited until their first line, ended when dropped.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The variable that names another build of the program to measure.
const PROGRAM: &str = "COUNTERSIGN_BENCH_PROGRAM";

pub(crate) struct Process {
    pub(crate) child: Child,
    /// The first line that it printed.
    pub(crate) line: String,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Process {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        stdout.read_line(&mut line).expect("it gets ready");
        Process { child, line: line.trim().to_owned() }
    }

    /// Starts this program again, in another role.
    pub(crate) fn role(arguments: &[&str]) -> Process {
        let own = std::env::current_exe().expect("a program has a path");
        Process::start(Command::new(own).args(arguments))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `countersign serve` with these servers, in its own home.
pub(crate) struct Gate {
    pub(crate) process: Process,
    pub(crate) dir: TempDir,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Gate {
    /// Starts a gate that searches by words alone, so that no vectors are made meanwhile.
    pub(crate) fn start(servers: &Value) -> Gate {
        Gate::configured(&json!({"mcpServers": servers, "search": {"learned": false}}))
    }

    pub(crate) fn configured(config: &Value) -> Gate {
        Gate::under(&[], config)
    }

    /// Starts the gate as the last argument of another command, such as a profiler.
    pub(crate) fn under(outer: &[&OsStr], config: &Value) -> Gate {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let text = config.to_string();
        let config = dir.path().join("config.json");
        fs::write(&config, text).expect("the config can be written");
        let mut command = in_folder(&dir, outer);
        command.args(["serve", "--listen", "127.0.0.1:0", "-o", "json", "--config"]).arg(config);
        let process = Process::start(&mut command);
        let ready: Value = serde_json::from_str(&process.line).expect("the ready line is JSON");
        let address = ready["listen"].as_str().expect("it has an address").to_owned();
        let token = dir.path().join("home/agent-token");
        let token = fs::read_to_string(token).expect("the token is there").trim().to_owned();
        Gate { process, dir, address, token }
    }

    /// Ends the gate as a supervisor would, and returns its folder once everything is filed.
    pub(crate) fn end(mut self) -> TempDir {
        let child = &mut self.process.child;
        kill_process(Pid::from_child(child), Signal::TERM).expect("it runs");
        let status = child.wait().expect("it ends");
        assert!(status.success(), "the gate ended with {status}");
        self.dir
    }
}

/// Returns a command for the program that does not touch the user's own folders.
pub(crate) fn program(dir: &TempDir) -> Command {
    in_folder(dir, &[])
}

fn in_folder(dir: &TempDir, outer: &[&OsStr]) -> Command {
    let program = program_file();
    let words = [outer, &[program.as_os_str()]].concat();
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .env("COUNTERSIGN_HOME", dir.path().join("home"))
        .env("XDG_CONFIG_HOME", dir.path())
        .current_dir(dir.path());
    command
}

/// Returns the build that is measured: cargo's, unless the environment names another.
pub(crate) fn program_file() -> PathBuf {
    match std::env::var_os(PROGRAM) {
        Some(program) => std::path::absolute(program).expect("a path"),
        None => env!("CARGO_BIN_EXE_countersign").into(),
    }
}
