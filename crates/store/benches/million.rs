//! The cost of queries in a ledger of a million records: `cargo bench -p store --bench million`.
//! Medians of several runs, with the file warm in the page cache. Next to the elapsed time is the
//! processor time, which other work on the machine hardly affects.

use std::path::Path;
use std::time::{Duration, Instant};

use domain::tool::Class;
use jiff::Timestamp;
use rusqlite::Connection;
use store::read::contention::ContentionFilter;
use store::read::{IdKind, Page, Period, Reader, RecordDetail, RecordFilter, TouchAccess};
use store::{FILE, RecordStatus, Store};
use touch::contention::{ContainerMeetings, ContentionKind};

const RECORDS: i64 = 1_000_000;
const AGENTS: i64 = 20;
const TARGETS: i64 = 10_000;
const RUNS: usize = 7;

/// A record every two and a half seconds: a month of them.
const EVERY_US: i64 = 2_592_000;
const NOW_US: i64 = 1_800_000_000_000_000;

fn main() {
    // `cargo test --benches` only checks that it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary folder");
    fill(home.path());
    let reader = Reader::open(&home.path().join(FILE)).expect("the ledger that was just made");
    say(&format!("| question of {RECORDS} records | clock | processor | found | target |"));
    say("|---|---|---|---|---|");
    filters(&reader);
    others(&reader);
}

#[allow(clippy::print_stdout, reason = "the table is what the program is for")]
fn say(line: &str) {
    println!("{line}");
}

/// Runs a query several times; its result is the number of items found. Command-line words select
/// among the queries.
fn measure(name: &str, target_ms: Option<f64>, mut ask: impl FnMut() -> u64) {
    let mut wanted = std::env::args().skip(1).filter(|word| !word.starts_with("--")).peekable();
    if wanted.peek().is_some() && !wanted.any(|word| name.contains(&word)) {
        return;
    }
    let mut found = ask();
    let (mut clock_ms, mut processor_ms) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let (begun, worked) = (Instant::now(), worked_ms());
        found = ask();
        clock_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        processor_ms.push(worked_ms() - worked);
    }
    let (clock, processor) = (median(clock_ms), median(processor_ms));
    let target = target_ms.map_or(String::from("–"), |target| format!("{target:.0} ms"));
    say(&format!("| {name} | {clock:.1} ms | {processor:.1} ms | {found} | {target} |"));
}

fn median(mut times_ms: Vec<f64>) -> f64 {
    times_ms.sort_by(f64::total_cmp);
    times_ms[times_ms.len() / 2]
}

/// Returns the processor time of this thread so far, where Linux reports it.
fn worked_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let worked_ns = text.split(' ').next().and_then(|word| word.parse().ok());
    worked_ns.unwrap_or(f64::NAN) / 1e6
}

