//! Activity counts as tables.

use admin::view::ActivitySummary;
use serde_json::{Map, Value};

use crate::output::status::spoken;
use crate::output::{fields, milliseconds, or_dash, table};

/// The number of rows in each table; the JSON holds more.
const ROWS_MAX: usize = 10;

pub(super) fn tables(summary: &ActivitySummary) -> String {
    let (median, p95) = (summary.duration_ms.p50, summary.duration_ms.p95);
    let head = fields(&[
        ("period", format!("{}, until {}", summary.period, summary.end)),
        ("calls", summary.calls.to_string()),
        ("by status", statuses(&summary.by_status)),
        ("duration", format!("{} median, {} p95", milliseconds(median), milliseconds(p95))),
    ]);
    let tables = [
        counted("server", &summary.by_server, |of| {
            (or_dash(Some(&of.server)), [of.calls, of.blocked, of.errors])
        }),
        counted("tool", &summary.by_tool, |of| {
            (format!("{}:{}", of.server, of.tool), [of.calls, of.blocked, of.errors])
        }),
        counted("intent", &summary.by_intent, |of| {
            (or_dash(Some(&of.intent_type)), [of.calls, of.blocked, of.errors])
        }),
        counted("agent", &summary.by_agent, |of| {
            (or_dash(Some(&of.agent)), [of.calls, of.blocked, of.errors])
        }),
    ];
    std::iter::once(head).chain(tables.into_iter().flatten()).collect::<Vec<_>>().join("\n\n")
}

fn statuses(counts: &Map<String, Value>) -> String {
    let seen = counts.iter().filter(|(_, count)| **count != 0);
    let words: Vec<String> =
        seen.map(|(status, count)| format!("{count} {}", spoken(status))).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

fn counted<T>(head: &str, groups: &[T], row: impl Fn(&T) -> (String, [u64; 3])) -> Option<String> {
    let cells = |group: &T| {
        let (name, counts) = row(group);
        std::iter::once(name).chain(counts.map(|count| count.to_string())).collect()
    };
    let rows: Vec<Vec<String>> = groups.iter().take(ROWS_MAX).map(cells).collect();
    if rows.is_empty() {
        return None;
    }
    let table = table(&[head, "calls", "refused", "failed"], &rows);
    match groups.len().saturating_sub(ROWS_MAX) {
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
        let answer = json!({"period": "1h", "start": "2026-02-03T11:00:00Z",
            "end": "2026-02-03T12:00:00Z", "calls": 36, "buckets": [], "bucket_seconds": 60,
            "by_status": {"success": 30, "error": 6, "blocked": 0},
            "by_server": [{"server": "s", "calls": 36, "errors": 6, "blocked": 0}],
            "by_tool": (0..12).map(tool).collect::<Vec<_>>(), "by_intent": [], "by_agent": [],
            "duration_ms": {"p50": 1.5, "p95": null}});
        let shown = tables(&crate::output::read(&answer).unwrap());
        assert!(shown.contains("by status  30 success, 6 failed\n"), "{shown}");
        assert!(shown.contains("duration   1.5 ms median, - p95\n"), "{shown}");
        assert!(
            shown.contains("SERVER  CALLS  REFUSED  FAILED\ns       36     0        6"),
            "{shown}"
        );
        assert!(shown.ends_with("(2 more with -o json)"), "{shown}");
        assert!(!shown.contains("AGENT"), "{shown}");
    }
}
