//! Records for people: one line each, or all details of one.

use admin::view::{ActivityPage, ActivityRecord, CallMetadata, CallingAgent, TouchedResource};
use jiff::Zoned;
use serde_json::Value;
use text::near;

use crate::json::pretty;
use crate::output::status::{spoken, with_code};
use crate::output::{
    cut, fields, local_time, local_times, milliseconds, or_dash, plain, short_id, table,
};

/// The style of record lines.
pub(super) struct RecordStyle {
    pub(super) has_icons: bool,
    pub(super) now: Zoned,
}

pub(super) const COLUMNS: [&str; 8] =
    ["time", "agent", "tool", "intent", "status", "duration", "target", "id"];

/// The width of an agent's name in a table. Names can be of any length; `show` prints them in full.
const AGENT_WIDTH: usize = 32;
const TOOL_WIDTH: usize = 48;
const TARGET_WIDTH: usize = 60;
const WHY_WIDTH: usize = 100;

/// The column before which the reasons of failures are inserted: the id stays last.
const WHY_PLACE: usize = COLUMNS.len() - 1;

/// Lists records; if all of them say what went wrong, with that.
pub(super) fn list(page: &ActivityPage, looks: &RecordStyle) -> String {
    let records = &page.activities;
    if records.is_empty() {
        let near = page.near.as_ref().map_or(&[][..], |near| &near.names);
        return plain(&format!("no matching records{}", near::hint(near)));
    }
    let mut rows: Vec<Vec<String>> = records.iter().map(|record| row(record, looks)).collect();
    let times = local_times(records.iter().map(|record| &*record.timestamp), &looks.now);
    rows.iter_mut().zip(times).for_each(|(row, time)| row[0] = time);
    let whys: Option<Vec<&str>> = records.iter().map(|it| it.error_message.as_deref()).collect();
    let Some(whys) = whys else { return table(&COLUMNS, &rows) };
    let mut head = COLUMNS.to_vec();
    head.insert(WHY_PLACE, "why");
    for (row, why) in rows.iter_mut().zip(whys) {
        row.insert(WHY_PLACE, cut(why, WHY_WIDTH));
    }
    table(&head, &rows)
}

pub(super) fn row(record: &ActivityRecord, looks: &RecordStyle) -> Vec<String> {
    vec![
        local_time(&record.timestamp, &looks.now),
        cut(&or_dash(Some(&record.agent.name)), AGENT_WIDTH),
        cut(&tool(record), TOOL_WIDTH),
        intent(&record.metadata, looks),
        status(record),
        milliseconds(record.duration_ms),
        main_target(record),
        short_id(&record.id),
    ]
}

/// Returns the main target, and the number of others.
fn main_target(record: &ActivityRecord) -> String {
    let main = cut(&target(record.target.as_ref()), TARGET_WIDTH);
    match record.targets.len().saturating_sub(1) {
        0 => main,
        more => format!("{main} (+{more})"),
    }
}

/// Returns the called tool, or the decision and its subject.
fn tool(record: &ActivityRecord) -> String {
    let (server, tool) = (&record.server_name, &record.tool_name);
    let name = match (server.is_empty(), tool.is_empty()) {
        (true, _) => tool.clone(),
        (false, true) => server.clone(),
        (false, false) => format!("{server}:{tool}"),
    };
    match &record.metadata.decision {
        Some(decision) if name.is_empty() => {
            format!("{decision} {}", record.kind.trim_end_matches("_change"))
        }
        Some(decision) => format!("{decision} {name}"),
        None => name,
    }
}

/// Returns the declared class, followed in brackets by the effective class if it differs.
fn intent(metadata: &CallMetadata, looks: &RecordStyle) -> String {
    let intent = metadata.intent.as_ref();
    let Some(declared) = intent.and_then(|intent| intent.operation_type.as_deref()) else {
        return "-".to_owned();
    };
    let word = match metadata.effective_class.as_deref() {
        Some(effective) if effective != declared => format!("{declared} ({effective})"),
        Some(_) | None => declared.to_owned(),
    };
    if looks.has_icons { format!("{} {word}", icon(declared)) } else { word }
}

/// Returns an icon one column wide, so that tables line up. A call with any other word was refused.
fn icon(declared: &str) -> char {
    match declared {
        "read" => '○',
        "write" => '●',
        "destructive" => '▲',
        _ => '?',
    }
}

