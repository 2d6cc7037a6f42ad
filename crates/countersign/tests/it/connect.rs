//! `connect`: the settings of other programs, written and restored.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::program::{countersign, program, run, stderr, stdout};
use tokio::io::AsyncWriteExt;

/// Each client with its file, the text in it, and the text that `connect` makes of it. `{PROGRAM}`
/// is replaced by the program under test.
const FILES: &[(&str, &str, &str, &str)] = &[
    (
        "claude",
        ".claude.json",
        "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"time\": {\"command\": \"uvx\"}\n  },\n  \"tips\": 1.50\n}\n",
        "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"time\": {\"command\": \"uvx\"},\n    \"countersign\": {\n      \"type\": \"stdio\",\n      \"command\": \"{PROGRAM}\",\n      \"args\": [\"mcp\"]\n    }\n  },\n  \"tips\": 1.50\n}\n",
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        "",
        "{\n  \"mcpServers\": {\n    \"countersign\": {\n      \"command\": \"{PROGRAM}\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n",
    ),
    (
        "vscode",
        "xdg-config/Code/User/mcp.json",
        "// mine\n{\n\t\"servers\": {}, // none yet\n\t\"inputs\": [],\n}",
        "// mine\n{\n\t\"servers\": {\n\t\t\"countersign\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\": \"{PROGRAM}\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t}\n\t}, // none yet\n\t\"inputs\": [],\n}",
    ),
    (
        "codex",
        ".codex/config.toml",
        "# my settings\nmodel = 'gpt-5'   # the large one\n\n[mcp_servers.time]\ncommand = \"uvx\"\n",
        "# my settings\nmodel = 'gpt-5'   # the large one\n\n[mcp_servers.time]\ncommand = \"uvx\"\n\n[mcp_servers.countersign]\ncommand = \"{PROGRAM}\"\nargs = [\"mcp\"]\n",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{\"theme\": \"dark\"}",
        "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"countersign\": {\n      \"command\": \"{PROGRAM}\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}",
    ),
    (
        "opencode",
        "xdg-config/opencode/opencode.jsonc",
        "{\r\n  // mine\r\n  \"model\": \"x/y\"\r\n}\r\n",
        "{\r\n  // mine\r\n  \"model\": \"x/y\",\r\n  \"mcp\": {\r\n    \"countersign\": {\r\n      \"type\": \"local\",\r\n      \"command\": [\"{PROGRAM}\", \"mcp\"],\r\n      \"enabled\": true\r\n    }\r\n  }\r\n}\r\n",
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        "{\n    \"mcpServers\": {}\n}",
        "{\n    \"mcpServers\": {\n        \"countersign\": {\n            \"command\": \"{PROGRAM}\",\n            \"args\": [\"mcp\"]\n        }\n    }\n}",
    ),
    (
        "zed",
        "xdg-config/zed/settings.json",
        "{\n  /* big */ \"buffer_font_size\": 20,\n}\n",
        "{\n  /* big */ \"buffer_font_size\": 20,\n  \"context_servers\": {\n    \"countersign\": {\n      \"source\": \"custom\",\n      \"command\": \"{PROGRAM}\",\n      \"args\": [\"mcp\"]\n    }\n  },\n}\n",
    ),
];

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
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[tokio::test]
async fn every_client_is_connected_and_restored_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    for (_, file, before, _) in FILES {
        write(dir.path(), file, before);
    }
    connect(dir.path(), &["--dry-run"]).await;
    for (client, file, before, _) in FILES {
        assert_eq!(read(dir.path(), file), *before, "{client}: --dry-run writes nothing");
    }
    let told = connect(dir.path(), &["--yes"]).await;
    let program = countersign().canonicalize().unwrap();
    // The home of this test is named by a variable, which the client's own start would not have.
    let args = format!("\"mcp\", \"--home\", \"{}\"]", dir.path().join("home").display());
    for (client, file, _, after) in FILES {
        let after = after.replace("{PROGRAM}", program.to_str().unwrap());
        assert_eq!(read(dir.path(), file), after.replace("\"mcp\"]", &args), "{client}");
        assert!(told.contains(&format!("{client}: connected")), "{told}");
    }
    let again: Value =
        serde_json::from_str(&connect(dir.path(), &["--yes", "-o", "json"]).await).unwrap();
    for client in again.as_array().unwrap() {
        assert_eq!(client["status"], "unchanged", "{client}");
    }
    connect(dir.path(), &["--undo"]).await;
    for (client, file, before, _) in FILES {
        assert_eq!(read(dir.path(), file), *before, "{client}");
    }
    let nothing = run(dir.path(), ["connect", "--undo"]).await;
    assert_eq!(nothing.status.code(), Some(1));
    assert!(stderr(&nothing).contains("NOT_FOUND"), "{}", stderr(&nothing));
}