fn filters(reader: &Reader) {
    let text = |text: &str| Some(text.to_owned());
    let none = RecordFilter::default;
    let ago = |hours: i64| Timestamp::from_microsecond(NOW_US - hours * 3_600_000_000).ok();
    let indexed = [
        ("everything", none()),
        ("intent read (70 %)", RecordFilter { intent_type: text("read"), ..none() }),
        ("intent destructive (5 %)", RecordFilter { intent_type: text("destructive"), ..none() }),
        ("agent, one session", RecordFilter { agent: text("agent3#1"), ..none() }),
        ("agent, four sessions", RecordFilter { agent: text("agent3"), ..none() }),
        ("token of every agent", RecordFilter { agent: text("main"), ..none() }),
        (
            "target",
            RecordFilter {
                target_system: text("server7"),
                target_resource: text("/project/7/4"),
                ..none()
            },
        ),
        ("target's system", RecordFilter { target_system: text("server7"), ..none() }),
        ("folder of 200 resources", RecordFilter { under: text("/project/7"), ..none() }),
        (
            "resource and its containers",
            RecordFilter { target_resource: text("/project/7/4"), containers: true, ..none() },
        ),
        ("pattern in a folder", RecordFilter { target_resource: text("/project/7/*4"), ..none() }),
        ("server", RecordFilter { server: text("server7"), ..none() }),
        ("tool", RecordFilter { tool: text("tool7"), ..none() }),
        (
            "server and tool",
            RecordFilter { server: text("server7"), tool: text("tool7"), ..none() },
        ),
        ("status error", RecordFilter { status: Some(RecordStatus::Error), ..none() }),
        ("session", RecordFilter { session_id: text("session3"), ..none() }),
        ("last hour", RecordFilter { start: ago(1), ..none() }),
        ("last day", RecordFilter { start: ago(24), ..none() }),
        ("a day a week ago", RecordFilter { start: ago(192), end: ago(168), ..none() }),
        ("all time", RecordFilter { start: ago(10_000), ..none() }),
    ];
    for (name, filter) in indexed {
        list(reader, name, Some(50.0), &filter);
    }
    let combined = [
        (
            "errors of one agent",
            RecordFilter { agent: text("agent3#1"), status: Some(RecordStatus::Error), ..none() },
        ),
        (
            "destructive, errors",
            RecordFilter {
                intent_type: text("destructive"),
                status: Some(RecordStatus::Error),
                ..none()
            },
        ),
        (
            "server in the last day",
            RecordFilter { server: text("server7"), start: ago(24), ..none() },
        ),
        (
            "intent read, class write",
            RecordFilter {
                intent_type: text("read"),
                effective_class: Some(Class::Write),
                ..none()
            },
        ),
        ("pattern of any folder", RecordFilter { target_resource: text("*/77"), ..none() }),
        ("folder of everything", RecordFilter { under: text("/project"), ..none() }),
        (
            "folder of everything in the last day",
            RecordFilter { under: text("/project"), start: ago(24), ..none() },
        ),
        (
            "access delete in the last week",
            RecordFilter { access: Some(TouchAccess::Delete), start: ago(168), ..none() },
        ),
        ("access delete", RecordFilter { access: Some(TouchAccess::Delete), ..none() }),
        ("access unknown", RecordFilter { access: Some(TouchAccess::Unknown), ..none() }),
        ("request id (no index)", RecordFilter { request_id: text("777777"), ..none() }),
        ("words that are frequent", RecordFilter { text: text("tool7"), ..none() }),
        ("words that are nowhere", RecordFilter { text: text("xyzzy"), ..none() }),
    ];
    for (name, filter) in combined {
        list(reader, name, None, &filter);
    }
}

fn list(reader: &Reader, name: &str, target_ms: Option<f64>, filter: &RecordFilter) {
    measure(name, target_ms, || {
        let page = Page::first(50);
        reader.activity(filter, &page).expect("an answer").total.count()
    });
}

fn others(reader: &Reader) {
    let count = |len: usize| u64::try_from(len).expect("a count");
    measure("contention", Some(300.0), || {
        count(reader.contention(&ContentionFilter::default()).expect("a graph").edges_total)
    });
    let week = Timestamp::from_microsecond(NOW_US - 7 * 24 * 3_600 * 1_000_000).ok();
    let recent = ContentionFilter { start: week, ..ContentionFilter::default() };
    measure("contention of the last week", Some(300.0), || {
        count(reader.contention(&recent).expect("a graph").edges_total)
    });
    let stale =
        ContentionFilter { kind: Some(ContentionKind::StaleRead), ..ContentionFilter::default() };
    measure("contention, stale reads", Some(300.0), || {
        count(reader.contention(&stale).expect("a graph").edges_total)
    });
    let system =
        ContentionFilter { system: Some("server7".to_owned()), ..ContentionFilter::default() };
    measure("contention in one system", Some(300.0), || {
        count(reader.contention(&system).expect("a graph").edges_total)
    });
    let containers = ContentionFilter { containers: ContainerMeetings::Included, ..recent.clone() };
    measure("contention of the last week, with containers", None, || {
        count(reader.contention(&containers).expect("a graph").edges_total)
    });
    let now = Timestamp::from_microsecond(NOW_US - 1).expect("a time");
    for period in Period::ALL {
        measure(&format!("summary of {}", period.as_str()), None, || {
            reader.summary(period, now).expect("a summary").calls
        });
    }
    measure("record by id", None, || {
        u64::from(reader.record("id-500000").expect("an answer").is_some())
    });
    measure("record by the end of its id", None, || {
        count(reader.ids(IdKind::Record, "-500000").expect("an answer").len())
    });
    measure("session by its end", None, || {
        count(reader.ids(IdKind::Session, "on1999").expect("an answer").len())
    });
    measure("names near to an unknown one", None, || {
        let filter =
            RecordFilter { under: Some("/projects/7".to_owned()), ..RecordFilter::default() };
        count(reader.near_targets(&filter).expect("an answer").map_or(0, |near| near.names.len()))
    });
    measure("100 changes", None, || {
        count(reader.changes_after(RECORDS - 100, 1_000).expect("changes").len())
    });
    measure("export of 50,000 errors", None, || {
        let filter = RecordFilter { status: Some(RecordStatus::Error), ..RecordFilter::default() };
        count(reader.records(filter, RecordDetail::Brief).filter(Result::is_ok).count())
    });
}

