//! Records for people: a line each, or all parts of one.

use jiff::Zoned;
use serde_json::Value;

use crate::output::{
    cut, entries, fields, local_time, milliseconds, or_dash, plain, pretty, table, text,
};

/// How lines look to whoever reads them.
pub(super) struct Looks {
    pub(super) has_icons: bool,
    pub(super) now: Zoned,
}

pub(super) const COLUMNS: [&str; 8] =
    ["time", "agent", "tool", "intent", "status", "duration", "target", "id"];

/// Names of others can be as long as they like; `show` has all of them.
const AGENT_WIDTH: usize = 32;
const TOOL_WIDTH: usize = 48;
const TARGET_WIDTH: usize = 60;

pub(super) fn list(answer: &Value, looks: &Looks) -> String {
    let rows: Vec<Vec<String>> =
        entries(answer, "activities").iter().map(|record| row(record, looks)).collect();
    if rows.is_empty() {
        return "nothing recorded that fits".to_owned();
    }
    table(&COLUMNS, &rows)
}

pub(super) fn row(record: &Value, looks: &Looks) -> Vec<String> {
    vec![
        local_time(&text(record, "timestamp"), &looks.now),
        cut(&or_dash(&record["agent"]["name"]), AGENT_WIDTH),
        cut(&tool(record), TOOL_WIDTH),
        intent(record, looks),
        status(record),
        milliseconds(&record["duration_ms"]),
        cut(&target(record), TARGET_WIDTH),
        text(record, "id"),
    ]
}

/// The tool that was called, or what somebody decided about what.
fn tool(record: &Value) -> String {
    let (server, tool) = (text(record, "server_name"), text(record, "tool_name"));
    let name = match (server.is_empty(), tool.is_empty()) {
        (true, _) => tool,
        (false, true) => server,
        (false, false) => format!("{server}:{tool}"),
    };
    match record["metadata"]["decision"].as_str() {
        Some(decision) if name.is_empty() => {
            let kind = text(record, "type");
            format!("{decision} {}", kind.trim_end_matches("_change"))
        }
        Some(decision) => format!("{decision} {name}"),
        None => name,
    }
}

/// What was declared, and in brackets what it was taken for where that is something else.
fn intent(record: &Value, looks: &Looks) -> String {
    let metadata = &record["metadata"];
    let Some(declared) = metadata["intent"]["operation_type"].as_str() else {
        return "-".to_owned();
    };
    let word = match metadata["effective_class"].as_str() {
        Some(effective) if effective != declared => format!("{declared} ({effective})"),
        Some(_) | None => declared.to_owned(),
    };
    if looks.has_icons { format!("{} {word}", icon(declared)) } else { word }
}

/// One column wide, so that tables line up. Anything else than the three words was refused.
fn icon(declared: &str) -> char {
    match declared {
        "read" => '○',
        "write" => '●',
        "destructive" => '▲',
        _ => '?',
    }
}

fn status(record: &Value) -> String {
    match record["error_code"].as_str() {
        Some(code) => format!("{} {code}", text(record, "status")),
        None => text(record, "status"),
    }
}

fn target(record: &Value) -> String {
    match &record["target"] {
        Value::Null => "-".to_owned(),
        target => format!("{} {}", text(target, "system"), text(target, "resource")),
    }
}

pub(super) fn show(record: &Value) -> String {
    let metadata = &record["metadata"];
    let mut parts = vec![general(record)];
    parts.push(section("intent", &intent_fields(metadata)));
    parts.push(section("agent", &agent_fields(record)));
    let target = &record["target"];
    if !target.is_null() {
        let lines = [("system", text(target, "system")), ("resource", text(target, "resource"))];
        parts.push(section("target", &lines));
    }
    parts.push(section("verdict", &verdict_fields(record)));
    parts.push(payload("arguments", &record["arguments"], &metadata["arguments_bytes"]));
    let response = payload("response", &record["response"], &metadata["response_bytes"]);
    let is_cut = record["response_truncated"] == true;
    parts.push(if is_cut { format!("{response}\n  (cut: no more is kept)") } else { response });
    parts.join("\n\n")
}

fn general(record: &Value) -> String {
    fields(&[
        ("id", text(record, "id")),
        ("time", text(record, "timestamp")),
        ("type", text(record, "type")),
        ("tool", tool(record)),
        ("status", text(record, "status")),
        ("duration", milliseconds(&record["duration_ms"])),
        ("source", format!("{} ({})", text(record, "source"), text(record, "surface"))),
        ("session", or_dash(&record["session_id"])),
        ("request", or_dash(&record["request_id"])),
        ("receipt", or_dash(&record["receipt_id"])),
        ("trace", or_dash(&record["metadata"]["trace_id"])),
    ])
}

