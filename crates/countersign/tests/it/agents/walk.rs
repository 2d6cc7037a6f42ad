//! The first hour of a new user, from the installed package to `connect --undo`.

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use testkit::foreign;
use testkit::program::{first_lines, stderr, stdout};

use super::connected::assert_all_seven_in_full;
use super::stage::{Stage, ended};
use super::{ours, say};
use crate::packages;

/// The files of two clients, with three real servers.
const CLAUDE: &str = ".claude.json";
const CURSOR: &str = ".cursor/mcp.json";

#[tokio::test]
async fn a_new_user_gets_from_the_package_to_a_verified_call_and_back() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let read = json!({"name": "files:read_text_file", "args": {"path": "a.txt"},
        "intent": {"operation_type": "read"}});
    let wrong = json!({"name": "files:write_file", "args": {"path": "a.txt", "content": "x"},
        "intent": {"operation_type": "write"}});
    let turns = [
        ours("retrieve_tools", json!({"query": "read a text file"})),
        ours("call_tool_read", read),
        ours("call_tool_read", wrong),
        say("it has one line"),
    ];
    let stage = Stage::new("claude", turns).await;
    let packages = tempfile::tempdir().unwrap();
    let walk = Walk { program: packages::installed_wheel(packages.path()), stage };
    walk.write_clients();
    let before = [walk.read(CLAUDE), walk.read(CURSOR)];

    let mut demo = walk.stage.countersign_at(&walk.program, "demo");
    let demo = demo.args(["--once"]).spawn().unwrap();
    walk.succeeds(&["connect", "--import", "--replace", "--permissions", "--yes"]).await;
    let mut serve = walk.stage.countersign_at(&walk.program, "serve");
    let mut serve = serve.args(["--listen", "127.0.0.1:0"]).spawn().unwrap();
    let welcome = first_lines(&mut serve, 4).await;
    assert!(welcome.contains("files, memory, thinking"), "{welcome}");

    walk.ask_claude().await;
    walk.approve_a_server().await;
    let verified = walk.succeeds(&["receipt", "verify"]).await;
    assert!(verified.contains("receipts") && !verified.contains("BROKEN"), "{verified}");
    let found: Value =
        serde_json::from_str(&walk.succeeds(&["doctor", "-o", "json"]).await).unwrap();
    assert!(!found.to_string().contains("\"fault\""), "{found:#}");

    walk.succeeds(&["connect", "--undo"]).await;
    assert_eq!(walk.read(CURSOR), before[1]);
    // Claude Code itself has written to its file since.
    let servers = |text: &str| serde_json::from_str::<Value>(text).unwrap()["mcpServers"].clone();
    assert_eq!(servers(&walk.read(CLAUDE)), servers(&before[0]));
    let played = demo.wait_with_output().await.unwrap();
    let told = stdout(&played);
    assert!(played.status.success(), "{}", stderr(&played));
    assert!(told.contains("Three things to try") && told.contains("contention"), "{told}");
}

struct Walk {
    program: PathBuf,
    stage: Stage,
}

impl Walk {
    fn write_clients(&self) {
        let files = self.stage.workspace();
        let npm = |name: &str| foreign::program(&format!("npm/node_modules/.bin/{name}"));
        let claude = json!({"numStartups": 3, "hasCompletedOnboarding": true, "mcpServers": {
            "files": {"type": "stdio", "command": npm("mcp-server-filesystem"), "args": [&files]},
            "memory": {"type": "stdio", "command": npm("mcp-server-memory"),
                "env": {"MEMORY_FILE_PATH": self.stage.dir().join("memory.json")}},
        }});
        let cursor = json!({"mcpServers": {
            "thinking": {"command": npm("mcp-server-sequential-thinking")},
        }});
        for (file, text) in [(CLAUDE, claude), (CURSOR, cursor)] {
            let path = self.stage.dir().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text:#}\n")).unwrap();
        }
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.stage.dir().join(file)).unwrap()
    }

    async fn run(&self, args: &[&str]) -> Output {
        let mut command = self.stage.countersign_at(&self.program, args[0]);
        command.args(&args[1..]);
        ended(command).await
    }

    async fn succeeds(&self, args: &[&str]) -> String {
        let output = self.run(args).await;
        assert!(output.status.success(), "{args:?}: {}{}", stdout(&output), stderr(&output));
        stdout(&output)
    }

    /// The connected Claude Code finds a tool, calls it, and is refused another call.
    async fn ask_claude(&self) {
        let mut claude = self.stage.agent();
        claude
            .args(["-p", "what does a.txt say?", "--allowedTools", "mcp__countersign"])
            .env("ANTHROPIC_BASE_URL", self.stage.model.url())
            .env("ANTHROPIC_API_KEY", "test")
            // On a busy machine it would ask the model before it has reached its servers.
            .env("MCP_CONNECTION_NONBLOCKING", "0")
            .env("MCP_STARTUP_WAIT_MS", "60000");
        let output = ended(claude).await;
        assert!(stdout(&output).contains("it has one line"), "{output:?}");
        assert_all_seven_in_full(&self.stage.model.turns()[0].body);
        let results = self.stage.model.results();
        assert!(results[0].contains("files:read_text_file"), "{results:?}");
        assert!(results[1].contains("one line"), "{results:?}");
        assert!(results[2].starts_with("Intent mismatch"), "{results:?}");
        let records = self.succeeds(&["activity", "list"]).await;
        assert!(records.contains("files:read_text_file"), "{records}");
        assert!(records.contains("refused INTENT_MISMATCH"), "{records}");
    }

    /// A server that was added is callable once somebody approved it.
    async fn approve_a_server(&self) {
        let everything = foreign::program("npm/node_modules/.bin/mcp-server-everything");
        let everything = everything.to_str().unwrap();
        self.succeeds(&["upstream", "add", "extra", "--", everything]).await;
        let sum = [
            "call",
            "tool-write",
            "--tool-name=extra:get-sum",
            "--json_args",
            r#"{"a": 3, "b": 4}"#,
        ];
        let refused = self.run(&sum).await;
        assert_eq!(refused.status.code(), Some(3), "{}", stdout(&refused));
        self.succeeds(&["upstream", "approve", "extra", "--yes"]).await;
        let answer = self.succeeds(&sum).await;
        assert!(answer.contains('7'), "{answer}");
    }
}