fn status(record: &ActivityRecord) -> String {
    with_code(&record.status, record.error_code.as_deref())
}

pub(crate) fn target(target: Option<&TouchedResource>) -> String {
    match target {
        None => "-".to_owned(),
        Some(target) => format!("{} {}", target.system, target.resource),
    }
}

pub(super) fn show(record: &ActivityRecord) -> String {
    let metadata = &record.metadata;
    let mut parts = vec![general(record)];
    parts.push(section("intent", &intent_fields(metadata)));
    parts.push(section("agent", &agent_fields(&record.agent)));
    parts.extend(target_section(record));
    parts.push(section("verdict", &verdict_fields(record)));
    parts.push(payload("arguments", record.arguments.as_ref(), metadata.arguments_bytes));
    let response = payload("response", record.response.as_ref(), metadata.response_bytes);
    let is_cut = record.response_truncated == Some(true);
    parts.push(if is_cut {
        format!("{response}\n  (truncated: the rest was not stored)")
    } else {
        response
    });
    parts.join("\n\n")
}

/// Lists the targets with their access, and how they were found; if there are none, why.
fn target_section(record: &ActivityRecord) -> Option<String> {
    let mut lines = Vec::new();
    for touch in &record.targets {
        lines.push((touch.access.as_str(), format!("{} {}", touch.system, touch.resource)));
    }
    lines.extend(record.target_basis.as_ref().map(|basis| ("found by", basis.clone())));
    if record.targets.is_empty() {
        lines = record.target_basis.iter().map(|basis| ("none", basis.clone())).collect();
    }
    (!lines.is_empty()).then(|| section("targets", &lines))
}

fn general(record: &ActivityRecord) -> String {
    let mut lines = vec![
        ("id", record.id.clone()),
        ("time", record.timestamp.clone()),
        ("type", record.kind.clone()),
        ("tool", tool(record)),
        ("status", spoken(&record.status).to_owned()),
        ("duration", milliseconds(record.duration_ms)),
        ("source", format!("{} ({})", record.source, record.surface)),
        ("session", or_dash(record.session_id.as_deref())),
        ("request", or_dash(record.request_id.as_deref())),
        ("receipt", or_dash(record.receipt_id.as_deref())),
        ("trace", or_dash(record.metadata.trace_id.as_deref())),
    ];
    lines
        .extend(record.joined_to.as_ref().map(|id| ("same call", format!("{id} (counted there)"))));
    lines.extend(record.joined_from.iter().map(|id| ("same call", id.clone())));
    fields(&lines)
}

fn intent_fields(metadata: &CallMetadata) -> [(&'static str, String); 5] {
    let intent = metadata.intent.as_ref();
    let unverified = if metadata.unverified { " (unverified)" } else { "" };
    [
        ("operation", or_dash(intent.and_then(|intent| intent.operation_type.as_deref()))),
        ("sensitivity", or_dash(intent.and_then(|intent| intent.data_sensitivity.as_deref()))),
        ("reason", or_dash(intent.and_then(|intent| intent.reason.as_deref()))),
        ("called with", or_dash(metadata.tool_variant.as_deref())),
        ("class", format!("{}{unverified}", or_dash(metadata.effective_class.as_deref()))),
    ]
}

fn agent_fields(agent: &CallingAgent) -> [(&'static str, String); 3] {
    [
        ("name", or_dash(Some(&agent.name))),
        ("client", or_dash(Some(&agent.client))),
        ("token", or_dash(Some(&agent.token))),
    ]
}

fn verdict_fields(record: &ActivityRecord) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("code", or_dash(record.error_code.as_deref())),
        ("message", or_dash(record.error_message.as_deref())),
    ];
    let warnings = record.metadata.warnings.iter();
    lines.extend(warnings.map(|warning| ("warning", warning.clone())));
    lines
}

fn section(name: &str, lines: &[(&str, String)]) -> String {
    format!("{name}\n{}", indented(&fields(lines)))
}

