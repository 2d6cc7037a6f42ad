//! The command line, as a person uses it: with a running gate and without.

use serde_json::{Value, json};

use crate::gate::{Gate, run, scripted, stderr, stdout};

fn tools() -> Value {
    json!([
        {"name": "say", "description": "Says something. At length.", "annotations": {"readOnlyHint": true},
         "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}}},
        {"name": "drop", "description": "\u{1b}[31mDrops\u{202e} it", "annotations": {"destructiveHint": true}},
        {"name": "broken", "x-do": "is_error"},
    ])
}

/// The same words with a gate that runs and with one that is made for the command.
async fn in_both_ways(check: impl AsyncFn(&std::path::Path)) {
    let gate = Gate::scripted(tools()).await;
    check(gate.dir.path()).await;
    let alone = tempfile::tempdir().unwrap();
    let config = json!({"mcpServers": {"s": scripted(alone.path(), "s", &tools())}});
    let folder = alone.path().join("xdg-config/countersign");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    check(alone.path()).await;
}

#[tokio::test]
async fn calls_fill_in_the_intent_and_exit_by_their_outcome() {
    in_both_ways(async |dir| {
        let args = ["call", "tool-read", "--tool-name=s:say", "--json_args", r#"{"word":"hi"}"#];
        let output = run(dir, args).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).contains(r#""arguments":{"word":"hi"}"#), "{}", stdout(&output));

        std::fs::write(dir.join("args.json"), r#"{"word":"file"}"#).unwrap();
        let output = run(dir, ["call", "tool-read", "--tool-name", "s:say", "--json-args", "@args.json", "-o", "json"]).await;
        let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert!(result["content"][0]["text"].as_str().unwrap().contains(r#"{"word":"file"}"#));

        let output = run(dir, ["call", "tool-write", "--tool-name=s:drop"]).await;
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains("SERVER_MISMATCH: Tool 's:drop' is marked destructive by server, use call_tool_destructive"));
        let output = run(dir, ["call", "tool-destructive", "--tool-name=s:drop", "--reason", "why", "--sensitivity", "public"]).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let output = run(dir, ["call", "tool-read", "--tool-name=s:say", "--sensitivity", "secret"]).await;
        assert!(stderr(&output).contains("INVALID_SENSITIVITY"));
        let output = run(dir, ["call", "tool-write", "--tool-name=s:broken"]).await;
        assert_eq!((output.status.code(), stdout(&output).trim()), (Some(3), "went wrong"));
        let output = run(dir, ["call", "tool-read", "--tool-name=s:say", "--json_args", "@nowhere"]).await;
        assert_eq!(output.status.code(), Some(1));
        let output = run(dir, ["call", "tool-read", "--tool-name=say"]).await;
        assert_eq!(output.status.code(), Some(3));
        assert!(stderr(&output).contains("INVALID_ARGUMENTS"), "{}", stderr(&output));
    })
    .await;
}

#[tokio::test]
async fn lists_are_tables_for_people_and_json_or_yaml_for_programs() {
    in_both_ways(async |dir| {
        let output = run(dir, ["tools", "list"]).await;
        assert_eq!(
            stdout(&output),
            "TOOL      CLASS               STATUS    DESCRIPTION\n\
             s:say     read                callable  Says something.\n\
             s:drop    destructive         callable  \u{fffd}[31mDrops\u{fffd} it\n\
             s:broken  write (unverified)  callable\n"
        );
        let output = run(dir, ["tools", "list", "--server", "s", "-o", "json"]).await;
        let list: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(list["total"], 3);
        let output = run(dir, ["tools", "list", "-o", "yaml"]).await;
        assert!(stdout(&output).starts_with("tools:\n"), "{}", stdout(&output));
        let output = run(dir, ["tools", "show", "s:say"]).await;
        assert!(stdout(&output).contains("call with    call_tool_read"), "{}", stdout(&output));
        let output = run(dir, ["upstream", "list"]).await;
        assert_eq!(
            stdout(&output),
            "SERVER  STATE  TRANSPORT  TOOLS  ERROR\ns       ready  stdio      3\n"
        );
        let output = run(dir, ["upstream", "get", "s", "-o", "json"]).await;
        let server: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(server["state"], "ready");
        for args in [
            &["tools", "show", "s:sya"][..],
            &["tools", "show", "say"],
            &["upstream", "get", "x"],
            &["tools", "list", "--server", "x"],
        ] {
            let output = run(dir, args).await;
            assert_eq!(output.status.code(), Some(1), "{args:?}");
            assert_eq!(stdout(&output), "", "{args:?}");
        }
        let output = run(dir, ["tools", "show", "s:sya"]).await;
        assert!(stderr(&output).contains("did you mean 's:say'?"), "{}", stderr(&output));
    })
    .await;
}

#[tokio::test]
async fn config_show_prints_defaults_and_no_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"mcpServers": {"x": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer hush"}}}});
    std::fs::write(dir.path().join("c.json"), config.to_string()).unwrap();
    let output = run(dir.path(), ["config", "show", "--config", "c.json"]).await;
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(shown["listen"], "127.0.0.1:7420");
    assert_eq!(shown["tools_limit"], 15);
    assert!(!stdout(&output).contains("hush"));
    let output = run(dir.path(), ["config", "check", "--config", "c.json"]).await;
    assert!(stdout(&output).contains("ok: c.json, 1 servers"), "{}", stdout(&output));
}

#[tokio::test]
async fn wrong_words_exit_1_and_suggest_the_right_ones() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(dir.path(), ["srve"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("serve"), "{}", stderr(&output));
    let output = run(dir.path(), ["--help"]).await;
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("countersign serve"), "{}", stdout(&output));
    let output = run(dir.path(), ["call", "tool-read"]).await;
    assert_eq!(output.status.code(), Some(1));
}