#[tokio::test]
async fn a_file_that_was_not_there_is_removed_again() {
    let dir = tempfile::tempdir().unwrap();
    connect(dir.path(), &["claude-desktop", "--yes"]).await;
    let file = dir.path().join("xdg-config/Claude/claude_desktop_config.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    connect(dir.path(), &["--undo"]).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn smoke_an_edited_file_is_not_overwritten_by_undo() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), ".cursor/mcp.json", "{}\n");
    connect(dir.path(), &["cursor", "--yes"]).await;
    let edited =
        read(dir.path(), ".cursor/mcp.json").replace("\"mcp\"", "\"mcp\", \"--server\", \"x\"");
    write(dir.path(), ".cursor/mcp.json", &edited);
    let output = run(dir.path(), ["connect", "--undo"]).await;
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("EDITED"), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("+       \"args\": [\"mcp\", \"--server\", \"x\""),
        "{}",
        stdout(&output)
    );
    assert_eq!(read(dir.path(), ".cursor/mcp.json"), edited);
}

#[tokio::test]
async fn what_claude_code_wrote_since_survives_an_undo() {
    let dir = tempfile::tempdir().unwrap();
    let time = json!({"command": "uvx", "args": ["mcp-server-time"]});
    let before = json!({"numStartups": 3, "mcpServers": {"time": time}});
    write(dir.path(), ".claude.json", &format!("{before:#}\n"));
    connect(dir.path(), &["claude", "--import", "--replace", "--yes"]).await;
    let since = read(dir.path(), ".claude.json");
    assert!(!since.contains("mcp-server-time"), "{since}");
    let since = since.replace("\"numStartups\": 3", "\"numStartups\": 4");
    write(dir.path(), ".claude.json", &since);
    connect(dir.path(), &["claude", "--undo"]).await;
    let left: Value = serde_json::from_str(&read(dir.path(), ".claude.json")).unwrap();
    assert_eq!(left["numStartups"], 4);
    assert_eq!(left["mcpServers"], json!({"time": time}));
}

