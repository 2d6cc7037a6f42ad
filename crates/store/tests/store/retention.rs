//! Data that retention deletes, and data that stays.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use domain::config::Ledger;
use domain::tool::Class;
use receipt::PublicKey;
use receipt::audit::{Audit, AuditDetail, AuditScope};
use receipt::chain::{ChainExpectation, verify};
use serde_json::Value;
use store::read::LedgerPlace;
use store::{Entry, Store};

use super::support::{Home, call, db, ended, payload, rules, started, until};
use super::unsigned::{self, change};

async fn append_old(store: &Store, days: i64, count: usize) {
    for _ in 0..count {
        let mut call = started(Class::Write);
        call.at -= jiff::SignedDuration::from_hours(24 * days);
        let end = ended(&call);
        store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    }
    store.settled().await;
}

fn count(home: &Path, table: &str) -> u64 {
    db(home).query_row(&format!("SELECT COUNT(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

fn keep_days(days: u32) -> Ledger {
    Ledger { activity_retention_days: days, ..rules() }
}

/// Returns the statements of deletions, in the order in which they were signed.
fn statements(home: &Home) -> Vec<Value> {
    let chains = home.look().chains;
    let receipts = chains.iter().flat_map(|chain| &chain.receipts);
    let all = receipts.map(|receipt| receipt["issuer"]["runtime"]["expired_records"].clone());
    all.filter(|statement| !statement.is_null()).collect()
}

/// Opens the ledger and waits for the end of its first round, which states what no receipt states
/// yet.
async fn open_for_a_round(home: &Home, rules: &Ledger) -> Store {
    leave_unstated(home);
    let store = Store::open(home.path(), rules).unwrap();
    until(&store, || count(home.path(), "settings WHERE name = 'expired_records'") == 0).await;
    store
}

/// Counts deletions as a process does that is killed before it signs them.
fn leave_unstated(home: &Home) {
    let left = r#"[{"kind":"records","reason":"size","holder":null,"count":7,"bytes":0,"span_us":[1000000,2000000]}]"#;
    let left = signed_count(home.path(), left);
    let sql = "INSERT OR IGNORE INTO settings (name, value) VALUES ('expired_records', ?1)";
    let db = testkit::ledger::edit(home.path());
    db.busy_timeout(Duration::from_secs(5)).unwrap();
    db.execute(sql, [left]).unwrap();
}

/// Returns a count of deletions as a process signs it.
fn signed_count(home: &Path, deleted: &str) -> String {
    let mut keys = fs::read_dir(home.join("keys")).unwrap().map(|file| file.unwrap().path());
    let secret = keys.find(|path| path.to_string_lossy().ends_with(".secret.pem")).unwrap();
    let key = receipt::SigningKey::from_pem(&fs::read_to_string(secret).unwrap()).unwrap();
    let signature = receipt::statement::sign(&key, "deletions", deleted);
    format!(r#"{{"signature":"{signature}","deleted":{deleted}}}"#)
}

#[tokio::test]
async fn old_records_are_deleted_and_their_receipts_kept() {
    let home = Home::new();
    let store = home.open();
    append_old(&store, 100, 5).await;
    append_old(&store, 1, 3).await;
    store.close().await.unwrap();
    let store = home.open();
    store.set_retention(&rules()).unwrap();
    until(&store, || count(home.path(), "activity") == 3).await;
    assert_eq!(count(home.path(), "payloads"), 3);
    assert_eq!(count(home.path(), "touches"), 3);
    assert_eq!(home.look().chains[0].receipts.len(), 9);
}

#[tokio::test]
async fn the_rules_of_the_home_apply_whatever_a_process_was_given() {
    let home = Home::new();
    let store = home.open();
    append_old(&store, 50, 5).await;
    append_old(&store, 100, 5).await;
    store.close().await.unwrap();
    // Its own rules would delete all of them, and without rules of the home nothing goes.
    let other = open_for_a_round(&home, &keep_days(1)).await;
    append_old(&other, 0, 1).await;
    other.close().await.unwrap();
    assert_eq!(count(home.path(), "activity"), 11);
    let server = home.open();
    server.set_retention(&keep_days(70)).unwrap();
    server.close().await.unwrap();
    let other = open_for_a_round(&home, &keep_days(1)).await;
    other.close().await.unwrap();
    assert_eq!(count(home.path(), "activity"), 6);
    let store = home.open();
    store.set_retention(&keep_days(30)).unwrap();
    until(&store, || count(home.path(), "activity") == 1).await;
}

#[tokio::test]
async fn every_round_signs_what_it_deleted() {
    let home = Home::new();
    let store = home.open();
    append_old(&store, 100, 1_200).await;
    append_old(&store, 95, 1).await;
    append_old(&store, 1, 1).await;
    store.set_retention(&rules()).unwrap();
    until(&store, || !statements(&home).is_empty()).await;
    store.close().await.unwrap();
    let [statement] = &statements(&home)[..] else { panic!("{:?}", statements(&home)) };
    let of = |kind: &str| {
        let mut all = statement.as_array().unwrap().iter();
        all.find(|data| data["kind"] == kind).unwrap_or_else(|| panic!("{statement}")).clone()
    };
    for kind in ["records", "payloads"] {
        assert_eq!((&of(kind)["count"], &of(kind)["reason"]), (&1_201.into(), &"age".into()));
        let time =
            |name: &str| of(kind)[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let days = time("to").duration_since(time("from")).as_hours() / 24;
        assert_eq!(days, 5, "{statement}");
    }
    assert_eq!(
        count(home.path(), "receipts WHERE action_type = 'agent_receipts.records_expired'"),
        1
    );
    assert_eq!(count(home.path(), "settings WHERE name = 'expired_records'"), 0);
    // Their receipts lack records, and the statement says why.
    let keys = store.public_keys().unwrap();
    let mut audit = Audit::new(keys, None, AuditDetail::Chains).unwrap();
    store.read().audit(&mut audit, LedgerPlace::Home(home.path()), || ()).unwrap();
    let outcome = audit.finish(AuditScope::All, ChainExpectation::default());
    assert!(outcome.is_valid(), "{:?}", outcome.reports);
}

#[tokio::test]
async fn a_stated_deletion_excuses_as_many_records_as_it_counts() {
    let home = Home::new();
    let store = home.open();
    append_old(&store, 100, 3).await;
    append_old(&store, 95, 1).await;
    store.set_retention(&rules()).unwrap();
    until(&store, || count(home.path(), "activity") == 0 && !statements(&home).is_empty()).await;
    store.set_retention(&keep_days(1_000)).unwrap();
    append_old(&store, 97, 1).await;
    store.close().await.unwrap();
    assert_eq!(unsigned::faults(&home), Vec::<String>::new());
    change(&home, "DELETE FROM touches; DELETE FROM payloads; DELETE FROM activity");
    let found = unsigned::faults(&home);
    assert!(found.len() == 1 && found[0].contains("its record is missing"), "{found:?}");
}

/// Appends calls of a token, with arguments of this many bytes.
async fn append_of(store: &Store, token: &str, days: i64, (count, bytes): (usize, usize)) {
    for _ in 0..count {
        let mut call = started(Class::Write);
        call.at -= jiff::SignedDuration::from_hours(24 * days);
        token.clone_into(&mut call.agent.token);
        call.arguments = payload(&"x".repeat(bytes));
        let end = ended(&call);
        store.append(Entry::Whole(Box::new(call), Box::new(end))).await.unwrap();
    }
    store.settled().await;
}

fn count_of(home: &Home, table: &str, token: &str) -> u64 {
    let table = match table {
        "payloads" => "payloads JOIN activity USING (number)",
        other => other,
    };
    count(home.path(), &format!("{table} JOIN agents USING (agent) WHERE token = '{token}'"))
}

fn faults(store: &Store, home: &Home) -> Vec<String> {
    let mut audit = Audit::new(store.public_keys().unwrap(), None, AuditDetail::Chains).unwrap();
    store.read().audit(&mut audit, LedgerPlace::Home(home.path()), || ()).unwrap();
    let outcome = audit.finish(AuditScope::All, ChainExpectation::default());
    outcome.reports.into_iter().filter_map(|report| report.error).collect()
}

#[tokio::test]
async fn one_token_cannot_erase_the_payloads_of_another() {
    let home = Home::new();
    let store = home.open();
    append_of(&store, "quiet", 0, (5, 60_000)).await;
    append_of(&store, "loud", 0, (100, 60_000)).await;
    store.set_retention(&Ledger { max_size_mb: 3, ..rules() }).unwrap();
    until(&store, || !statements(&home).is_empty()).await;
    assert_eq!(count_of(&home, "payloads", "quiet"), 5);
    let left = count_of(&home, "payloads", "loud");
    assert!((20..60).contains(&left), "{left}");
    assert_eq!(count(home.path(), "activity"), 105, "records stay");
    let [statement] = &statements(&home)[..] else { panic!("{:?}", statements(&home)) };
    let lost = &statement[0];
    assert_eq!((&lost["kind"], &lost["reason"]), (&"payloads".into(), &"size".into()));
    assert_eq!((&lost["holder"], &lost["count"]), (&"loud".into(), &(100 - left).into()));
    assert!(lost["bytes"].as_u64().unwrap() >= (100 - left) * 60_000, "{statement}");
    assert!(lost["from"].as_str() <= lost["to"].as_str() && lost["from"].is_string());
    assert_eq!(statement.as_array().unwrap().len(), 1, "nobody else lost anything: {statement}");
    assert_eq!(faults(&store, &home), Vec::<String>::new());
}

#[tokio::test]
async fn one_token_cannot_push_out_the_records_of_another() {
    let home = Home::new();
    let store = home.open();
    append_of(&store, "quiet", 3, (20, 10)).await;
    append_of(&store, "loud", 2, (300, 10)).await;
    store.set_retention(&Ledger { max_records: 100, ..rules() }).unwrap();
    until(&store, || count(home.path(), "activity") == 100).await;
    assert_eq!(count_of(&home, "activity", "quiet"), 20);
    assert_eq!(count_of(&home, "activity", "loud"), 80);
    assert_eq!(faults(&store, &home), Vec::<String>::new(), "signed or not yet");
    until(&store, || !statements(&home).is_empty()).await;
    assert_eq!(faults(&store, &home), Vec::<String>::new());
    // What is stated of one token covers no record of another.
    store.close().await.unwrap();
    let db = testkit::ledger::edit(home.path());
    db.execute_batch(
        "DELETE FROM touches WHERE number = 10; DELETE FROM payloads WHERE number = 10;
                      DELETE FROM activity WHERE number = 10",
    )
    .unwrap();
    drop(db);
    let faults = faults(&store, &home);
    assert!(faults[0].contains("its record is missing from activity"), "{faults:?}");
}

#[tokio::test]
async fn deletions_of_a_killed_process_are_signed_by_the_next() {
    let home = Home::new();
    home.open().close().await.unwrap();
    leave_unstated(&home);
    let store = home.open();
    until(&store, || !statements(&home).is_empty()).await;
    let expected = serde_json::json!([{"kind": "records", "reason": "size", "count": 7,
        "from": "1970-01-01T00:00:01.000Z", "to": "1970-01-01T00:00:02.000Z"}]);
    assert_eq!(statements(&home), [expected]);
}

#[tokio::test]
async fn a_pruned_name_can_be_used_again_by_every_process() {
    let home = Home::new();
    let (one, other) = (home.open(), home.open());
    append_old(&one, 100, 1).await;
    append_old(&other, 100, 1).await;
    one.set_retention(&rules()).unwrap();
    until(&one, || count(home.path(), "agents") + count(home.path(), "targets") == 0).await;
    for store in [&one, &other] {
        append_old(store, 0, 1).await;
    }
    assert_eq!(
        count(home.path(), "activity JOIN agents USING (agent) JOIN targets USING (target)"),
        2
    );
}

#[tokio::test]
async fn a_clock_that_is_days_ahead_deletes_nothing() {
    let home = Home::new();
    let store = home.open();
    append_old(&store, 100, 3).await;
    store.close().await.unwrap();
    let db = testkit::ledger::edit(home.path());
    let past = "json_set(receipt_json, '$.issuanceDate', '2020-01-01T00:00:00.000Z',
                  '$.credentialSubject.action.timestamp', '2020-01-01T00:00:00.000Z')";
    db.execute(&format!("UPDATE receipts SET receipt_json = {past}"), []).unwrap();
    let text = r#"{"days":90,"records_max":1000000,"megabytes_max":1024,"receipt_days":1}"#;
    let sql = "INSERT INTO settings (name, value) VALUES ('retention_rules', ?1)";
    db.execute(sql, [text]).unwrap();
    // As the first process that starts, and then the next one, which finds a record of today.
    for _ in 0..2 {
        let store = open_for_a_round(&home, &rules()).await;
        call(&store, Class::Read).await.unwrap();
        store.close().await.unwrap();
    }
    assert_eq!(count(home.path(), "activity"), 5);
    assert_eq!(count(home.path(), "chains WHERE status = 'expired'"), 0);
    let db = testkit::ledger::edit(home.path());
    db.execute("UPDATE settings SET value = '[]' WHERE name = 'clock_jumps'", []).unwrap();
    let store = home.open();
    until(&store, || count(home.path(), "activity") == 2).await;
}

#[tokio::test]
async fn a_token_that_fills_the_last_day_is_over_its_share() {
    let home = Home::new();
    let store = home.open();
    store.set_retention(&Ledger { max_records: 200, ..rules() }).unwrap();
    append_old(&store, 0, 200).await;
    assert_eq!(store.share_excess("agent"), None);
    append_old(&store, 0, 1).await;
    store.set_retention(&Ledger { max_records: 200, ..rules() }).unwrap();
    until(&store, || store.share_excess("agent").is_some()).await;
    assert_eq!(store.share_excess("other"), None);
    assert_eq!(count(home.path(), "activity"), 201, "the last day stays");
    store.set_retention(&Ledger { max_records: 1_000, ..rules() }).unwrap();
    until(&store, || store.share_excess("agent").is_none()).await;
}

#[tokio::test]
async fn excess_records_are_deleted_oldest_first() {
    let home = Home::new();
    let mut rules = rules();
    rules.max_records = 10;
    let store = home.open();
    append_old(&store, 2, 25).await;
    let (newest, _) = call(&store, Class::Read).await.unwrap();
    store.close().await.unwrap();
    let store = home.open();
    store.set_retention(&rules).unwrap();
    until(&store, || count(home.path(), "activity") == 10).await;
    home.look().assert_recorded(&newest);
}

#[tokio::test]
async fn payloads_are_deleted_for_size_before_records() {
    let home = Home::new();
    let mut rules = rules();
    rules.max_size_mb = 2;
    let store = home.open();
    for _ in 0..1_200 {
        let mut call = started(Class::Write);
        call.arguments = payload(&format!("\"{}\"", "x".repeat(4_000)));
        let end = ended(&call);
        drop(store.append(Entry::Whole(Box::new(call), Box::new(end))));
    }
    store.settled().await;
    store.close().await.unwrap();
    let store = home.open();
    store.set_retention(&rules).unwrap();
    until(&store, || count(home.path(), "payloads") < 700).await;
    assert_eq!(count(home.path(), "activity"), 1_200);
}

/// Signs the last receipt of the only chain anew, as of 2020: it was closed today.
fn age_end(home: &Home, key: &receipt::SigningKey) {
    let time = "2020-01-01T00:00:00.000Z";
    let mut last = home.look().chains[0].receipts.last().unwrap().clone();
    last.as_object_mut().unwrap().remove("proof");
    last["issuanceDate"] = time.into();
    last["credentialSubject"]["action"]["timestamp"] = time.into();
    let body = receipt::canonical::text(&last.to_string()).unwrap();
    let signed = receipt::content::Body::from_text(body).unwrap().sign(key, time);
    let hash = receipt::verify::SignedReceipt::parse(&signed).unwrap().hash.to_string();
    let db = testkit::ledger::edit(home.path());
    let sql = "UPDATE receipts SET receipt_json = ?1, receipt_hash = ?2
               WHERE receipt_number = (SELECT max(receipt_number) FROM receipts)";
    db.execute(sql, [&*signed, &hash]).unwrap();
    db.execute("UPDATE chains SET last_hash = ?1", [&hash]).unwrap();
    db.execute("UPDATE checkpoints SET hash = ?1", [&hash]).unwrap();
    std::fs::write(home.path().join("checkpoint.json"), signed).unwrap();
}

#[tokio::test]
async fn old_chains_are_exported_and_removed_with_a_receipt() {
    let home = Home::new();
    let store = home.open();
    append_old(&store, 100, 3).await;
    let key = store.key().public();
    store.close().await.unwrap();
    age_end(&home, &store.key());
    let mut rules = rules();
    rules.receipt_retention_days = 30;
    let store = home.open();
    store.set_retention(&rules).unwrap();
    until(&store, || count(home.path(), "chains WHERE status = 'expired'") == 1).await;
    store.close().await.unwrap();
    let look = home.look();
    let [gone, present] = &look.chains[..] else { panic!("{} chains", look.chains.len()) };
    assert!(gone.receipts.is_empty());
    let text = std::fs::read_to_string(home.path().join(format!("exports/{}.jsonl", gone.id)));
    let text = text.unwrap();
    let check = verify(text.lines(), &key, ChainExpectation::default());
    assert!(check.valid && check.length == 4, "{check:?}");
    let mut present = present.receipts.iter();
    let receipt = present.find(|receipt| receipt["issuer"]["runtime"]["expired_chain"].is_object());
    let receipt = receipt.unwrap();
    let expired: &Value = &receipt["issuer"]["runtime"]["expired_chain"];
    assert_eq!((&expired["chain_id"], &expired["sequence"]), (&gone.id.clone().into(), &4.into()));
    let last = receipt::verify::SignedReceipt::parse(text.lines().last().unwrap()).unwrap();
    assert_eq!(expired["hash"], last.hash.to_string());
    assert_eq!(receipt["issuer"]["id"], PublicKey::did(&key));
}

/// Adds records of 100 days ago, each with payloads, as fast as SQLite can.
fn fill(home: &Path, count: i64) {
    let db = testkit::ledger::edit(home);
    let at = (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(2_400)).as_microsecond();
    db.execute_batch(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
         INSERT INTO agents (agent, name, client, token)
           SELECT 1000 + i, 'agent-' || i, 'c', 'old' FROM n;",
    )
    .unwrap();
    db.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO activity (number, id, changed, chain, type, source, surface, server, tool,
           agent, session_id, started_us, duration_us, status, intent_type, effective_class)
         SELECT i + 1, printf('%012x-', i) || hex(randomblob(8)), i + 1, 1, 'tool_call',
           'mcp', 'mcp', 'files', 'read_text', 1000 + i % 200 + 1, 'session-' || (i % 1000),
           ?2 + i, 1, 'success', 'read', 'read' FROM n",
        [count, at],
    )
    .unwrap();
    db.execute(
        "INSERT INTO payloads (number, arguments, response)
         SELECT number, printf('%.*c', 100, 'x'), printf('%.*c', 300, 'y') FROM activity
         WHERE number > 1",
        [],
    )
    .unwrap();
}

/// Makes calls one after the other until told to stop; returns how long each took, sorted.
async fn times_of_calls(store: &Store, mut goes_on: impl FnMut() -> bool) -> Vec<Duration> {
    let mut times = Vec::new();
    while goes_on() {
        for _ in 0..100 {
            let began = Instant::now();
            call(store, Class::Write).await.unwrap();
            times.push(began.elapsed());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    times.sort_unstable();
    times
}

fn tell(what: &str, times: &[Duration]) {
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    let (middle, high, most) = (at(0.5), at(0.999), at(1.0));
    eprintln!("{what}: {} calls, median {middle:?}, 99.9 % {high:?}, most {most:?}", times.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_calls_go_on_while_a_million_records_expire() {
    const RECORDS: i64 = 1_000_000;
    if !testkit::run::is_long_or_skipped() {
        return;
    }
    let home = Home::new();
    let store = home.open();
    append_old(&store, 0, 1).await;
    store.close().await.unwrap();
    fill(home.path(), RECORDS);
    let store = home.open();
    let lasting = |seconds| {
        let end = Instant::now() + Duration::from_secs(seconds);
        move || Instant::now() < end
    };
    tell("without expiry", &times_of_calls(&store, lasting(20)).await);
    store.set_retention(&rules()).unwrap();
    tell("during expiry", &times_of_calls(&store, lasting(60)).await);
    let sql = "SELECT count(*) FROM activity WHERE number BETWEEN 2 AND ?1";
    let left: i64 = db(home.path()).query_row(sql, [RECORDS + 1], |row| row.get(0)).unwrap();
    eprintln!("{} of {RECORDS} records expired meanwhile", RECORDS - left);
    assert!(0 < left && left < RECORDS, "{left} records are left, so calls did not meet expiry");
    store.close().await.unwrap();
}
