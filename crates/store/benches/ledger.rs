//! The cost of recording a call: processor time of the whole process, and the caller's wait.
//! Records have the usual size: 400 bytes of arguments, 1 KB of result. Command-line words select:
//! `read 1` is one caller that reads; `parts`, `verify`, `checkpoints` and `decisions` are the others.

#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::borrow::Cow;
use std::hint::black_box;
use std::time::{Duration, Instant};

use domain::tool::Class;
use jiff::Timestamp;
use receipt::RiskLevel;
use receipt::SigningKey;
use receipt::audit::{Audit, AuditDetail, AuditScope};
use receipt::canonical::Digest;
use receipt::chain::ChainExpectation;
use receipt::content::Body;
use store::read::{LedgerPlace, Reader};
use store::state::ItemChange;
use store::{
    CallEnd, CallStart, Entry, FILE, Payload, ReceiptAction, RecordAgent, RecordKind, RecordStatus,
    Store,
};
use touch::targets::{Access, Target, Touches};

const CALLS: usize = 12_000;

fn main() {
    if is_wanted(&["parts"]) {
        parts();
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    println!(
        "{:<8} {:>8} {:>12} {:>12} {:>12}",
        "class", "callers", "cpu us/call", "median us", "p99 us"
    );
    for class in [Class::Read, Class::Write] {
        for callers in [1, 8, 32] {
            if is_wanted(&[class.as_str(), &callers.to_string()]) {
                runtime.block_on(measure(class, callers));
            }
        }
    }
    if is_wanted(&["verify"]) {
        runtime.block_on(verification());
    }
    if is_wanted(&["checkpoints"]) {
        runtime.block_on(checkpoints());
    }
    if is_wanted(&["decisions"]) {
        decisions();
        runtime.block_on(decisions_under_load());
    }
}

/// Measures a verification of the whole ledger, on one thread: signatures, columns and records.
async fn verification() {
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path(), &domain::config::Ledger::default()).expect("a ledger");
    run(&store, Class::Write, 32, CALLS).await;
    store.close().await.expect("closed");
    let keys = store.public_keys().expect("keys");
    let reader = Reader::open(&home.path().join(FILE)).expect("a ledger");
    let (mut best, mut count) = (Duration::MAX, 0);
    for _ in 0..5 {
        let mut audit = Audit::new(keys.clone(), None, AuditDetail::Chains).expect("a key");
        let before = processor();
        count = 0;
        let place = LedgerPlace::Home(home.path());
        reader.audit(&mut audit, place, || count += 1).expect("read");
        let outcome = audit.finish(AuditScope::All, ChainExpectation::default());
        assert!(outcome.is_valid(), "{:?}", outcome.reports);
        best = best.min(processor() - before);
    }
    let per_second = f64::from(count) / best.as_secs_f64();
    println!("verify: {count} receipts, {per_second:.0} a second and core");
}

/// Measures checkpoints in a ledger of 500 chains, a tenth of which are open.
async fn checkpoints() {
    const CHAINS: usize = 500;
    const ROUNDS: u32 = 200;
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path(), &domain::config::Ledger::default()).expect("a ledger");
    run(&store, Class::Write, 1, 10).await;
    let db = rusqlite::Connection::open(home.path().join(FILE)).expect("the ledger");
    for number in 0..CHAINS {
        let (id, status) =
            (format!("{number:036}"), if number % 10 == 0 { "open" } else { "complete" });
        let hash = receipt::Hash::of(id.as_bytes()).to_string();
        let sql =
            "INSERT INTO chains (chain_id, opened_at, pid, key, status, length, last_hash, named)
                   VALUES (?1, '', 0, '', ?2, 9, ?3, 9)";
        db.execute(sql, (id, status, hash)).expect("a chain");
    }
    let mut text = String::new();
    let before = processor();
    for _ in 0..ROUNDS {
        text = store.checkpoint().await.expect("a checkpoint");
    }
    let each = (processor() - before).as_secs_f64() * 1e3 / f64::from(ROUNDS);
    println!(
        "checkpoint of {CHAINS} chains: {each:.2} ms of processor time, {} bytes; once a minute \
         that is {:.4} % of a core",
        text.len(),
        each / 60_000.0 * 100.0
    );
}

const TOOLS: usize = 10_000;

/// Returns definitions of 700 bytes, in no order.
fn tools(word: &str) -> Vec<(String, String, String)> {
    let tool = |number: usize| {
        let name = format!("{:04x}_tool", number * 40_503 % 65_536);
        (name, word.repeat(700 / word.len()), format!("sha256:{number:064x}"))
    };
    (0..TOOLS).map(tool).collect()
}

