//! Output of the real programs with the scripted model, and lines that no program printed.

use super::*;
use crate::agent::report::{
    Cause, ERROR_BYTES_MAX, ERRORS_MAX, NATIVE_CALLS_MAX, TEXT_BYTES_MAX, WorkUsage,
};

const CLAUDE: &str = include_str!("../fixtures/claude.jsonl");
const CLAUDE_FAILS: &str = include_str!("../fixtures/claude-fails.jsonl");
const GEMINI: &str = include_str!("../fixtures/gemini.jsonl");
const GEMINI_FAILS: &str = include_str!("../fixtures/gemini-fails.jsonl");
const CODEX: &str = include_str!("../fixtures/codex.jsonl");
const CODEX_FAILS: &str = include_str!("../fixtures/codex-fails.jsonl");
const CODEX_NATIVE: &str = include_str!("../fixtures/codex-native.jsonl");
const OPENCODE: &str = include_str!("../fixtures/opencode.jsonl");
const OPENCODE_FAILS: &str = include_str!("../fixtures/opencode-fails.jsonl");

fn read(provider: Provider, output: &str) -> (Vec<AgentEvent>, Result<AgentReport, AgentFailure>) {
    let mut stream = Stream::new(provider);
    let events = output.lines().flat_map(|line| stream.line(line)).collect();
    (events, stream.end())
}

/// Each was made to call a tool that it does not have, then our Read, and then to answer `all
/// done`.
#[test]
fn a_whole_run_is_read() {
    for (provider, output, native, ours, model) in [
        (Provider::Claude, CLAUDE, Some("Bash"), "mcp__awf-proxy__Read", Some("claude-opus-5-5")),
        (
            Provider::Gemini,
            GEMINI,
            Some("run_shell_command"),
            "mcp_awf-proxy_Read",
            Some("gemini-2.5-flash"),
        ),
        (Provider::Codex, CODEX, None, "awf-proxy.Read", None),
        (Provider::OpenCode, OPENCODE, Some("bash"), "awf-proxy_Read", None),
    ] {
        let (events, report) = read(provider, output);
        let report = report.unwrap();
        assert_eq!((report.text.as_str(), report.text_cut), ("all done", false), "{provider:?}");
        assert_eq!(report.model.as_deref(), model, "{provider:?}");
        let expected: Vec<&str> = native.into_iter().collect();
        let found: Vec<&str> = report.native.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(found, expected, "{provider:?}");
        assert!(report.native.iter().all(|call| call.refused), "{provider:?}");
        assert_eq!(report.tokens.unwrap().total % 15, 0, "{provider:?}");
        let is_ours =
            |event: &&AgentEvent| matches!(event, AgentEvent::Called { tool, .. } if tool == ours);
        assert_eq!(events.iter().filter(is_ours).count(), 1, "{provider:?}: {events:?}");
        let texts =
            |event: &&AgentEvent| matches!(event, AgentEvent::Text(text) if text == "all done");
        assert_eq!(events.iter().filter(texts).count(), 1, "{provider:?}: {events:?}");
        assert!(report.errors.is_empty(), "{provider:?}");
    }
}

#[test]
fn cost_is_what_the_program_says() {
    let cost = |provider, output| read(provider, output).1.unwrap().cost_usd;
    assert_eq!(cost(Provider::Claude, CLAUDE), Some(0.00042));
    assert_eq!(cost(Provider::OpenCode, OPENCODE), Some(0.0));
    assert_eq!(cost(Provider::Gemini, GEMINI), None);
}

#[test]
fn native_tool_calls_are_reported_once_each() {
    let (events, report) = read(Provider::Codex, CODEX_NATIVE);
    let report = report.unwrap();
    let found: Vec<(&str, bool)> =
        report.native.iter().map(|call| (call.name.as_str(), call.refused)).collect();
    assert_eq!(found, [("command_execution", false), ("file_change", false)]);
    let told = events.iter().filter(|event| matches!(event, AgentEvent::Native { .. })).count();
    assert_eq!(told, 2);
}

#[test]
fn a_failure_quotes_the_programs_message() {
    for (provider, output, words) in [
        (Provider::Claude, CLAUDE_FAILS, "API Error: 500 scripted failure"),
        (Provider::Gemini, GEMINI_FAILS, "scripted failure"),
        (Provider::Codex, CODEX_FAILS, "high demand"),
        (Provider::OpenCode, OPENCODE_FAILS, "scripted failure"),
    ] {
        let failed = read(provider, output).1.unwrap_err();
        let said = failed.to_string();
        assert!(said.starts_with("the agent failed: ") && said.contains(words), "{said}");
        assert!(!failed.report.errors.is_empty(), "{provider:?}");
    }
}

