//! Published MCP servers as config entries, each with its own place in the gate's folder.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::command;
use testkit::wait::eventually_within;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

/// Seven interpreters start at once, in parallel with other tests.
const START_PATIENCE: Duration = Duration::from_secs(120);

fn npm(name: &str) -> PathBuf {
    foreign::program(&format!("npm/node_modules/.bin/{name}"))
}

pub(crate) fn everything() -> Value {
    json!({"command": npm("mcp-server-everything")})
}

pub(crate) fn filesystem(dir: &Path) -> Value {
    let files = dir.join("files");
    std::fs::create_dir_all(&files).unwrap();
    json!({"command": npm("mcp-server-filesystem"), "args": [files]})
}

pub(crate) fn memory(dir: &Path) -> Value {
    let file = dir.join("memory.jsonl");
    json!({"command": npm("mcp-server-memory"), "env": {"MEMORY_FILE_PATH": file}})
}

/// A server for a repository with one commit, `first words`.
pub(crate) fn git(dir: &Path) -> Value {
    let repository = dir.join("repository");
    if !repository.exists() {
        std::fs::create_dir(&repository).unwrap();
        std::fs::write(repository.join("a.txt"), "one\n").unwrap();
        for args in [
            "init --quiet --initial-branch=main",
            "config user.name Tester",
            "config user.email tester@example.com",
            "add a.txt",
            "commit --quiet --message=first-words",
        ] {
            let status = std::process::Command::new("git")
                .args(args.split(' '))
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_SYSTEM", "/dev/null")
                .current_dir(&repository)
                .status();
            assert!(status.unwrap().success(), "git {args}");
        }
    }
    let program = foreign::program("python-mcp2/bin/mcp-server-git");
    json!({"command": program, "args": ["--repository", repository]})
}

pub(crate) fn time() -> Value {
    json!({"command": foreign::program("python-mcp2/bin/mcp-server-time"),
           "args": ["--local-timezone", "UTC"]})
}

pub(crate) fn fetch() -> Value {
    json!({"command": foreign::program("python-mcp2/bin/mcp-server-fetch"),
           "args": ["--ignore-robots-txt"]})
}

pub(crate) fn sequential_thinking() -> Value {
    json!({"command": npm("mcp-server-sequential-thinking")})
}

/// A server whose tools have no annotations.
pub(crate) fn sqlite(dir: &Path) -> Value {
    let program = foreign::program("python-mcp1/bin/mcp-server-sqlite");
    json!({"command": program, "args": ["--db-path", dir.join("test.db")]})
}

/// Returns the seven reference servers of the protocol's authors by name.
pub(crate) fn official(dir: &Path) -> Value {
    json!({
        "everything": everything(), "fetch": fetch(), "filesystem": filesystem(dir),
        "git": git(dir), "memory": memory(dir), "sequential-thinking": sequential_thinking(),
        "time": time(),
    })
}

/// Returns servers of each kind by name, except the one over HTTP.
pub(crate) fn all(dir: &Path) -> Value {
    json!({
        "everything": everything(), "filesystem": filesystem(dir), "memory": memory(dir),
        "git": git(dir), "time": time(), "sqlite": sqlite(dir),
    })
}

/// `server-everything` over streamable HTTP, or over the older HTTP+SSE.
pub(crate) struct EverythingHttp {
    pub(crate) entry: Value,
    _child: Child,
}

impl EverythingHttp {
    /// Starts the server. It cannot report which port it took, so it gets one that was free a
    /// moment ago, or another if that was taken meanwhile.
    pub(crate) async fn start() -> EverythingHttp {
        EverythingHttp::start_as("streamableHttp", "mcp").await
    }

    pub(crate) async fn start_sse() -> EverythingHttp {
        EverythingHttp::start_as("sse", "sse").await
    }

    async fn start_as(transport: &str, path: &str) -> EverythingHttp {
        for _ in 0..5 {
            let port = {
                let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
                listener.local_addr().unwrap().port()
            };
            let listening = tokio::time::timeout(START_PATIENCE, listen(transport, port)).await;
            if let Some(child) = listening.expect("server-everything starts in time") {
                let entry = json!({"url": format!("http://127.0.0.1:{port}/{path}")});
                return EverythingHttp { entry, _child: child };
            }
        }
        panic!("server-everything does not listen");
    }
}

/// Returns none if it ended before it listened.
async fn listen(transport: &str, port: u16) -> Option<Child> {
    let mut child = command(&npm("mcp-server-everything"), Path::new("/"))
        .arg(transport)
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts: run ./test --setup");
    let mut words = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
    while !words.next_line().await.unwrap()?.contains("on port") {}
    // A full pipe would block the server.
    tokio::spawn(async move { while let Ok(Some(_)) = words.next_line().await {} });
    Some(child)
}

/// Starts a gate in front of these servers, all of them ready.
pub(crate) async fn gate(servers: impl FnOnce(&Path) -> Value) -> Gate {
    gate_with(servers, json!({})).await
}

/// Starts the same with other keys of the config.
pub(crate) async fn gate_with(servers: impl FnOnce(&Path) -> Value, mut config: Value) -> Gate {
    config["connect_timeout"] = json!("2m");
    let gate = Gate::start(servers, config).await;
    let client = gate.http().await;
    eventually_within(START_PATIENCE, || async {
        let answer = client.document("upstream_servers", json!({})).await;
        let servers = answer["servers"].as_array().unwrap().clone();
        for server in &servers {
            assert_ne!(server["state"], "error", "{server}");
        }
        servers.iter().all(|server| server["state"] == "ready").then_some(())
    })
    .await;
    gate
}