fn approved(tools: &[(String, String, String)]) -> Vec<ItemChange<'_>> {
    let change =
        |(name, text, fingerprint)| ItemChange::Approved { kind: "tool", name, text, fingerprint };
    tools.iter().map(|(name, text, fingerprint)| change((name, text, fingerprint))).collect()
}

/// Measures the cost of decisions, on a file without other activity.
fn decisions() {
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path(), &domain::config::Ledger::default()).expect("a ledger");
    let (state, tools) = (store.state(), tools("lorem ipsum "));
    state.version().expect("a version");
    let timed = |what: &str, work: &dyn Fn()| {
        let since = Instant::now();
        work();
        println!("{what:<40} {:>10.3} ms", since.elapsed().as_secs_f64() * 1e3);
    };
    let changes = approved(&tools);
    let record = || state.record_items("files", &changes, true).expect("kept");
    timed("baseline of 10,000 tools", &record);
    timed("the same list again", &record);
    timed("items of 10,000 tools", &|| {
        assert_eq!(state.items("files").expect("read").len(), TOOLS)
    });
    timed("version", &|| drop(state.version()));
    timed("a switch", &|| drop(state.set_switch("files", "write", true)));
    timed("1,000 switches", &|| {
        for number in 0..1_000 {
            state.set_switch("files", &number.to_string(), true).expect("kept");
        }
    });
    timed("forget 10,000 tools", &|| drop(state.remove_server("files")));
}

/// Measures how long decisions wait for calls, and calls for decisions.
async fn decisions_under_load() {
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path(), &domain::config::Ledger::default()).expect("a ledger");
    let deciding = store.clone();
    let decided = tokio::task::spawn_blocking(move || {
        let mut waits = Vec::new();
        for number in 0..100 {
            let since = Instant::now();
            deciding.state().set_switch("files", &number.to_string(), true).expect("kept");
            waits.push(since.elapsed());
        }
        let tools = tools("lorem ipsum ");
        let since = Instant::now();
        deciding.state().record_items("files", &approved(&tools), true).expect("kept");
        waits.sort_unstable();
        (waits, since.elapsed())
    });
    let mut calls = run(&store, Class::Write, 32, CALLS).await;
    let (waits, baseline) = decided.await.expect("decided");
    calls.sort_unstable();
    println!(
        "beside 32 callers: switch median {:?}, longest {:?}; baseline {baseline:?}; call median {:?}, p99 {:?}, longest {:?}",
        waits[waits.len() / 2],
        waits[waits.len() - 1],
        calls[calls.len() / 2],
        calls[calls.len() * 99 / 100],
        calls[calls.len() - 1],
    );
}

/// Reports whether each word on the command line is one of these.
fn is_wanted(names: &[&str]) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--"));
    words.all(|word| names.contains(&&*word))
}

async fn measure(class: Class, callers: usize) {
    let home = tempfile::tempdir().expect("a folder");
    let store = Store::open(home.path(), &domain::config::Ledger::default()).expect("a ledger");
    run(&store, class, callers, 500).await;
    let idle = records(class, CALLS).await;
    let before = processor();
    let mut waits = run(&store, class, callers, CALLS).await;
    let spent = processor() - before;
    waits.sort_unstable();
    let cpu = (spent.saturating_sub(idle)).as_secs_f64() * 1e6 / CALLS as f64;
    let at = |part: f64| waits[(waits.len() as f64 * part) as usize].as_secs_f64() * 1e6;
    println!("{:<8} {callers:>8} {cpu:>12.1} {:>12.1} {:>12.1}", class.as_str(), at(0.5), at(0.99));
    store.close().await.expect("closed");
}

/// Measures the cost of making the records themselves, which is not the ledger's.
async fn records(class: Class, calls: usize) -> Duration {
    let before = processor();
    for _ in 0..calls {
        black_box(record(class));
    }
    processor() - before
}

async fn run(store: &Store, class: Class, callers: usize, calls: usize) -> Vec<Duration> {
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut waits = Vec::with_capacity(calls / callers);
                for _ in 0..calls / callers {
                    let (started, ended) = record(class);
                    let since = Instant::now();
                    store.append(Entry::Started(started)).await.expect("safe");
                    store.append(Entry::Ended(ended)).await.expect("safe");
                    waits.push(since.elapsed());
                }
                waits
            })
        })
        .collect();
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await.expect("a caller"));
    }
    store.settled().await;
    waits
}

/// Returns user and system time of the process so far; Linux counts it in hundredths of a second.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, after_name) = stat.rsplit_once(") ").expect("the name of the program");
    let ticks = after_name.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

