//! A query that an index can answer does not scan the table.

use domain::tool::Class;
use jiff::Timestamp;
use rusqlite::params_from_iter;

use super::rig::{Rig, Row};
use crate::read::contention::{Desk, TOUCHES, TOUCHES_BETWEEN};
use crate::read::search::{Effort, Search};
use crate::read::{RecordFilter, TouchAccess};
use crate::record::RecordStatus;

fn plan(rig: &Rig, sql: &str, search: &Search, more: usize) -> String {
    let mut statement = rig.db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let values = search.conditions.values().iter().cloned();
    let values = values.chain(std::iter::repeat_n(1.into(), more));
    let lines = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3));
    lines.unwrap().map(Result::unwrap).collect::<Vec<_>>().join("\n")
}

fn filters() -> Vec<(&'static str, &'static str, RecordFilter)> {
    let text = |text: &str| Some(text.to_owned());
    let none = RecordFilter::default;
    let time = Some(Timestamp::from_microsecond(1).unwrap());
    let mut filters = vec![
        ("activity_intent", "intent", RecordFilter { intent_type: text("read"), ..none() }),
        ("activity_agent", "agent", RecordFilter { agent: text("claude-code#1"), ..none() }),
        (
            "activity_agent",
            "agent's sessions",
            RecordFilter { agent: text("claude-code"), ..none() },
        ),
        ("touches", "system", RecordFilter { target_system: text("files"), ..none() }),
        ("touches", "resource", RecordFilter { target_resource: text("/a"), ..none() }),
        ("activity_tool", "server", RecordFilter { server: text("github"), ..none() }),
        ("activity_tool", "tool", RecordFilter { tool: text("get_issue"), ..none() }),
        ("activity_session", "session", RecordFilter { session_id: text("s1"), ..none() }),
        ("activity_started", "start", RecordFilter { start: time, ..none() }),
        (
            "activity_started",
            "range",
            RecordFilter { start: time, end: Some(Timestamp::MAX), ..none() },
        ),
        (
            "activity_tool",
            "server and tool",
            RecordFilter { server: text("github"), tool: text("get_issue"), ..none() },
        ),
        (
            "touches",
            "target",
            RecordFilter { target_system: text("files"), target_resource: text("/a"), ..none() },
        ),
        ("touches", "folder", RecordFilter { under: text("/"), ..none() }),
        ("touches", "pattern", RecordFilter { target_resource: text("/*"), ..none() }),
        (
            "touches",
            "folder of a system, and around it",
            RecordFilter {
                target_system: text("files"),
                under: text("/a"),
                containers: true,
                access: Some(TouchAccess::Write),
                start: time,
                ..none()
            },
        ),
        (
            "activity_intent",
            "intent and words",
            RecordFilter { intent_type: text("read"), text: text("issue"), ..none() },
        ),
        (
            "activity_unsuccessful",
            "refused destructive calls",
            RecordFilter {
                intent_type: text("read"),
                status: Some(RecordStatus::Blocked),
                ..none()
            },
        ),
    ];
    for status in RecordStatus::ALL.into_iter().filter(|status| *status != RecordStatus::Success) {
        let filter = RecordFilter { status: Some(status), ..none() };
        filters.push(("activity_unsuccessful", status.as_str(), filter));
    }
    filters
}

#[test]
fn filters_use_their_index() {
    let rows = [
        Row { target: Some(("files", "/a")), class: Some(Class::Write), ..Row::plain() },
        Row { agent: ("claude-code#2", "main"), status: RecordStatus::Error, ..Row::plain() },
    ];
    let rig = Rig::new(&rows);
    for (index, name, filter) in filters() {
        let search = filter.search(&rig.db, Effort::USUAL).unwrap().expect(name);
        let count = search.conditions.select("COUNT(*)", &search.from, "");
        for plan in [plan(&rig, &search.page_sql(), &search, 3), plan(&rig, &count, &search, 0)] {
            assert!(plan.contains(index), "{name}: {plan}");
            assert!(!plan.contains("SCAN activity"), "{name}: {plan}");
            assert!(name == "system" || !plan.contains("(system=?)"), "{name}: {plan}");
            assert!(index != "touches" || !plan.contains("SCAN targets"), "{name}: {plan}");
        }
    }
}

/// Without other conditions, counting does not touch the table at all.
#[test]
fn a_single_filter_is_counted_in_its_index() {
    let rig = Rig::new(&[Row { target: Some(("files", "/a")), ..Row::plain() }]);
    for (_, name, filter) in filters() {
        let is_single = !matches!(
            name,
            "intent and words" | "refused destructive calls" | "folder of a system, and around it"
        );
        if !is_single {
            continue;
        }
        let search = filter.search(&rig.db, Effort::USUAL).unwrap();
        let Some(search) = search else { continue };
        if matches!(name, "system" | "resource" | "target" | "folder" | "pattern") {
            assert_eq!(search.known_total, Some(1), "{name} is counted among the touches");
            continue;
        }
        let plan = plan(&rig, &search.conditions.select("COUNT(*)", &search.from, ""), &search, 0);
        assert!(plan.contains("COVERING INDEX activity_"), "{name}: {plan}");
    }
}

#[test]
fn records_in_order_of_their_number_are_not_sorted() {
    let rig = Rig::new(&[Row { status: RecordStatus::Error, ..Row::plain() }]);
    for (_, name, filter) in filters() {
        let is_ordered = matches!(
            name,
            "intent" | "agent" | "session" | "server and tool" | "error" | "blocked" | "pending"
        );
        if let Some(search) = filter.search(&rig.db, Effort::USUAL).unwrap().filter(|_| is_ordered)
        {
            let plan = plan(&rig, &search.page_sql(), &search, 3);
            assert!(!plan.contains("B-TREE"), "{name}: {plan}");
            assert!(plan.contains("rowid"), "{name}: {plan}");
        }
    }
}

#[test]
fn touches_come_from_their_index_in_order() {
    let rig = Rig::new(&[]);
    let _desk = Desk::set_up(&rig.db).unwrap();
    let search = RecordFilter::default().search(&rig.db, Effort::USUAL).unwrap().unwrap();
    for (sql, values) in [(TOUCHES, 1), (TOUCHES_BETWEEN, 3)] {
        let plan = plan(&rig, sql, &search, values);
        assert!(plan.contains("SEARCH touches USING PRIMARY KEY"), "{plan}");
        assert!(!plan.contains("B-TREE"), "{plan}");
    }
}