fn intent_fields(metadata: &Value) -> [(&'static str, String); 5] {
    let intent = &metadata["intent"];
    let unverified = if metadata["unverified"] == true { " (unverified)" } else { "" };
    [
        ("operation", or_dash(&intent["operation_type"])),
        ("sensitivity", or_dash(&intent["data_sensitivity"])),
        ("reason", or_dash(&intent["reason"])),
        ("called with", or_dash(&metadata["tool_variant"])),
        ("class", format!("{}{unverified}", or_dash(&metadata["effective_class"]))),
    ]
}

fn agent_fields(record: &Value) -> [(&'static str, String); 3] {
    let agent = &record["agent"];
    [
        ("name", or_dash(&agent["name"])),
        ("client", or_dash(&agent["client"])),
        ("token", or_dash(&agent["token"])),
    ]
}

fn verdict_fields(record: &Value) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("code", or_dash(&record["error_code"])),
        ("message", or_dash(&record["error_message"])),
    ];
    let warnings = entries(&record["metadata"], "warnings").iter().filter_map(Value::as_str);
    lines.extend(warnings.map(|warning| ("warning", warning.to_owned())));
    lines
}

fn section(name: &str, lines: &[(&str, String)]) -> String {
    format!("{name}\n{}", indented(&fields(lines)))
}

/// JSON as it is kept, or the text that is left of it.
fn payload(name: &str, value: &Value, bytes: &Value) -> String {
    let shown = match value {
        Value::Null => "(not kept)".to_owned(),
        Value::String(text) => text.lines().map(plain).collect::<Vec<_>>().join("\n"),
        json => pretty(json),
    };
    format!("{name} ({} bytes)\n{}", bytes.as_u64().unwrap_or_default(), indented(&shown))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn looks(has_icons: bool) -> Looks {
        Looks { has_icons, now: "2026-02-03T12:00:00+00:00[UTC]".parse().unwrap() }
    }

    fn record() -> Value {
        json!({"id": "0197", "type": "tool_call", "source": "mcp", "surface": "call_tool",
            "server_name": "fs", "tool_name": "drop\u{1b}[1m", "status": "error",
            "error_code": "TIMEOUT", "error_message": "too\nlate", "duration_ms": 12.3,
            "timestamp": "2026-02-03T09:08:07.123Z", "session_id": null, "request_id": "7",
            "agent": {"name": "claude#1", "client": "claude", "token": ""},
            "target": {"system": "fs", "resource": "/a"}, "receipt_id": "urn:receipt:x",
            "metadata": {"intent": {"operation_type": "write", "data_sensitivity": null,
                "reason": "why"}, "tool_variant": "call_tool_write",
                "effective_class": "destructive", "unverified": true, "warnings": ["careful"],
                "trace_id": "t", "arguments_bytes": 9, "response_bytes": 5},
            "arguments": {"path": "\u{202e}a"}, "response": "cut\u{1b}\noff",
            "response_truncated": true})
    }

    #[test]
    fn a_line_says_who_did_what_with_which_intent() {
        let line = "09:08:07  claude#1  fs:drop\u{fffd}[1m  write (destructive)  error TIMEOUT  \
                    12 ms     fs /a   0197";
        let answer = json!({"activities": [record()]});
        let shown = list(&answer, &looks(false));
        assert_eq!(shown.lines().nth(1), Some(line), "{shown}");
        assert!(list(&answer, &looks(true)).contains("  ● write (destructive)  "));
        let mut undeclared = record();
        undeclared["metadata"].as_object_mut().unwrap().remove("intent");
        undeclared["target"] = Value::Null;
        assert_eq!(row(&undeclared, &looks(true))[3], "-");
        assert_eq!(row(&undeclared, &looks(true))[6], "-");
        assert_eq!(list(&json!({"activities": []}), &looks(true)), "nothing recorded that fits");
    }

    #[test]
    fn one_record_is_shown_whole_and_nothing_of_it_is_obeyed() {
        let shown = show(&record());
        for part in [
            "id        0197\n",
            "receipt   urn:receipt:x\ntrace     t\n",
            "intent\n  operation    write\n  sensitivity  -\n  reason       why\n  \
             called with  call_tool_write\n  class        destructive (unverified)\n",
            "agent\n  name    claude#1\n",
            "target\n  system    fs\n  resource  /a\n",
            "verdict\n  code     TIMEOUT\n  message  too late\n  warning  careful\n",
            "arguments (9 bytes)\n  {\n    \"path\": \"\\u202ea\"\n  }\n",
            "response (5 bytes)\n  cut\u{fffd}\n  off\n  (cut: no more is kept)",
        ] {
            assert!(shown.contains(part), "{part}\n---\n{shown}");
        }
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'));
    }
}