/// Runs `connect claude` for a person who types these answers.
async fn answered(dir: &Path, answers: &str) {
    let mut child = program(dir)
        .args(["connect", "claude"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(answers.as_bytes()).await.unwrap();
    assert!(child.wait().await.unwrap().success(), "{answers:?}");
}

#[tokio::test]
async fn permissions_are_offered_to_a_person() {
    for (answers, is_wanted) in [("y\nn\n", false), ("y\n", false), ("y\ny\n", true)] {
        let dir = tempfile::tempdir().unwrap();
        answered(dir.path(), answers).await;
        assert!(read(dir.path(), ".claude.json").contains("countersign"), "{answers:?}");
        let settings = read(dir.path(), ".claude/settings.json");
        assert_eq!(settings.contains("mcp__countersign__call_tool_read"), is_wanted, "{answers:?}");
    }
}

#[tokio::test]
async fn edited_permissions_lose_only_ours() {
    let dir = tempfile::tempdir().unwrap();
    connect(dir.path(), &["claude", "--permissions", "--yes"]).await;
    let edited = read(dir.path(), ".claude/settings.json")
        .replace("\"allow\": [", "\"deny\": [], \"allow\": [\n      \"Bash(ls)\",");
    write(dir.path(), ".claude/settings.json", &edited);
    connect(dir.path(), &["--undo"]).await;
    let left: Value = serde_json::from_str(&read(dir.path(), ".claude/settings.json")).unwrap();
    assert_eq!(left, json!({"permissions": {"deny": [], "allow": ["Bash(ls)"]}}));
    assert!(!read(dir.path(), ".claude.json").contains("countersign"));
}

#[tokio::test]
async fn a_client_keeps_its_servers_if_the_gate_cannot_take_them() {
    let dir = tempfile::tempdir().unwrap();
    let client = r#"{"mcpServers": {"time": {"command": "uvx"}}}"#;
    write(dir.path(), ".cursor/mcp.json", client);
    write(dir.path(), "xdg-config/countersign/config.json", "{ not a config");
    let output = run(dir.path(), ["connect", "cursor", "--import", "--replace", "--yes"]).await;
    assert!(!output.status.success(), "{}", stdout(&output));
    assert_eq!(read(dir.path(), ".cursor/mcp.json"), client);
}

#[tokio::test]
async fn over_http_each_client_has_a_token_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), ".gemini/settings.json", "{}");
    let mode =
        |file: &str| fs::metadata(dir.path().join(file)).unwrap().permissions().mode() & 0o777;
    let file = dir.path().join(".gemini/settings.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let shown = connect(dir.path(), &["gemini", "--http", "--yes"]).await;
    assert!(shown.contains("(mode 644, will be 600)") && !shown.contains("cst_"), "{shown}");
    connect(dir.path(), &["cursor", "--http", "--yes"]).await;
    let entry = |file: &str| {
        let text: Value = serde_json::from_str(&read(dir.path(), file)).unwrap();
        text["mcpServers"]["countersign"].clone()
    };
    let (gemini, cursor) = (entry(".gemini/settings.json"), entry(".cursor/mcp.json"));
    assert_eq!(gemini["httpUrl"], "http://127.0.0.1:7420/mcp");
    let tokens = [&gemini, &cursor].map(|entry| {
        let bearer = entry["headers"]["Authorization"].as_str().unwrap();
        assert!(bearer.starts_with("Bearer cst_"), "{bearer}");
        bearer["Bearer ".len()..].to_owned()
    });
    assert_ne!(tokens[0], tokens[1]);
    for key in ["home/agent-token", "home/api-key"] {
        assert!(!tokens.contains(&read(dir.path(), key).trim().to_owned()), "{key}");
    }
    assert_eq!((mode(".gemini/settings.json"), mode(".cursor/mcp.json")), (0o600, 0o600));
    let states = async || {
        let list = stdout(&run(dir.path(), ["token", "list", "-o", "json"]).await);
        let list: Value = serde_json::from_str(&list).unwrap();
        let token = |token: &Value| {
            format!("{} {}", token["name"].as_str().unwrap(), token["state"].as_str().unwrap())
        };
        list["tokens"].as_array().unwrap().iter().map(token).collect::<Vec<_>>()
    };
    assert_eq!(states().await, ["gemini valid", "cursor valid"]);
    let again = connect(dir.path(), &["gemini", "--http", "--yes"]).await;
    assert!(again.contains("gemini: unchanged"), "{again}");
    assert_eq!(entry(".gemini/settings.json"), gemini);
    connect(dir.path(), &["--undo"]).await;
    assert_eq!(states().await, ["gemini revoked", "cursor revoked"]);
    assert_eq!(
        (read(dir.path(), ".gemini/settings.json"), mode(".gemini/settings.json")),
        ("{}".to_owned(), 0o644)
    );
    let output = run(dir.path(), ["connect", "claude-desktop", "--http", "--yes"]).await;
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[tokio::test]
async fn what_is_shown_hidden_is_stored_in_the_vault_and_references_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let client = json!({"mcpServers": {
        "db": {"command": "db", "args": ["--password", "hunter2hunter2", "postgres://me:hunter3hunter3@h/x"]},
        "docs": {"url": "https://docs.example/mcp?api_key=hunter4hunter4"},
    }});
    write(dir.path(), ".cursor/mcp.json", &format!("{client:#}\n"));
    let shown = connect(dir.path(), &["cursor", "--import", "--replace", "--yes"]).await;
    let config = read(dir.path(), "xdg-config/countersign/config.json");
    for text in [&shown, &config] {
        assert!(!text.contains("hunter"), "{text}");
        for reference in ["${secret:DB_PASSWORD}", "${secret:DB_ARGUMENT}", "${secret:DOCS_URL}"] {
            assert!(text.contains(reference), "{reference} in {text}");
        }
    }
    let written: Vec<String> = config
        .lines()
        .filter(|line| line.contains("${secret:"))
        .map(|line| format!("+ {line}"))
        .collect();
    for line in &written {
        assert!(shown.contains(line), "shown as written: {line} in {shown}");
    }
    connect(dir.path(), &["--undo"]).await;
    assert!(read(dir.path(), ".cursor/mcp.json").contains("hunter3hunter3"));
}