/// Fills a ledger as a month of hard use would, in one go.
fn fill(home: &Path) {
    let begun = Instant::now();
    drop(Store::open(home, &domain::config::Ledger::default()).expect("a new ledger"));
    let mut db = Connection::open(home.join(FILE)).expect("the ledger");
    db.busy_timeout(Duration::from_secs(10)).expect("a timeout");
    db.pragma_update(None, "cache_size", -200_000).expect("a large cache");
    let transaction = db.transaction().expect("a transaction");
    for (sql, rows) in [(AGENT_ROWS, AGENTS), (TARGET_ROWS, TARGETS)] {
        transaction.execute(sql, [rows]).expect("rows");
    }
    transaction.execute(ACTIVITY_ROWS, [RECORDS, NOW_US, EVERY_US]).expect("a million rows");
    transaction.execute(TOUCH_ROWS, []).expect("three million rows");
    transaction.commit().expect("a commit");
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
    say(&format!("{RECORDS} records written in {:.0} s\n", begun.elapsed().as_secs_f64()));
}

/// Five programs with four sessions each.
const AGENT_ROWS: &str = "
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
INSERT INTO agents (agent, name, client, token)
SELECT i + 1, 'agent' || (i / 4) || '#' || (i % 4), 'agent' || (i / 4), 'main' FROM n";

/// Two hundred resources in each of fifty systems.
const TARGET_ROWS: &str = "
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
INSERT INTO targets (target, system, resource)
SELECT i + 1, 'server' || (i % 50), '/project/' || (i % 50) || '/' || (i / 50) FROM n";

/// Three touches of each record: its target, and two others of the same system. One in fifty is
/// unknown.
const TOUCH_ROWS: &str = "
WITH more (step) AS (VALUES (0), (50), (100))
INSERT INTO touches (target, started_us, who, number)
SELECT 1 + (target - 1 + step) % 10000, started_us,
  agent * 4 + CASE WHEN number % 50 = 0 THEN 2 ELSE effective_class <> 'read' END, number
FROM activity JOIN more ORDER BY 1, 2";

/// Spread by multiplication, the same in every run: twenty tools of fifty servers, 5 % errors, 2 %
/// refusals.
const ACTIVITY_ROWS: &str = "
WITH RECURSIVE
  n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1),
  spread (i, a, b, c) AS (
    SELECT i, (i * 2654435761 & 0xffffffff) >> 8, (i * 2246822519 & 0xffffffff) >> 8,
      (i * 3266489917 & 0xffffffff) >> 8 FROM n)
INSERT INTO activity (number, id, changed, chain, type, source, surface, server, tool, agent,
  session_id, request_id, started_us, duration_us, status, error_message, tool_variant,
  intent_type, data_sensitivity, reason, effective_class, target, receipt_id, arguments_bytes,
  response_bytes)
SELECT i, 'id-' || i, i, 1, 'tool_call', 'mcp', 'discovery', 'server' || (a % 50),
  'tool' || (b % 20), 1 + c % 20, 'session' || (i / 500), i, ?2 - (?1 - i) * ?3 - ?3,
  1000 + b % 90000,
  CASE WHEN c % 100 < 93 THEN 'success' WHEN c % 100 < 98 THEN 'error' ELSE 'blocked' END,
  CASE WHEN c % 100 >= 93 THEN 'it did not work out this time' END,
  'call_tool_read',
  CASE WHEN b % 100 < 70 THEN 'read' WHEN b % 100 < 95 THEN 'write' ELSE 'destructive' END,
  'unknown', 'a reason of the usual length, such as agents give',
  CASE WHEN b % 100 < 70 THEN 'read' WHEN b % 100 < 95 THEN 'write' ELSE 'destructive' END,
  1 + a % 10000, 'urn:receipt:id-' || i, 120, 2400
FROM spread";
