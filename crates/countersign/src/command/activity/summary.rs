//! Counts of what was done, as tables.

use serde_json::Value;

use crate::output::{entries, fields, milliseconds, or_dash, table, text};

/// Rows of each table; the JSON holds more.
const ROWS_MAX: usize = 10;

pub(super) fn tables(answer: &Value) -> String {
    let duration = &answer["duration_ms"];
    let head = fields(&[
        ("period", format!("{}, until {}", text(answer, "period"), text(answer, "end"))),
        ("calls", answer["calls"].to_string()),
        ("by status", statuses(&answer["by_status"])),
        (
            "duration",
            format!(
                "{} median, {} p95",
                milliseconds(&duration["p50"]),
                milliseconds(&duration["p95"])
            ),
        ),
    ]);
    let tool = |entry: &Value| format!("{}:{}", text(entry, "server"), text(entry, "tool"));
    let tables = [
        counted(answer, "by_server", "server", |entry| or_dash(&entry["server"])),
        counted(answer, "by_tool", "tool", tool),
        counted(answer, "by_intent", "intent", |entry| or_dash(&entry["intent_type"])),
        counted(answer, "by_agent", "agent", |entry| or_dash(&entry["agent"])),
    ];
    std::iter::once(head).chain(tables.into_iter().flatten()).collect::<Vec<_>>().join("\n\n")
}

fn statuses(counts: &Value) -> String {
    let counts = counts.as_object().into_iter().flatten();
    let seen = counts.filter(|(_, count)| **count != 0);
    let words: Vec<String> = seen.map(|(status, count)| format!("{count} {status}")).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

fn counted(
    answer: &Value,
    list: &str,
    head: &str,
    name: impl Fn(&Value) -> String,
) -> Option<String> {
    let entries = entries(answer, list);
    let row = |entry: &Value| {
        let counts = ["calls", "errors", "blocked"].map(|count| entry[count].to_string());
        std::iter::once(name(entry)).chain(counts).collect()
    };
    let rows: Vec<Vec<String>> = entries.iter().take(ROWS_MAX).map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let table = table(&[head, "calls", "errors", "blocked"], &rows);
    match entries.len().saturating_sub(ROWS_MAX) {
        0 => Some(table),
        more => Some(format!("{table}\n({more} more with -o json)")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_are_tables_and_long_ones_are_cut() {
        let tool = |index: usize| json!({"server": "s", "tool": format!("t{index}"), "calls": 3, "errors": 2, "blocked": 1});
        let answer = json!({"period": "1h", "end": "2026-02-03T12:00:00Z", "calls": 36,
            "by_status": {"success": 30, "error": 6, "blocked": 0},
            "by_server": [{"server": "s", "calls": 36, "errors": 6, "blocked": 0}],
            "by_tool": (0..12).map(tool).collect::<Vec<_>>(), "by_intent": [], "by_agent": [],
            "duration_ms": {"p50": 1.5, "p95": null}});
        let shown = tables(&answer);
        assert!(shown.contains("by status  30 success, 6 error\n"), "{shown}");
        assert!(shown.contains("duration   1.5 ms median, - p95\n"), "{shown}");
        assert!(
            shown.contains("SERVER  CALLS  ERRORS  BLOCKED\ns       36     6       0"),
            "{shown}"
        );
        assert!(shown.ends_with("(2 more with -o json)"), "{shown}");
        assert!(!shown.contains("AGENT"), "{shown}");
    }
}