#[tokio::test]
async fn permissions_of_claude_code_are_added_once() {
    let dir = tempfile::tempdir().unwrap();
    let mine = "{\n  \"permissions\": {\"allow\": [\"Bash(ls)\"]}\n}\n";
    write(dir.path(), ".claude/settings.json", mine);
    for _ in 0..2 {
        connect(dir.path(), &["claude", "--permissions", "--yes"]).await;
    }
    let settings: Value = serde_json::from_str(&read(dir.path(), ".claude/settings.json")).unwrap();
    let ours = |names: &[&str]| {
        names.iter().map(|name| format!("mcp__countersign__{name}")).collect::<Vec<_>>()
    };
    let reads =
        ["retrieve_tools", "describe_tool", "call_tool_read", "read_cache", "upstream_servers"];
    let allow = [vec!["Bash(ls)".to_owned()], ours(&reads)].concat();
    assert_eq!(settings["permissions"]["allow"], json!(allow));
    assert_eq!(
        settings["permissions"]["ask"],
        json!(ours(&["call_tool_write", "call_tool_destructive"]))
    );
    connect(dir.path(), &["--undo"]).await;
    assert_eq!(read(dir.path(), ".claude/settings.json"), mine);
}

#[tokio::test]
async fn unreadable_files_are_left_alone_and_links_stay_links() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), ".cursor/mcp.json", "{ \"mcpServers\": [");
    let output = run(dir.path(), ["connect", "cursor", "--yes"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot be read"), "{}", stderr(&output));
    assert_eq!(read(dir.path(), ".cursor/mcp.json"), "{ \"mcpServers\": [");
    write(dir.path(), "dotfiles/gemini.json", "{}");
    fs::create_dir_all(dir.path().join(".gemini")).unwrap();
    symlink(dir.path().join("dotfiles/gemini.json"), dir.path().join(".gemini/settings.json"))
        .unwrap();
    connect(dir.path(), &["gemini", "--yes"]).await;
    assert!(dir.path().join(".gemini/settings.json").is_symlink());
    assert!(read(dir.path(), "dotfiles/gemini.json").contains("countersign"));
}

#[tokio::test]
async fn without_an_answer_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), ".cursor/mcp.json", "{}");
    let output = run(dir.path(), ["connect", "cursor"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--yes"), "{}", stderr(&output));
    assert_eq!(read(dir.path(), ".cursor/mcp.json"), "{}");
    let empty = tempfile::tempdir().unwrap();
    let output = testkit::program::program(empty.path())
        .env("PATH", "/nonexistent")
        .args(["connect", "--yes"])
        .output()
        .await
        .unwrap();
    assert!(stderr(&output).contains("NOT_FOUND"), "{}", stderr(&output));
}

#[tokio::test]
async fn servers_and_their_secrets_are_imported_and_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let token = format!("ghp_{}", "0123456789abcdefABCDEF0123456789abcd");
    let servers = json!({"mcpServers": {
        "time": {"type": "stdio", "command": "uvx", "args": ["mcp-server-time"]},
        "github": {"url": "https://mcp.example/mcp", "headers": {"Authorization": format!("Bearer {token}")}},
    }});
    let client = format!("{servers:#}\n");
    write(dir.path(), ".cursor/mcp.json", &client);
    let config = "{\n  // mine\n  \"mcpServers\": {}\n}\n";
    write(dir.path(), "xdg-config/countersign/config.json", config);
    let told = connect(dir.path(), &["cursor", "--import", "--replace", "--yes"]).await;
    assert!(!told.contains(&token), "{told}");
    let imported = read(dir.path(), "xdg-config/countersign/config.json");
    assert!(imported.starts_with("{\n  // mine\n  \"mcpServers\": {\n    \"time\""), "{imported}");
    assert!(imported.contains("\"Bearer ${secret:GITHUB_AUTHORIZATION}\""), "{imported}");
    assert!(!imported.contains(&token), "{imported}");
    let left: Value = serde_json::from_str(&read(dir.path(), ".cursor/mcp.json")).unwrap();
    let left: Vec<&String> = left["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(left, ["countersign"]);
    let secrets = stdout(&run(dir.path(), ["secret", "list"]).await);
    assert!(secrets.contains("GITHUB_AUTHORIZATION") && !secrets.contains(&token), "{secrets}");
    let check = run(dir.path(), ["config", "check"]).await;
    assert!(check.status.success(), "{}", stderr(&check));

    let again = connect(dir.path(), &["cursor", "--import", "--yes"]).await;
    assert!(again.contains("countersign: unchanged"), "{again}");
    connect(dir.path(), &["--undo"]).await;
    assert_eq!(read(dir.path(), ".cursor/mcp.json"), client);
    assert_eq!(read(dir.path(), "xdg-config/countersign/config.json"), config);
    let secrets = stdout(&run(dir.path(), ["secret", "list"]).await);
    assert!(!secrets.contains("GITHUB_AUTHORIZATION"), "{secrets}");
}

#[tokio::test]
async fn an_imported_secret_among_arguments_is_warned_about() {
    const WORDS: &str = "a secret in an argument is visible to every user";
    let dir = tempfile::tempdir().unwrap();
    let server = |args: Value| json!({"mcpServers": {"n": {"command": "x", "args": args}}});
    for (args, expected) in [(json!(["--token", "hunter2hunter2"]), true), (json!(["x"]), false)] {
        write(dir.path(), ".cursor/mcp.json", &server(args.clone()).to_string());
        let told = run(dir.path(), ["connect", "cursor", "--import", "--dry-run"]).await;
        let told = format!("{}{}", stdout(&told), stderr(&told));
        assert_eq!(told.contains(WORDS), expected, "{args}: {told}");
    }
}

#[tokio::test]
async fn the_configs_of_mcpproxy_and_toolhive_are_imported() {
    let dir = tempfile::tempdir().unwrap();
    let mcpproxy = json!({"listen": ":8080", "mcpServers": [
        {"name": "files", "protocol": "stdio", "command": "npx", "args": ["-y", "files"], "enabled": true},
        {"name": "docs", "protocol": "sse", "url": "https://docs.example/events", "enabled": false},
    ]});
    write(dir.path(), "mcpproxy.json", &mcpproxy.to_string());
    let toolhive = json!({"name": "fetch", "image": "fetch:1", "transport": "stdio", "port": 4711});
    write(dir.path(), "toolhive.json", &toolhive.to_string());
    for file in ["mcpproxy.json", "toolhive.json"] {
        connect(dir.path(), &["zed", "--import", "--from", file, "--yes"]).await;
    }
    let imported: Value =
        serde_json::from_str(&read(dir.path(), "xdg-config/countersign/config.json")).unwrap();
    let expected = json!({
        "files": {"command": "npx", "args": ["-y", "files"], "untrusted": true},
        "docs": {"url": "https://docs.example/events", "enabled": false, "transport": "sse",
            "untrusted": true},
        "fetch": {"url": "http://127.0.0.1:4711/mcp", "untrusted": true},
    });
    assert_eq!(imported["mcpServers"], expected);
    let output =
        run(dir.path(), ["connect", "zed", "--import", "--from", "nothing.json", "--yes"]).await;
    assert!(stderr(&output).contains("NOT_FOUND"), "{}", stderr(&output));
}
