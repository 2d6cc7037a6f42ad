//! Agents whose words would forge log lines or hide on a screen, and patterns that would crash a tool.

use serde_json::json;
use testkit::client::Client;
use testkit::gate::Gate;
use testkit::program::{stderr, stdout};

/// An escape, an override of the direction, a blank, private use, and a tag.
const HIDDEN: &str = "\u{9b}31m\u{202e}\u{2800}\u{e041}\u{e0041}";

fn hides_nothing(text: &str) -> bool {
    !text.contains(|c: char| HIDDEN.contains(c) && !c.is_ascii())
}

/// One rule holds for everything that is displayed: the log, tables, JSON, YAML and CSV.
#[tokio::test]
async fn an_agents_words_forge_no_log_line_and_hide_nothing() {
    let tools = json!([{"name": "say", "annotations": {"readOnlyHint": true}}]);
    let gate = Gate::scripted(tools).await;
    gate.ready("s").await;
    let client = gate.http().await;
    let forged = "2026-01-01T00:00:00.000000Z  INFO connected server=forged";
    for name in [format!("s:say{HIDDEN}"), format!("s:say\n{forged}")] {
        client.two_key_call("read", &name, json!({})).await;
    }
    let line = gate.log_line("forged").await;
    assert!(line.contains(r"tool=s:say\n2026-01-01") && hides_nothing(&gate.log()), "{line}");
    for (args, shown) in [
        (vec!["activity", "list"], "s:say⟨U+009B⟩31m⟨U+202E⟩⟨U+2800⟩⟨U+E041⟩⟨U+E0041⟩"),
        (vec!["activity", "list", "-o", "json"], r"say\u009b31m\u202e\u2800\ue041\udb40\udc41"),
        (vec!["activity", "list", "-o", "yaml"], r"say\U0000009b31m\U0000202e\U00002800"),
        (vec!["activity", "export", "--format", "csv"], "say⟨U+009B⟩31m⟨U+202E⟩⟨U+2800⟩"),
    ] {
        let output = gate.cli(&args).await;
        let text = stdout(&output);
        assert!(text.contains(shown) && hides_nothing(&text), "{args:?}: {text:?}");
    }
    let output = gate.cli(&["tools", "show", &format!("s:{HIDDEN}")]).await;
    assert!(stderr(&output).contains("⟨U+202E⟩") && hides_nothing(&stderr(&output)));
}

#[tokio::test]
async fn a_glob_of_many_braces_is_refused_and_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = json!({"mcpServers": {}, "workspace": {"root": dir.path()}});
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    let gate = Gate::open(dir).await;
    glob_braces(&gate.http().await).await;
    assert!(!gate.log().contains("panicked"), "{}", gate.log());
}

/// Calls Glob with patterns of many braces.
pub(in crate::hostile) async fn glob_braces(client: &Client) {
    let nested = |depth: usize| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
    for (pattern, said) in [
        (nested(500), "too complex"),
        (nested(100_000), "longer than 4096 bytes"),
        ("{a,b}".repeat(500), "no matching files"),
    ] {
        let arguments = json!({"pattern": pattern});
        let answer = client.two_key_call("read", "workspace:Glob", arguments).await;
        assert!(answer.to_string().contains(said), "{said}: {answer}");
    }
}
