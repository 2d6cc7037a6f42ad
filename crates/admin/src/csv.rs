//! Records as a table for spreadsheets.

use store::read::{Record, RecordedTouch};
use text::visible;

use crate::view::{milliseconds, moment};

const COLUMNS: [&str; 24] = [
    "id",
    "timestamp",
    "type",
    "source",
    "surface",
    "agent",
    "client",
    "token",
    "server_name",
    "tool_name",
    "status",
    "error_code",
    "error_message",
    "duration_ms",
    "intent_type",
    "data_sensitivity",
    "reason",
    "effective_class",
    "target_system",
    "target_resource",
    "session_id",
    "receipt_id",
    "targets",
    "target_basis",
];

pub(crate) fn head() -> String {
    format!("{}\r\n", COLUMNS.join(","))
}

pub(crate) fn line(out: &mut String, record: &Record) {
    let intent = record.intent.as_ref();
    let target = record.target.as_ref();
    let duration = record.duration.map(|duration| milliseconds(duration).to_string());
    let timestamp = moment(record.timestamp);
    let targets = targets(record);
    let cells: [Option<&str>; COLUMNS.len()] = [
        Some(&record.id),
        Some(&timestamp),
        Some(record.kind.as_str()),
        Some(&record.source),
        Some(&record.surface),
        Some(&record.agent.name),
        Some(&record.agent.client),
        Some(&record.agent.token),
        Some(&record.server),
        Some(&record.tool),
        Some(record.status.as_str()),
        record.error_code.as_deref(),
        record.error_message.as_deref(),
        duration.as_deref(),
        intent.and_then(|intent| intent.operation_type.as_deref()),
        intent.and_then(|intent| intent.data_sensitivity.as_deref()),
        intent.and_then(|intent| intent.reason.as_deref()),
        record.effective_class.map(domain::tool::Class::as_str),
        target.map(|target| target.system.as_str()),
        target.map(|target| target.resource.as_str()),
        record.session_id.as_deref(),
        record.receipt_id.as_deref(),
        Some(&targets),
        record.target_basis.as_deref(),
    ];
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_cell(out, cell.unwrap_or_default());
    }
    out.push_str("\r\n");
}

/// Lists all targets in one cell, as `access system resource`.
fn targets(record: &Record) -> String {
    let one = |touch: &RecordedTouch| {
        format!("{} {} {}", touch.access.as_str(), touch.system, touch.resource)
    };
    record.targets.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Writes a cell, with hidden characters visible. One that a spreadsheet would run as a formula is
/// escaped as text.
fn push_cell(out: &mut String, text: &str) {
    let text = visible(text);
    let runs = text.starts_with(['=', '+', '-', '@', '\t']);
    let plain = !runs && !text.contains(['"', ',', '\n']);
    if plain {
        out.push_str(&text);
        return;
    }
    out.push('"');
    if runs {
        out.push('\'');
    }
    out.push_str(&text.replace('"', "\"\""));
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_run_by_a_spreadsheet_or_breaks_its_line() {
        let cell = |text: &str| {
            let mut out = String::new();
            push_cell(&mut out, text);
            out
        };
        assert_eq!(cell("plain text"), "plain text");
        assert_eq!(cell("a,b"), r#""a,b""#);
        assert_eq!(cell("say \"x\"\nand"), "\"say \"\"x\"\"\nand\"");
        assert_eq!(cell("\u{202e}=1\r\u{1b}[1m"), "⟨U+202E⟩=1⟨U+000D⟩⟨U+001B⟩[1m");
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"] {
            assert!(cell(formula).starts_with("\"'"), "{formula:?}");
        }
    }
}
