//! Counts of a period.

use std::time::Duration;

use domain::tool::Class;
use jiff::Timestamp;

use super::rig::{Rig, Row};
use crate::read::summary::{Counts, Period};
use crate::record::{RecordKind, RecordStatus};

const HOUR_US: i64 = 3_600_000_000;

#[test]
fn a_summary_counts_what_lies_in_its_period() {
    let now = 600_000 * HOUR_US + 1;
    let rows = [
        Row { at_us: now - 1, ..Row::plain() },
        Row { at_us: now - 1, status: RecordStatus::Error, tool: "edit", ..Row::plain() },
        Row {
            at_us: now - HOUR_US / 2,
            status: RecordStatus::Blocked,
            server: "files",
            agent: ("b#1", "main"),
            intent: None,
            class: Some(Class::Destructive),
            ..Row::plain()
        },
        Row { at_us: now - 2 * HOUR_US, ..Row::plain() },
        Row { at_us: now - 26 * HOUR_US, ..Row::plain() },
    ];
    let rig = Rig::new(&rows);
    rig.db.execute("UPDATE activity SET duration_us = number * 1000", []).unwrap();
    let now = Timestamp::from_microsecond(now).unwrap();
    let count = |period| rig.reader.summary(period, now).unwrap().calls;
    assert_eq!(Period::ALL.map(count), [3, 4, 5, 5]);
    let hour = rig.reader.summary(Period::Hour, now).unwrap();
    let statuses = hour.by_status.iter().filter(|(_, calls)| *calls > 0);
    assert_eq!(
        statuses.copied().collect::<Vec<_>>(),
        [(RecordStatus::Success, 1), (RecordStatus::Error, 1), (RecordStatus::Blocked, 1)]
    );
    let github = &hour.by_server[0];
    assert_eq!(
        (&*github.of, github.counts),
        ("github", Counts { calls: 2, errors: 1, blocked: 0 })
    );
    assert_eq!((hour.by_server.len(), hour.by_tool.len()), (2, 3));
    assert_eq!(hour.by_intent[0].counts.calls, 2);
    assert_eq!((&*hour.by_agent[1].of, hour.by_agent[1].counts.blocked), ("b#1", 1));
    assert_eq!(hour.duration_p50, Some(Duration::from_millis(2)));
    assert_eq!(hour.duration_p95, Some(Duration::from_millis(3)));
}

#[test]
fn a_summary_counts_neither_decisions_nor_system_records_as_calls() {
    let rows = RecordKind::ALL.map(|kind| Row { kind, ..Row::plain() });
    let rig = Rig::new(&rows);
    let now = Timestamp::from_microsecond(rows[0].at_us).unwrap();
    assert_eq!(rig.reader.summary(Period::Hour, now).unwrap().calls, 2);
}

#[test]
fn buckets_are_contiguous_and_end_with_the_current_one() {
    let now = 600_000 * HOUR_US + 1;
    let rig = Rig::new(&[
        Row { at_us: now, ..Row::plain() },
        Row { at_us: now - 60_000_000, class: Some(Class::Write), ..Row::plain() },
    ]);
    let now = Timestamp::from_microsecond(now).unwrap();
    for period in Period::ALL {
        let summary = rig.reader.summary(period, now).unwrap();
        let width = summary.bucket_width;
        let starts = summary.buckets.windows(2);
        assert!(starts.clone().all(|pair| pair[0].start + width == pair[1].start));
        let last = summary.buckets.last().unwrap();
        assert!(last.start <= now && now < last.start + width);
        assert_eq!((summary.buckets[0].start, last.start + width), (summary.start, summary.end));
        assert_eq!(last.reads, 1);
        assert_eq!(summary.buckets[summary.buckets.len() - 2].writes, 1);
        assert_eq!(Period::parse(period.as_str()), Some(period));
    }
    let empty = Rig::new(&[]).reader.summary(Period::Day, now).unwrap();
    assert_eq!((empty.calls, empty.duration_p50, empty.by_tool), (0, None, Vec::new()));
}