/// A run cut short at any line is not a success: the exit code would not show it.
#[test]
fn a_run_cut_short_is_unfinished() {
    for (provider, output) in [
        (Provider::Claude, CLAUDE),
        (Provider::Gemini, GEMINI),
        (Provider::Codex, CODEX),
        (Provider::OpenCode, OPENCODE),
    ] {
        let lines: Vec<&str> = output.lines().collect();
        for end in 0..lines.len() {
            let failed = read(provider, &lines[..end].join("\n")).1.unwrap_err();
            assert_eq!(failed.cause, Cause::Unfinished, "{provider:?} after {end} lines");
        }
    }
}

#[test]
fn rubbish_between_the_lines_changes_nothing() {
    let rubbish = [
        "",
        "rubbish",
        "{\"type\":",
        "[1,2]",
        "null",
        "{}",
        "{\"type\":7}",
        "{\"type\":\"result\"",
        "{\"type\":\"assistant\",\"message\":7}",
        "{\"type\":\"tool_result\",\"error\":[]}",
        "{\"type\":\"text\",\"part\":\"x\"}",
    ];
    for (provider, output) in [
        (Provider::Claude, CLAUDE),
        (Provider::Gemini, GEMINI),
        (Provider::Codex, CODEX),
        (Provider::OpenCode, OPENCODE),
    ] {
        let mixed: Vec<&str> =
            output.lines().flat_map(|line| rubbish.into_iter().chain([line])).collect();
        assert_eq!(read(provider, &mixed.join("\n")), read(provider, output), "{provider:?}");
    }
}

#[test]
fn tools_of_other_servers_and_unknown_items_are_native() {
    for (provider, line, name) in [
        (
            Provider::Claude,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"mcp__evil__Read"}]}}"#,
            "mcp__evil__Read",
        ),
        (
            Provider::Claude,
            r#"{"type":"assistant","message":{"content":[{"type":"server_tool_use","id":"1","name":"web_search"}]}}"#,
            "web_search",
        ),
        (
            Provider::Gemini,
            r#"{"type":"tool_use","tool_id":"1","tool_name":"mcp_evil_Read"}"#,
            "mcp_evil_Read",
        ),
        (
            Provider::Codex,
            r#"{"type":"item.started","item":{"id":"1","type":"mcp_tool_call","server":"evil","tool":"Read"}}"#,
            "evil.Read",
        ),
        (
            Provider::Codex,
            r#"{"type":"item.completed","item":{"id":"1","type":"something_new"}}"#,
            "something_new",
        ),
        (
            Provider::OpenCode,
            r#"{"type":"tool_use","part":{"callID":"1","tool":"evil_Read","state":{"status":"completed"}}}"#,
            "evil_Read",
        ),
    ] {
        let native = AgentEvent::Native { id: "1".to_owned(), name: name.to_owned() };
        let mut found = read(provider, line).0;
        found.retain(|event| !matches!(event, AgentEvent::Usage(_)));
        assert_eq!(found, [native], "{line}");
    }
    let reader = r#"{"type":"item.started","item":{"id":"1","type":"mcp_tool_call","server":"codex","tool":"list_mcp_resources"}}"#;
    assert_eq!(read(Provider::Codex, reader).0, []);
}

