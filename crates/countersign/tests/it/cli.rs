//! The command line, as a person uses it: with a running gate and without.

use serde_json::{Value, json};
use testkit::gate::Gate;
use testkit::program::{program, run, stderr, stdout};
use testkit::upstream::{counted, ended, pids, scripted};
use testkit::wait::eventually;

fn tools() -> Value {
    json!([
        {"name": "say", "description": "Says something. At length.", "annotations": {"readOnlyHint": true},
         "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}, "path": {"type": "string"}}}},
        {"name": "drop", "description": "\u{1b}[31mDrops\u{202e} it", "annotations": {"destructiveHint": true}},
        {"name": "broken", "x-do": "is_error"},
    ])
}

/// Runs the same command with a running gate and with one made for the command.
pub(crate) async fn in_both_ways(check: impl AsyncFn(&std::path::Path)) {
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
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("'say' is not a tool name"), "{}", stderr(&output));
    })
    .await;
}

/// Runs a read with the words, and returns the exit code and what it printed.
async fn read(dir: &std::path::Path, words: &[&str]) -> (Option<i32>, String) {
    let output = run(dir, ["call", "tool-read"].iter().chain(words)).await;
    (output.status.code(), stdout(&output) + &stderr(&output))
}

#[tokio::test]
async fn the_tool_and_its_arguments_are_given_by_position_or_by_flag() {
    in_both_ways(async |dir| {
        let args = r#"{"word":"hi"}"#;
        std::fs::write(dir.join("args.json"), args).unwrap();
        for words in [
            &["s:say", args][..],
            &["s:say", "@args.json"],
            &["s:say", "-j", args],
            &["-j", args, "s:say"],
            &["-t", "s:say", "-j", args],
            &["-t", "s:say", "--json-args", "@args.json"],
            &["--tool-name", "s:say", "--json_args", args],
            &["--tool_name=s:say", "--json_args", args],
        ] {
            let (code, told) = read(dir, words).await;
            assert_eq!(code, Some(0), "{words:?}: {told}");
            assert!(told.contains(r#""arguments":{"word":"hi"}"#), "{words:?}: {told}");
        }
        for words in [&["s:say"][..], &["-t", "s:say"]] {
            let (code, told) = read(dir, words).await;
            assert_eq!(code, Some(0), "{words:?}: {told}");
            assert!(!told.contains("hi"), "{words:?}: {told}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_call_that_gives_a_thing_twice_is_refused_and_not_made() {
    let gate = Gate::scripted(tools()).await;
    let dir = gate.dir.path();
    for words in [
        &["s:say", "-t", "s:drop"][..],
        &["-t", "s:say", "--tool-name=s:drop"],
        &["-t", "s:say", "{}"],
        &["s:say", "-t", "s:say"],
    ] {
        let (code, told) = read(dir, words).await;
        assert_eq!(code, Some(1), "{words:?}: {told}");
        assert!(told.contains("the tool is named twice, as '"), "{words:?}: {told}");
    }
    for words in [
        &["s:say", "{}", "-j", "{}"][..],
        &["s:say", "-j", "{}", "--json_args", "{}"],
        &["-t", "s:say", "-j", "{}", "-j", "@nowhere"],
    ] {
        let (code, told) = read(dir, words).await;
        assert_eq!(code, Some(1), "{words:?}: {told}");
        assert!(told.contains("the arguments are given twice"), "{words:?}: {told}");
    }
    let recorded = run(dir, ["activity", "list", "-o", "json"]).await;
    assert!(!stdout(&recorded).contains("s:say"), "{}", stdout(&recorded));
}

#[tokio::test]
async fn arguments_that_are_no_object_are_refused_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for text in ["[]", "1", "null", "\"{}\""] {
        for words in
            [["s:say", text].as_slice(), &["s:say", "-j", text], &["-t", "s:say", "-j", text]]
        {
            let (code, told) = read(dir, words).await;
            assert_eq!(code, Some(1), "{words:?}: {told}");
            assert!(told.contains("the arguments must be a JSON object"), "{words:?}: {told}");
        }
    }
    let (code, told) = read(dir, &["s:say", "{"]).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("the arguments are not valid JSON"), "{told}");
}

#[tokio::test]
async fn lists_are_tables_for_people_and_json_or_yaml_for_programs() {
    in_both_ways(async |dir| {
        let output = run(dir, ["tools", "list"]).await;
        assert_eq!(
            stdout(&output),
            "TOOL      CLASS               STATUS    DESCRIPTION\n\
             s:say     read                callable  Says something.\n\
             s:drop    destructive         callable  ⟨U+001B⟩[31mDrops⟨U+202E⟩ it\n\
             s:broken  write (unverified)  callable\n"
        );
        let output = run(dir, ["tools", "list", "--server", "s", "-o", "json"]).await;
        let list: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(list["total"], 3);
        let output = run(dir, ["upstream", "list", "-o", "yaml"]).await;
        assert!(stdout(&output).starts_with("servers:\n"), "{}", stdout(&output));
        let output = run(dir, ["tools", "show", "s:say"]).await;
        assert!(stdout(&output).contains("call with    call_tool_read"), "{}", stdout(&output));
        let output = run(dir, ["upstream", "list"]).await;
        assert_eq!(
            stdout(&output),
            "SERVER  STATE  TRANSPORT  TOOLS  WARNINGS  ERROR\ns       ready  stdio      3      1\n"
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
async fn smoke_config_show_prints_defaults_and_no_secrets() {
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
async fn unknown_commands_exit_1_with_a_suggestion() {
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

#[tokio::test]
async fn tools_are_found_by_what_they_do() {
    in_both_ways(async |dir| {
        let output = run(dir, ["tools", "search", "say", "something"]).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let table = stdout(&output);
        let (head, first) = table.split_once('\n').unwrap();
        assert_eq!(head, "SCORE  TOOL   CALL WITH       STATUS    DESCRIPTION");
        assert!(first.contains("s:say  call_tool_read  callable  Says something."), "{table}");
        let output = run(dir, ["tools", "search", "drops", "--limit", "1", "-o", "json"]).await;
        let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let tools = found["tools"].as_array().unwrap();
        assert_eq!((tools.len(), tools[0]["name"].as_str()), (1, Some("s:drop")), "{found}");
        let score = tools[0]["score"].as_f64().unwrap();
        assert!(score > 0.0 && score <= 1.0, "{found}");
        let output = run(dir, ["tools", "search", "zeppelin"]).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output), "no matching tools; try other words\n");
        for args in [&["tools", "search"][..], &["tools", "search", "x", "--limit", "0"]] {
            assert_eq!(run(dir, args).await.status.code(), Some(1), "{args:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_latest_stderr_lines_of_a_server_are_shown() {
    let words = "echo first >&2; printf '\\033[31mred\\n' >&2; echo last >&2; exec cat > /dev/null";
    let servers = |_: &std::path::Path| json!({"s": {"command": "sh", "args": ["-c", words]}});
    let gate = Gate::start(servers, json!({})).await;
    let logs = eventually(|| async {
        let output = gate.cli(&["upstream", "logs", "s"]).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).contains("last").then(|| stdout(&output))
    })
    .await;
    assert_eq!(logs, "first\n⟨U+001B⟩[31mred\nlast\n");
    let output = gate.cli(&["upstream", "logs", "s", "-n", "1", "-o", "json"]).await;
    let logs: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(logs["lines"], json!(["last"]));
}

#[tokio::test]
async fn a_server_is_restarted_on_request() {
    let gate = Gate::start(|dir| json!({"s": counted(dir, "s", &tools())}), json!({})).await;
    gate.ready("s").await;
    let output = gate.cli(&["upstream", "restart", "s"]).await;
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "restarting 's'\n"));
    let dir = gate.dir.path();
    eventually(|| async { (pids(dir, "s").len() == 2).then_some(()) }).await;
    ended(pids(dir, "s")[0]).await;
    gate.ready("s").await;
    let output = gate.cli(&["call", "tool-read", "--tool-name=s:say"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(pids(dir, "s").len(), 2);
    let alone = tempfile::tempdir().unwrap();
    let output = run(alone.path(), ["upstream", "restart", "nothing"]).await;
    assert_eq!(output.status.code(), Some(1), "there is no gate to restart it in");
}

#[tokio::test]
async fn commands_on_unknown_servers_fail_with_not_found() {
    let gate = Gate::scripted(tools()).await;
    let output = gate.cli(&["upstream", "restart", "nothing"]).await;
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""));
    assert!(stderr(&output).contains("NOT_FOUND"), "{}", stderr(&output));
    in_both_ways(async |dir| {
        for verb in ["logs", "get"] {
            let output = run(dir, ["upstream", verb, "nothing"]).await;
            assert_eq!(output.status.code(), Some(1), "{verb}");
            assert_eq!(stdout(&output), "", "{verb}");
            assert!(stderr(&output).contains("NOT_FOUND"), "{verb}: {}", stderr(&output));
        }
    })
    .await;
}

#[tokio::test]
async fn completions_cover_every_public_command() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = run(dir.path(), ["completions", shell]).await;
        assert_eq!(output.status.code(), Some(0), "{shell}");
        let script = stdout(&output);
        for word in ["serve", "mcp", "upstream", "restart", "search", "tool-destructive", "demo"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        for word in ["--home", "--log-format", "--version"] {
            let word = if shell == "fish" { word.trim_start_matches('-') } else { word };
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("supervise"), "{shell}");
    }
    assert_eq!(run(dir.path(), ["completions", "cmd"]).await.status.code(), Some(1));
}

#[tokio::test]
async fn the_demo_plays_its_script_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = program(dir.path()).args(["demo", "--once"]).env("TMPDIR", &temporary).output();
    let output = tokio::time::timeout(testkit::client::PATIENCE, output).await.unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = stdout(&output);
    assert!(told.contains("found: notes:write_note"), "{told}");
    assert!(told.contains("ok: wrote 'round 1'"), "{told}");
    assert!(
        told.contains("refused: SERVER_MISMATCH: Tool 'notes:delete_note' is marked"),
        "{told}"
    );
    assert!(told.contains("refused: INTENT_MISMATCH"), "{told}");
    assert!(told.contains("refused: TOOL_BLOCKED"), "a tool that changed is locked: {told}");
    let page = told.lines().find(|line| line.contains("/#code=")).expect("the page's link");
    assert!(page.trim().starts_with("http://gate-"), "{page}");
    assert!(told.trim_end().ends_with("ok: deleted"), "{told}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    assert!(!dir.path().join("home").exists(), "the person's own home is not touched");
}

#[tokio::test]
async fn an_empty_variable_counts_as_unset() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = program(dir.path());
    command.args(["upstream", "list"]).env("COUNTERSIGN_CONFIG", "");
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let given = run(dir.path(), ["upstream", "list", "--config", ""]).await;
    assert_ne!(given.status.code(), Some(0), "an empty argument is a mistake");
}