fn payload(bytes: usize) -> Payload {
    let text = format!("{{\"text\":\"{}\"}}", "lorem \\\"ipsum ".repeat(bytes / 14));
    let digest = Some(Digest::of_text(&text));
    Payload { bytes: text.len(), digest, kept: Some(text), truncated: false, kept_digest: None }
}

fn record(class: Class) -> (Box<CallStart>, Box<CallEnd>) {
    let id = uuid::Uuid::now_v7().to_string();
    let started = CallStart {
        id: id.clone(),
        kind: RecordKind::ToolCall,
        source: Cow::Borrowed("mcp"),
        surface: Cow::Borrowed("mcp"),
        server: "files".to_owned(),
        tool: "read_text_file".to_owned(),
        agent: RecordAgent {
            name: "claude-code-1".to_owned(),
            client: "claude-code".to_owned(),
            token: "agent".to_owned(),
        },
        session: Some("01980a5e-7000-7000-8000-000000000000".to_owned()),
        request_id: Some("17".to_owned()),
        at: Timestamp::now(),
        variant: Some(Cow::Borrowed(class.variant())),
        declared: Some(Cow::Borrowed(class.as_str())),
        sensitivity: Some(Cow::Borrowed("internal")),
        reason: Some("look for the place where the totals are added up".to_owned()),
        effective: Some(class),
        unverified: false,
        warnings: vec![],
        touches: Touches::reported(
            Target::new("files", "/srv/project/src/totals.rs".to_owned()),
            Access::Write,
        ),
        trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
        arguments: payload(400),
        action: ReceiptAction {
            kind: Cow::Borrowed("filesystem.file.read"),
            risk: RiskLevel::Low,
            correlation_id: Some(format!("toolu_{id}")),
        },
        outside: None,
    };
    let ended = CallEnd {
        id,
        status: RecordStatus::Success,
        error_code: None,
        error_message: None,
        duration: Duration::from_millis(12),
        response: payload(1_024),
        warnings: Vec::new(),
        touches: Touches::default(),
    };
    (Box::new(started), Box::new(ended))
}

/// Measures the parts that can be measured alone.
fn parts() {
    let text = sample();
    let body = Body::from_text(text.clone()).expect("a receipt of ours");
    let key = SigningKey::from_seed(&[7; 32]);
    let (started, ended) = record(Class::Write);
    time("hash", || receipt::Hash::of(text.as_bytes()));
    time("sign", || body.sign(&key, "2026-01-01T00:00:00.000Z"));
    time("start as json", || serde_json::to_string(&*started));
    time("end as json", || serde_json::to_string(&*ended));
}

/// Prints the best of several turns, the one least disturbed by other processes.
fn time<T>(name: &str, mut work: impl FnMut() -> T) {
    const TURNS: u32 = 100;
    let best = (0..30).map(|_| {
        let since = Instant::now();
        (0..TURNS).for_each(|_| drop(black_box(work())));
        since.elapsed() / TURNS
    });
    let best = best.min().expect("thirty of them");
    println!("{name:<16} {:>8.1} us", best.as_secs_f64() * 1e6);
}

/// Returns a receipt of the usual size, without its proof.
fn sample() -> String {
    use receipt::Runtime;
    use receipt::content::{
        Action, ActionTarget, Issuer, OutcomeStatus, Position, Principal, Receipt, ReceiptOutcome,
    };
    let hash = receipt::Hash::of(b"before");
    let mut runtime = Runtime::new();
    for name in ["server", "tool", "source", "surface", "agent_id", "tool_variant", "reason"] {
        runtime.insert(name, "about as long as these are");
    }
    let receipt = Receipt {
        id: "01980a5e-7000-7000-8000-000000000000",
        issuer: Issuer { id: "did:key:z6Mk", runtime, ..Issuer::default() },
        issued_at: "2026-01-01T00:00:00.000Z",
        principal: Principal { id: "token:agent", kind: None },
        action: Action {
            id: "01980a5e-7000-7000-8000-000000000000",
            action_type: "filesystem.file.read",
            risk: RiskLevel::Low,
            target: Some(ActionTarget {
                system: "files",
                resource: Some("/srv/project/totals.rs"),
            }),
            parameters_hash: Some(hash),
            peer: None,
            drop_count: None,
            timestamp: "2026-01-01T00:00:00.000Z",
            idempotency_key: Some("17"),
        },
        outcome: ReceiptOutcome {
            status: OutcomeStatus::Success,
            error: None,
            response_hash: Some(hash),
        },
        correlation_id: Some("toolu_01A09q90qw90lq917835lq9"),
        rotation: None,
    };
    let position =
        Position { chain_id: "chain", sequence: 2, previous: Some(hash), termination: None };
    time("body and hash", || receipt.body(&position));
    receipt.body(&position).text().to_owned()
}