#[test]
fn the_report_is_bounded() {
    let mut stream = Stream::new(Provider::Gemini);
    let piece = "é".repeat(1024 * 1024);
    let line = format!(r#"{{"type":"message","role":"assistant","content":"{piece}"}}"#);
    for _ in 0..6 {
        stream.line(&line);
    }
    for n in 0..NATIVE_CALLS_MAX + 5 {
        stream.line(&format!(r#"{{"type":"tool_use","tool_id":"{n}","tool_name":"x"}}"#));
    }
    for _ in 0..ERRORS_MAX + 5 {
        stream.line(&format!(r#"{{"type":"error","message":"{}"}}"#, "x".repeat(10_000)));
    }
    let report = stream.end().unwrap_err().report;
    assert!(report.text.len() <= TEXT_BYTES_MAX && report.text_cut);
    assert_eq!(report.native.len(), NATIVE_CALLS_MAX);
    assert_eq!(report.errors.len(), ERRORS_MAX);
    assert!(report.errors.iter().all(|words| words.len() == ERROR_BYTES_MAX));
}

/// The limits of a step rely on these numbers.
#[test]
fn the_work_so_far_is_reported_as_it_grows() {
    for (provider, output, turns) in [
        (Provider::Claude, CLAUDE, 3),
        (Provider::Gemini, GEMINI, 3),
        (Provider::Codex, CODEX, 2),
        (Provider::OpenCode, OPENCODE, 3),
    ] {
        let (events, report) = read(provider, output);
        let usages: Vec<WorkUsage> = events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::Usage(usage) => Some(*usage),
                _ => None,
            })
            .collect();
        let last = usages.last().unwrap();
        assert_eq!(last.turns, turns, "{provider:?}");
        assert_eq!(last.tokens, report.unwrap().tokens.map(|it| it.total), "{provider:?}");
        assert!(usages.is_sorted_by_key(|usage| (usage.turns, usage.tokens)), "{usages:?}");
    }
    let first = |provider, output| {
        let (events, _) = read(provider, output);
        events.into_iter().find_map(|event| match event {
            AgentEvent::Usage(usage) => Some(usage),
            _ => None,
        })
    };
    let early = |tokens, cost_usd| Some(WorkUsage { turns: 1, tokens, cost_usd });
    assert_eq!(first(Provider::Claude, CLAUDE), early(Some(15), None), "before the first call");
    assert_eq!(first(Provider::Gemini, GEMINI), early(None, None));
}

/// Returns an event of the model's API, as Claude passes it on.
fn claude_piece(event: &str, parent: &str) -> String {
    format!(r#"{{"type":"stream_event","event":{event},"parent_tool_use_id":{parent}}}"#)
}

fn claude_text(id: &str, text: &str) -> String {
    let usage = r#"{"input_tokens":10,"output_tokens":1}"#;
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","usage":{usage},"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn texts(lines: &[String]) -> String {
    let (events, _) = read(Provider::Claude, &lines.join("\n"));
    let shown = events.iter().filter_map(|event| match event {
        AgentEvent::TextBegins => Some("|".to_owned()),
        AgentEvent::Text(text) => Some(text.clone()),
        _ => None,
    });
    shown.collect::<Vec<String>>().join(" ")
}

#[test]
fn pieces_of_a_text_are_told_as_they_arrive_and_once() {
    let start =
        claude_piece(r#"{"type":"content_block_start","content_block":{"type":"text"}}"#, "null");
    let delta = |text: &str, parent: &str| {
        let delta = format!(r#"{{"type":"text_delta","text":"{text}"}}"#);
        claude_piece(&format!(r#"{{"type":"content_block_delta","delta":{delta}}}"#), parent)
    };
    let of = |text: &str| delta(text, "null");
    let [hello, world] = [of("Hello "), of("world")];
    for (lines, expected) in [
        (vec![start.clone(), hello.clone()], "| Hello "),
        (
            vec![start.clone(), hello.clone(), world.clone(), claude_text("1", "Hello world")],
            "| Hello  world",
        ),
        // The rest of it is missing.
        (vec![start.clone(), hello.clone(), claude_text("1", "Hello world")], "| Hello  world"),
        // The answer broke off, and another was made.
        (vec![start.clone(), hello.clone(), claude_text("2", "Bye")], "| Hello  | Bye"),
        (
            vec![
                start.clone(),
                hello.clone(),
                start.clone(),
                world.clone(),
                claude_text("2", "world"),
            ],
            "| Hello  | world",
        ),
        (vec![claude_text("1", "one"), claude_text("2", "one")], "| one | one"),
        // An agent within the agent.
        (vec![start.clone(), delta("inner", "\"t1\""), claude_text("1", "outer")], "| outer"),
    ] {
        assert_eq!(texts(&lines), expected, "{lines:?}");
    }
}

#[test]
fn the_output_of_a_message_is_counted_once_it_is_complete() {
    let grows = |output: u32| {
        let usage = format!(r#"{{"output_tokens":{output}}}"#);
        claude_piece(&format!(r#"{{"type":"message_delta","usage":{usage}}}"#), "null")
    };
    let lines =
        [grows(9), claude_text("1", "a"), grows(7), grows(7), claude_text("2", "b"), grows(3)];
    let (events, _) = read(Provider::Claude, &lines.join("\n"));
    let tokens = events.iter().filter_map(|event| match event {
        AgentEvent::Usage(usage) => usage.tokens,
        _ => None,
    });
    assert_eq!(tokens.collect::<Vec<u64>>(), [11, 17, 28, 30]);
}
