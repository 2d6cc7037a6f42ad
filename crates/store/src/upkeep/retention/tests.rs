//! Rounds of retention on ledgers with many records.

use super::super::tally::{self, ExpiredKind};
use super::*;
use crate::database::{connection, schema};
use crate::keys::{self, Keys};

const DAY: i64 = 24 * 3_600_000_000;

/// A ledger in a file, and the time of its test.
struct Ledger {
    db: Connection,
    retention: Retention,
    now: Timestamp,
    folder: tempfile::TempDir,
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
        Keys::open(&folder.path().join(keys::FOLDER), &db).unwrap();
        let retention = Retention::new(&file, Arc::default());
        Ledger { db, retention, now: Timestamp::now(), folder }
    }

    fn token(&self, agent: i64, token: &str) {
        let sql = "INSERT INTO agents (agent, name, client, token) VALUES (?1, ?2, '', ?2)";
        self.db.execute(sql, (agent, token)).unwrap();
    }

    /// Adds records of this age with payloads of this many bytes.
    fn add(&self, count: i64, age_us: i64, payload: i64) {
        self.add_of(1, count, age_us, payload);
    }

    fn add_of(&self, agent: i64, count: i64, age_us: i64, payload: i64) {
        let at = self.now.as_microsecond() - age_us;
        self.db
            .execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
                 INSERT INTO activity (id, changed, chain, type, source, surface, server, tool,
                   agent, started_us, status)
                 SELECT random(), random(), 1, 'tool_call', '', '', '', '', ?3, ?2, 'success'
                 FROM n",
                [count, at, agent],
            )
            .unwrap();
        self.db
            .execute(
                "INSERT INTO payloads (number, arguments)
                 SELECT number, printf('%.*c', ?2, 'x') FROM activity
                 WHERE started_us = ?1 AND agent = ?3 AND ?2 > 0",
                [at, payload, agent],
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

    fn payloads_of(&self, agent: i64) -> i64 {
        self.count(&format!("payloads JOIN activity USING (number) WHERE agent = {agent}"))
    }

    /// Adds steps of a workflow's run that is this old, with outputs of this many bytes.
    fn add_steps(&self, workflow: &str, count: i64, age_us: i64, bytes: i64) {
        let at = self.now.as_microsecond() - age_us;
        let run = "INSERT INTO runs (id, changed, workflow, pid, started_us, status)
                   VALUES (?1, random(), ?1, 1, ?2, 'complete')";
        self.db.execute(run, (workflow, at)).unwrap();
        let steps = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
             INSERT INTO run_steps (run, number, changed, state, kind, attempt, status, started_us,
               sessions, output)
             SELECT ?2, i, random(), 's', 'command', 1, 'complete', ?3 + i, '[]',
               printf('%.*c', ?4, 'x') FROM n";
        let run = self.db.last_insert_rowid();
        self.db.execute(steps, [count, run, at, bytes]).unwrap();
    }

    fn outputs_of(&self, workflow: &str) -> i64 {
        self.count(&format!(
            "run_steps JOIN runs ON runs.number = run
             WHERE workflow = '{workflow}' AND output IS NOT NULL"
        ))
    }

    fn unstated(&self) -> Vec<tally::ExpiredData> {
        let keys = keys::all_public(&self.folder.path().join(keys::FOLDER));
        tally::unstated(&self.db, &keys).unwrap()
    }

    /// Returns what was deleted of each holder.
    fn losses(&self) -> Vec<(ExpiredKind, Option<String>, u64)> {
        let all = self.unstated().into_iter();
        all.map(|one| (one.kind, one.holder, one.count)).collect()
    }

    fn stated(&self) -> Vec<(ExpiredKind, ExpiryReason, u64)> {
        let all = self.unstated();
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
    let span = ledger.unstated()[1].span_us.unwrap();
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
fn a_flood_costs_nobody_else_a_payload() {
    let mut ledger = Ledger::new(Some(RetentionRules { megabytes_max: 4, ..RULES }));
    ledger.token(2, "loud");
    ledger.add(200, 2 * DAY, 3_000);
    ledger.add_of(2, 2_000, DAY / 2, 3_000);
    ledger.round();
    let loud = ledger.payloads_of(2);
    assert!((300..800).contains(&loud), "{loud}");
    assert_eq!(ledger.payloads_of(1), 200, "all of the other");
    let (first, last) = ledger
        .db
        .query_row("SELECT MIN(number), MAX(number) FROM payloads WHERE number > 200", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })
        .unwrap();
    assert_eq!((last, last - first + 1), (2_200, loud), "its newest");
    let lost = u64::try_from(2_000 - loud).unwrap();
    assert_eq!(ledger.losses(), [(ExpiredKind::Payloads, Some("loud".to_owned()), lost)]);
    let stated = &ledger.unstated()[0];
    assert_eq!(stated.bytes, lost * 3_000);
    // What the other adds then takes from the one that holds most.
    ledger.add(100, DAY / 3, 3_000);
    ledger.round();
    assert_eq!(ledger.payloads_of(1), 300);
}

#[test]
fn those_who_hold_the_same_lose_the_same() {
    let mut ledger = Ledger::new(Some(RetentionRules { megabytes_max: 4, ..RULES }));
    ledger.token(2, "other");
    ledger.add(1_000, 2 * DAY, 3_000);
    ledger.add_of(2, 1_000, DAY / 2, 3_000);
    ledger.round();
    for agent in [1, 2] {
        let left = ledger.payloads_of(agent);
        assert!((300..600).contains(&left), "{agent}: {left}");
    }
}

#[test]
fn a_flood_costs_nobody_else_a_record() {
    let mut ledger = Ledger::new(Some(RetentionRules { records_max: 100, ..RULES }));
    ledger.token(2, "loud");
    ledger.add(30, 3 * DAY, 0);
    ledger.add_of(2, 500, 2 * DAY, 0);
    ledger.round();
    assert_eq!(ledger.count("activity WHERE agent = 1"), 30);
    assert_eq!(ledger.count("activity WHERE agent = 2"), 70);
    assert_eq!(ledger.losses(), [(ExpiredKind::Records, Some("loud".to_owned()), 430)]);
    // Records of the last day stay, and no other holder makes up for them.
    ledger.add_of(2, 300, DAY / 2, 0);
    ledger.round();
    assert_eq!(ledger.count("activity WHERE agent = 1"), 30);
    assert_eq!(ledger.count("activity WHERE agent = 2"), 300);
}

#[test]
fn records_without_payloads_cost_nobody_else_a_payload() {
    let mut ledger = Ledger::new(Some(RetentionRules { megabytes_max: 2, ..RULES }));
    ledger.token(2, "loud");
    ledger.add(100, 2 * DAY, 3_000);
    ledger.add_of(2, 20_000, DAY / 2, 0);
    ledger.round();
    assert_eq!((ledger.payloads_of(1), ledger.count("activity")), (100, 20_100));
    assert_eq!(ledger.losses(), []);
    // As soon as they are a day old, they leave.
    ledger.now += SignedDuration::from_hours(24);
    ledger.round();
    assert_eq!(ledger.payloads_of(1), 100);
    assert!(ledger.count("activity") < 20_100);
    assert!(ledger.losses().iter().all(|(_, holder, _)| holder.as_deref() == Some("loud")));
}

#[test]
fn a_workflow_that_puts_out_much_loses_its_own_outputs() {
    let mut ledger = Ledger::new(Some(RetentionRules { megabytes_max: 4, ..RULES }));
    ledger.add(100, 2 * DAY, 3_000);
    ledger.add_steps("quiet", 20, 2 * DAY, 5_000);
    ledger.add_steps("loud", 2_000, DAY / 2, 5_000);
    ledger.round();
    assert_eq!((ledger.payloads_of(1), ledger.outputs_of("quiet")), (100, 20));
    let loud = ledger.outputs_of("loud");
    assert!((100..700).contains(&loud), "{loud}");
    let lost = u64::try_from(2_000 - loud).unwrap();
    assert_eq!(ledger.losses(), [(ExpiredKind::StepOutputs, Some("loud".to_owned()), lost)]);
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
fn nothing_is_deleted_by_a_clock_that_jumped() {
    let limited = RetentionRules { records_max: 10, ..RULES };
    for during_a_round in [false, true] {
        let mut ledger = Ledger::new(Some(limited));
        ledger.add(20, DAY / 2, 0);
        ledger.round();
        let day = |days: i64| SignedDuration::from_hours(24 * days);
        ledger.now += day(1_000);
        if !during_a_round {
            // As the next process that starts.
            clock::examine(&ledger.db, ledger.now).unwrap();
            ledger.retention.began = None;
        }
        ledger.round();
        assert_eq!(ledger.count("activity"), 20, "nothing of the last day is deleted");
        // A day later, by both clocks.
        ledger.retention.began = None;
        ledger.now += day(1);
        ledger.round();
        assert_eq!(ledger.count("activity"), 10, "the limit on their number holds again");
        ledger.retention.began = None;
        ledger.now += day(88);
        ledger.round();
        assert_eq!(ledger.count("activity"), 10, "they are 89 days old");
        ledger.retention.began = None;
        ledger.now += day(2);
        ledger.round();
        assert_eq!(ledger.count("activity"), 0);
    }
}