/// Formats the stored JSON, or the text that is left of it.
fn payload(name: &str, value: Option<&Value>, bytes: u64) -> String {
    let shown = match value {
        None | Some(Value::Null) => "(not stored)".to_owned(),
        Some(Value::String(text)) => text.lines().map(plain).collect::<Vec<_>>().join("\n"),
        Some(json) => pretty(json),
    };
    format!("{name} ({bytes} bytes)\n{}", indented(&shown))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use admin::view::NearTargets;
    use serde_json::json;

    use super::*;
    use crate::output::read;

    fn looks(has_icons: bool) -> RecordStyle {
        RecordStyle { has_icons, now: "2026-02-03T12:00:00+00:00[UTC]".parse().unwrap() }
    }

    fn page(activities: Vec<ActivityRecord>) -> ActivityPage {
        let total = activities.len() as u64;
        ActivityPage { activities, next_cursor: None, total, total_is_exact: true, near: None }
    }

    fn record() -> ActivityRecord {
        let record = json!({"id": "0197", "type": "tool_call", "source": "mcp", "surface": "call_tool",
            "server_name": "fs", "tool_name": "drop\u{1b}[1m", "status": "error",
            "error_code": "TIMEOUT", "error_message": "too\nlate", "duration_ms": 12.3,
            "timestamp": "2026-02-03T09:08:07.123Z", "session_id": null, "request_id": "7",
            "agent": {"name": "claude#1", "client": "claude", "token": ""},
            "target": {"system": "fs", "resource": "/a"}, "targets": [
                {"system": "fs", "resource": "/a", "access": "write"},
                {"system": "fs", "resource": "/b", "access": "read"}],
            "target_basis": "config", "joined_to": "0198", "receipt_id": "urn:receipt:x",
            "metadata": {"intent": {"operation_type": "write", "data_sensitivity": null,
                "reason": "why"}, "tool_variant": "call_tool_write",
                "effective_class": "destructive", "unverified": true, "warnings": ["careful"],
                "trace_id": "t", "arguments_bytes": 9, "response_bytes": 5},
            "arguments": {"path": "\u{202e}a"}, "response": "cut\u{1b}\noff",
            "response_truncated": true});
        read(&record).unwrap()
    }

    #[test]
    fn a_line_says_who_did_what_with_which_intent() {
        let line = "09:08:07  claude#1  fs:drop⟨U+001B⟩[1m  write (destructive)  failed TIMEOUT  \
                    12 ms     fs /a (+1)  too late  0197";
        let shown = list(&page(vec![record()]), &looks(false));
        assert_eq!(shown.lines().nth(1), Some(line), "{shown}");
        assert!(list(&page(vec![record()]), &looks(true)).contains("  ● write (destructive)  "));
        let mut undeclared = record();
        undeclared.metadata.intent = None;
        undeclared.target = None;
        undeclared.targets.clear();
        assert_eq!(row(&undeclared, &looks(true))[3], "-");
        assert_eq!(row(&undeclared, &looks(true))[6], "-");
        undeclared.error_message = None;
        undeclared.timestamp = "2026-02-02T09:08:07Z".to_owned();
        let shown = list(&page(vec![record(), undeclared]), &looks(false));
        assert!(!shown.contains("too late"), "not all of them failed: {shown}");
        assert!(
            shown.contains("\n2026-02-03 09:08:07  ") && shown.contains("\n2026-02-02 "),
            "{shown}"
        );
        let mut none = page(vec![]);
        assert_eq!(list(&none, &looks(true)), "no matching records");
        let names = vec!["/srv/a\u{202e}".to_owned(), "/srv/b".to_owned()];
        none.near = Some(NearTargets { field: "under".to_owned(), names });
        let words = "no matching records; did you mean '/srv/a⟨U+202E⟩' or '/srv/b'?";
        assert_eq!(list(&none, &looks(true)), words);
    }

    #[test]
    fn a_record_is_shown_in_full_with_control_characters_escaped() {
        let shown = show(&record());
        for part in [
            "id         0197\n",
            "receipt    urn:receipt:x\ntrace      t\n",
            "intent\n  operation    write\n  sensitivity  -\n  reason       why\n  \
             called with  call_tool_write\n  class        destructive (unverified)\n",
            "agent\n  name    claude#1\n",
            "same call  0198 (counted there)\n",
            "targets\n  write     fs /a\n  read      fs /b\n  found by  config\n",
            "verdict\n  code     TIMEOUT\n  message  too late\n  warning  careful\n",
            "arguments (9 bytes)\n  {\n    \"path\": \"\\u202ea\"\n  }\n",
            "response (5 bytes)\n  cut⟨U+001B⟩\n  off\n  (truncated: the rest was not stored)",
        ] {
            assert!(shown.contains(part), "{part}\n---\n{shown}");
        }
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'));
    }
}
