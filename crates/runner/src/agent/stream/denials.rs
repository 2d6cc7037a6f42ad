//! Calls of a program's own tools that it denied are no bypass; calls that it made are, whatever
//! their output says.

use serde_json::{Value, json};

use super::*;

/// Returns whether the one native call in these events counts as denied.
fn is_denied(provider: Provider, events: &[Value]) -> bool {
    let mut stream = Stream::new(provider);
    for event in events {
        stream.line(&event.to_string());
    }
    let report = match stream.end() {
        Ok(report) => report,
        Err(failed) => *failed.report,
    };
    let [call] = &report.native[..] else { panic!("{:?}", report.native) };
    call.refused
}

#[test]
fn claude_denies_by_the_first_words_of_a_result() {
    let call = json!({"type": "assistant", "message": {"content": [
        {"type": "tool_use", "id": "c", "name": "Bash", "input": {}},
    ]}});
    let answered = |content: Value, is_error: bool| {
        let block = json!({
            "type": "tool_result", "tool_use_id": "c", "content": content, "is_error": is_error,
        });
        json!({"type": "user", "message": {"content": [block]}})
    };
    for (content, is_error, denied) in [
        (json!("<tool_use_error>Error: No such tool available: Bash</tool_use_error>"), true, true),
        (json!("Error: No such tool available: Bash."), true, true),
        (json!([{"type": "text", "text": "Permission to use Bash has been denied."}]), true, true),
        (
            json!("Claude requested permissions to use Bash, but you haven't granted it yet."),
            true,
            true,
        ),
        (json!("Exit code 1\nNo such tool available: Bash"), true, false),
        (json!("Exit code 1\nPermission to use Bash has been denied."), true, false),
        (json!("No such tool available: Bash"), false, false),
    ] {
        let events = [call.clone(), answered(content.clone(), is_error)];
        assert_eq!(is_denied(Provider::Claude, &events), denied, "{content}");
    }
}

#[test]
fn gemini_denies_by_the_type_of_an_error() {
    let call = json!({"type": "tool_use", "tool_id": "c", "tool_name": "run_shell_command"});
    for (error, denied) in [
        ("tool_not_registered", true),
        ("policy_violation", true),
        ("shell_execute_error", false),
        ("permission_denied", false),
    ] {
        let result = json!({"type": "tool_result", "tool_id": "c", "error": {"type": error}});
        assert_eq!(is_denied(Provider::Gemini, &[call.clone(), result]), denied, "{error}");
    }
}

#[test]
fn codex_denies_by_the_status_of_an_item() {
    for (status, denied) in [("declined", true), ("failed", false), ("completed", false)] {
        let item = json!({"id": "c", "type": "command_execution", "status": status});
        let event = json!({"type": "item.completed", "item": item});
        assert_eq!(is_denied(Provider::Codex, &[event]), denied, "{status}");
    }
}

#[test]
fn opencode_denies_by_the_first_words_of_an_error() {
    for (error, denied) in [
        ("Model tried to call unavailable tool 'bash'. No tools are available.", true),
        ("The user has specified a rule which prevents you from using this tool", true),
        ("The user rejected permission to use this specific tool call.", true),
        ("exit 1: Model tried to call unavailable tool 'bash'", false),
    ] {
        let part = json!({"callID": "c", "tool": "bash", "state": {"error": error}});
        let event = json!({"type": "tool_use", "part": part});
        assert_eq!(is_denied(Provider::OpenCode, &[event]), denied, "{error}");
    }
}
