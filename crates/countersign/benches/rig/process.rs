//! Processes of a measurement: started, awaited until their first line, ended when dropped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

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
        let dir = tempfile::tempdir().expect("a temporary folder");
        let text = config.to_string();
        let config = dir.path().join("config.json");
        fs::write(&config, text).expect("the config can be written");
        let mut command = program(&dir);
        command.args(["serve", "--listen", "127.0.0.1:0", "-o", "json", "--config"]).arg(config);
        let process = Process::start(&mut command);
        let ready: Value = serde_json::from_str(&process.line).expect("the ready line is JSON");
        let address = ready["listen"].as_str().expect("it has an address").to_owned();
        let token = dir.path().join("home/agent-token");
        let token = fs::read_to_string(token).expect("the token is there").trim().to_owned();
        Gate { process, dir, address, token }
    }
}

/// Returns a command for the program that does not touch the user's own folders.
pub(crate) fn program(dir: &TempDir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command
        .env("COUNTERSIGN_HOME", dir.path().join("home"))
        .env("XDG_CONFIG_HOME", dir.path())
        .current_dir(dir.path());
    command
}
