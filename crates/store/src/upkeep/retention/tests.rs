//! Rounds of retention on ledgers with many records.

use jiff::SignedDuration;

use super::super::tally::{self, ExpiredKind};
use super::*;
use crate::database::{connection, schema};

const DAY: i64 = 24 * 3_600_000_000;

/// A ledger in a file, and the time of its test.
struct Ledger {
    db: Connection,
    retention: Retention,
    now: Timestamp,
    _folder: tempfile::TempDir,
}

impl Ledger {
    fn new(rules: Option<RetentionRules>) -> Ledger {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(crate::FILE);
        connection::create(&file).unwrap();
        let mut db = connection::writing(&file, domain::config::Durability::Process).unwrap();
        schema::migrate(&mut db).unwrap();
        db.execute("INSERT INTO agents (agent, name, client, token) VALUES (1, 'a', '', 't')", [])
            .unwrap();
        if let Some(rules) = rules {
            rules.keep(&db).unwrap();
        }
        let retention = Retention::new(&file, Arc::default());
        Ledger { db, retention, now: Timestamp::now(), _folder: folder }
    }

    /// Adds records of this age with payloads of this many bytes.
    fn add(&self, count: i64, age_us: i64, payload: i64) {
        let at = self.now.as_microsecond() - age_us;
        self.db
            .execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                 INSERT INTO activity (id, changed, chain, type, source, surface, server, tool,
                   agent, started_us, status)
                 SELECT random(), random(), 1, 'tool_call', '', '', '', '', 1, ?2, 'success'
                 FROM n",
                [count, at],
            )
            .unwrap();
        self.db
            .execute(
                "INSERT INTO payloads (number, arguments)
                 SELECT number, printf('%.*c', ?2, 'x') FROM activity
                 WHERE started_us = ?1 AND ?2 > 0",
                [at, payload],
            )
            .unwrap();
    }

    fn round(&mut self) {
        loop {
            match self.retention.step(&self.db, self.now).unwrap() {
                RetentionStep::More(_) => std::thread::yield_now(),
                RetentionStep::Ended => return self.retention.end_round(Instant::now()),
            }
        }
    }

    fn count(&self, what: &str) -> i64 {
        self.db.query_row(&format!("SELECT COUNT(*) FROM {what}"), [], |row| row.get(0)).unwrap()
    }

    fn stated(&self) -> Vec<(ExpiredKind, ExpiryReason, u64)> {
        let all = tally::unstated(&self.db).unwrap();
        all.iter().map(|one| (one.kind, one.reason, one.count)).collect()
    }
}

const RULES: RetentionRules =
    RetentionRules { days: 90, records_max: 1_000_000, megabytes_max: 1_000, receipt_days: 0 };

#[test]
fn without_rules_of_the_home_nothing_is_deleted() {
    let mut ledger = Ledger::new(None);
    ledger.add(10, 1_000 * DAY, 10);
    ledger.round();
    assert_eq!((ledger.count("activity"), ledger.stated().len()), (10, 0));
}

#[test]
fn old_records_leave_and_are_counted() {
    let mut ledger = Ledger::new(Some(RULES));
    ledger.add(700, 91 * DAY, 10);
    ledger.add(5, 89 * DAY, 10);
    ledger.round();
    assert_eq!((ledger.count("activity"), ledger.count("payloads")), (5, 5));
    assert_eq!(
        ledger.stated(),
        [
            (ExpiredKind::Payloads, ExpiryReason::Age, 700),
            (ExpiredKind::Records, ExpiryReason::Age, 700)
        ]
    );
    let span = tally::unstated(&ledger.db).unwrap()[1].span_us.unwrap();
    let at = ledger.now.as_microsecond() - 91 * DAY;
    assert_eq!(span, (at, at));
}

#[test]
fn a_surplus_leaves_but_for_the_last_day() {
    let mut ledger = Ledger::new(Some(RetentionRules { records_max: 100, ..RULES }));
    ledger.add(150, 2 * DAY, 0);
    ledger.add(80, DAY / 2, 0);
    ledger.round();
    assert_eq!(ledger.count("activity"), 100);
    assert_eq!(ledger.stated(), [(ExpiredKind::Records, ExpiryReason::Number, 130)]);
    ledger.add(300, DAY / 3, 0);
    ledger.round();
    assert_eq!(ledger.count("activity"), 380, "all of the last day");
    let excess = ledger.retention.shares.excess("t");
    assert!(excess.is_some_and(|excess| excess.to_string().starts_with("380 records")));
}

#[test]
fn payloads_leave_for_size_before_any_record() {
    let mut ledger = Ledger::new(Some(RetentionRules { megabytes_max: 4, ..RULES }));
    ledger.add(1_000, 2 * DAY, 3_000);
    ledger.add(1_000, DAY / 2, 3_000);
    ledger.round();
    assert_eq!(ledger.count("activity"), 2_000);
    let payloads = ledger.count("payloads");
    // Two to a page fit into 4 MB; the last step may delete more than it has to.
    assert!((500..900).contains(&payloads), "{payloads}");
    ledger.round();
    assert_eq!(ledger.count("payloads"), payloads, "the free pages do not count");
}

#[test]
fn records_leave_for_size_but_for_the_last_day() {
    let mut ledger = Ledger::new(Some(RetentionRules { megabytes_max: 1, ..RULES }));
    ledger.add(10_000, 2 * DAY, 0);
    ledger.add(10_000, DAY / 2, 0);
    ledger.round();
    assert_eq!(ledger.count("activity"), 10_000, "the last day alone exceeds the limit");
    let excess = ledger.retention.shares.excess("t");
    assert!(excess.is_some_and(|excess| excess.to_string().contains("allows 1 MB for all")));
}

#[test]
fn nothing_is_deleted_while_the_clock_may_be_wrong() {
    let mut ledger = Ledger::new(Some(RULES));
    ledger.add(10, 91 * DAY, 0);
    clock::examine(&ledger.db, ledger.now).unwrap();
    ledger.round();
    assert_eq!(ledger.count("activity"), 10);
    ledger.now += SignedDuration::from_mins(61);
    ledger.round();
    assert_eq!(ledger.count("activity"), 0);
}
