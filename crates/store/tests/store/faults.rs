//! Files that cannot be written or have been altered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use domain::tool::Class;
use receipt::chain::ChainStatus;
use rusqlite::Connection;
use store::{Entry, OnFailure, Safety, Store, StoreError};

use super::support::{
    Home, Look, call, ended, journal, journal_file, rules, started, until, whole,
};

pub(crate) fn foreign(home: &Home) -> Connection {
    let db = testkit::ledger::edit(home.path());
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    db
}

#[tokio::test]
async fn a_file_that_others_hold_refuses_changes_and_queues_reads_until_it_is_free() {
    let home = Home::new();
    let store = home.open();
    let running = started(Class::Write);
    let (ran, end) = (running.id.clone(), ended(&running));
    store.append(Entry::Started(Box::new(running))).await.unwrap();
    store.settled().await;
    let holder = foreign(&home);

    assert!(matches!(call(&store, Class::Write).await, Err(StoreError::Write(_))));
    assert!(store.append(Entry::Ended(Box::new(end))).await.is_err(), "it is not safe yet");
    let (read, safe) = call(&store, Class::Read).await.unwrap();
    assert_eq!(safe, Safety::Queued);
    let mut queued = vec![ran, read];
    while store.admits(Class::Read).is_ok() {
        let batch: Vec<_> = (0..100).map(|_| whole(Class::Read)).collect();
        let answers: Vec<_> =
            batch.into_iter().map(|(id, entry)| (id, store.append(entry))).collect();
        for (id, answer) in answers {
            if answer.await.is_ok() {
                queued.push(id);
            }
        }
        assert!(queued.len() <= 1_100, "the queue has no bound");
    }
    assert!(store.ledger().is_full && queued.len() >= 1_000);

    holder.execute_batch("COMMIT").unwrap();
    until(&store, || store.admits(Class::Read).is_ok()).await;
    call(&store, Class::Destructive).await.unwrap();
    store.settled().await;
    assert!(store.ledger().fault.is_none() && store.ledger().queue == 0);
    let look = home.look();
    queued.iter().for_each(|id| look.assert_recorded(id));
}

#[tokio::test]
async fn with_on_failure_refuse_nothing_is_queued() {
    let home = Home::new();
    let mut rules = rules();
    rules.on_failure = OnFailure::Refuse;
    let store = Store::open(home.path(), &rules).unwrap();
    let holder = foreign(&home);
    assert!(call(&store, Class::Read).await.is_err());
    assert!(store.admits(Class::Read).is_err());
    holder.execute_batch("COMMIT").unwrap();
    until(&store, || store.admits(Class::Read).is_ok()).await;
    call(&store, Class::Read).await.unwrap();
}

#[tokio::test]
async fn a_ledger_that_closes_while_it_cannot_write_says_so() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    let holder = foreign(&home);
    assert!(call(&store, Class::Write).await.is_err());
    assert!(store.close().await.is_err());
    holder.execute_batch("COMMIT").unwrap();
    home.open().close().await.unwrap();
    assert_eq!(home.look().chains[0].status, ChainStatus::Interrupted);
}

#[tokio::test]
async fn a_file_that_is_no_ledger_is_not_opened() {
    let home = Home::new();
    fs::write(home.path().join(store::FILE), "this is not a database, it only looks like one")
        .unwrap();
    let error = Store::open(home.path(), &rules()).err().unwrap();
    assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
}

#[tokio::test]
async fn a_ledger_of_a_newer_version_is_not_opened() {
    let home = Home::new();
    home.open().close().await.unwrap();
    let db = testkit::ledger::edit(home.path());
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    let error = Store::open(home.path(), &rules()).err().unwrap();
    assert!(matches!(error, StoreError::Newer { found: 999, .. }), "{error}");
}

#[tokio::test]
async fn a_torn_log_costs_only_what_was_torn() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.settled().await;
    let before = home.look().chains[0].receipts.len();
    for _ in 0..20 {
        call(&store, Class::Write).await.unwrap();
    }
    store.settled().await;
    for cut in [1, 5_000, 60_000] {
        let copy = home.copy();
        let log = copy.path().join("ledger.db-wal");
        let bytes = fs::metadata(&log).unwrap().len();
        fs::File::options().write(true).open(&log).unwrap().set_len(bytes - cut).unwrap();
        fs::remove_file(copy.path().join("ledger.db-shm")).unwrap();
        copy.open().close().await.unwrap();
        let look = copy.look();
        assert!(look.chains[0].receipts.len() > before, "{cut} bytes cost everything");
        assert_eq!(look.chains[0].status, ChainStatus::Interrupted);
    }
}

/// Returns the file of the only journal.
fn journal_of(home: &Home) -> PathBuf {
    let chain = home.look().chains.last().unwrap().id.clone();
    journal_file(home.path(), &chain)
}

#[tokio::test]
async fn a_torn_journal_costs_only_what_was_torn() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Read).await.unwrap();
    store.settled().await;
    let journal = journal_of(&home);
    let filed = fs::metadata(&journal).unwrap().len() as usize;
    // While another connection holds the tables, nothing more is filed.
    let holder = foreign(&home);
    let (first, safe) = call(&store, Class::Read).await.unwrap();
    let (second, _) = call(&store, Class::Read).await.unwrap();
    assert_eq!(safe, Safety::Committed);
    let copy = home.copy();
    holder.execute_batch("COMMIT").unwrap();
    let whole = fs::read(journal_of(&copy)).unwrap();
    let line = filed + whole[filed..].iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for length in [whole.len() - 1, line + 1, line] {
        let copy = copy.copy();
        fs::write(journal_of(&copy), &whole[..length]).unwrap();
        copy.open().close().await.unwrap();
        let look = copy.look();
        look.assert_recorded(&first);
        assert_eq!(look.status(&second), "absent", "nobody was told that it is safe");
        assert_eq!(look.chains[0].status, ChainStatus::Interrupted);
        assert!(!journal_file(copy.path(), &look.chains[0].id).exists());
    }
}

/// Returns a copy of the ledger in which its one call is committed and not filed.
async fn unfiled() -> (Home, String) {
    let home = Home::new();
    let store = home.open();
    // The chain of an earlier process, which the first receipt names.
    call(&store, Class::Read).await.unwrap();
    store.close().await.unwrap();
    let store = home.open();
    call(&store, Class::Read).await.unwrap();
    store.settled().await;
    let copy = home.copy();
    let chain = copy.look().chains[1].id.clone();
    let promised = journal(copy.path(), &chain)[0]["receipt"]["hash"].as_str().unwrap().to_owned();
    let db = testkit::ledger::edit(copy.path());
    db.execute("DELETE FROM receipts WHERE receipt_hash = ?1", [&promised]).unwrap();
    db.execute_batch(
        "DELETE FROM activity WHERE chain = 2;
         UPDATE chains SET filed = 0, length = 0, last_hash = NULL WHERE chain = 2;",
    )
    .unwrap();
    (copy, promised)
}

#[tokio::test]
async fn an_unfiled_receipt_is_recreated_with_the_same_hash() {
    let (home, promised) = unfiled().await;
    home.open().close().await.unwrap();
    let db = testkit::ledger::edit(home.path());
    let found: String = db
        .query_row("SELECT receipt_json FROM receipts WHERE receipt_hash = ?1", [promised], |row| {
            row.get(0)
        })
        .unwrap();
    assert!(found.contains("preceding_chain") && !found.contains("promised_hash"), "{found}");
}

/// Returns a line of a journal with the checksum, CRC-32C, of its present content.
fn summed(line: &str) -> String {
    let (content, _) = line.split_once(",\"crc\"").unwrap();
    let sum = content.bytes().fold(u32::MAX, |sum, byte| {
        let shifted = |sum: u32, _| (sum >> 1) ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 };
        (0..8).fold(sum ^ u32::from(byte), shifted)
    });
    format!("{content},\"crc\":\"{:08x}\"}}\n", !sum)
}

#[tokio::test]
async fn a_receipt_reveals_a_record_changed_after_its_commit() {
    let (home, promised) = unfiled().await;
    let journal = journal_of(&home);
    let text = fs::read_to_string(&journal).unwrap();
    // One who changes a record can make its checksum again.
    let changed = text.replace("\"server\":\"", "\"server\":\"other-");
    fs::write(&journal, changed.lines().map(summed).collect::<String>()).unwrap();
    home.open().close().await.unwrap();
    let look = home.look();
    let told = format!("\"promised_hash\":\"{promised}\"");
    let chain = look.chains.iter().find(|chain| chain.receipts[0].to_string().contains(&told));
    assert_eq!(chain.unwrap().status, ChainStatus::Interrupted);
}

/// The variable that gives a child its own folder, mounted with little room.
pub(crate) const SMALL_DISK: &str = "COUNTERSIGN_TEST_SMALL_DISK";

/// Runs one test again with a small disk mounted, in a separate namespace.
pub(crate) fn on_a_small_disk(test: &str) {
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=3m none \"$0\" && exec \"$@\"";
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(SMALL_DISK, folder.path())
        .output();
    let Ok(output) = output else {
        return testkit::run::skipped("there is no 'unshare' here");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if !said.contains("running 1 test") {
        return testkit::run::skipped("no small disk can be mounted here");
    }
    assert!(output.status.success(), "{said}{errors}");
}

#[test]
fn a_full_disk_refuses_changes_and_queues_reads_until_there_is_room() {
    let Some(folder) = std::env::var_os(SMALL_DISK) else {
        on_a_small_disk(
            "store::faults::a_full_disk_refuses_changes_and_queues_reads_until_there_is_room",
        );
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(full_disk(Path::new(&folder)));
}

/// Fills the disk with a file that can be removed again.
pub(crate) fn fill(home: &Path) -> PathBuf {
    let filler = home.join("filler");
    while fs::File::options()
        .append(true)
        .create(true)
        .open(&filler)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &[0; 4096]))
        .is_ok()
    {}
    filler
}

async fn full_disk(home: &Path) {
    let store = Store::open(home, &rules()).unwrap();
    let (first, _) = call(&store, Class::Write).await.unwrap();
    store.settled().await;
    let filler = fill(home);
    let mut kept = vec![first];
    let mut refused = 0;
    while refused < 3 {
        match call(&store, Class::Write).await {
            Ok((id, _)) => kept.push(id),
            Err(error) => {
                assert!(matches!(error, StoreError::Write(_)), "{error}");
                refused += 1;
            }
        }
    }
    let (read, safe) = call(&store, Class::Read).await.unwrap();
    assert_eq!(safe, Safety::Queued);
    kept.push(read);
    fs::remove_file(&filler).unwrap();
    until(&store, || store.ledger().fault.is_none()).await;
    kept.push(call(&store, Class::Write).await.unwrap().0);
    store.close().await.unwrap();
    let look = Look::at(home);
    kept.iter().for_each(|id| look.assert_recorded(id));
    assert_eq!(look.chains[0].status, ChainStatus::Complete);
}

#[test]
fn a_read_only_disk_is_reported() {
    let Some(folder) = std::env::var_os(SMALL_DISK) else {
        on_a_small_disk("store::faults::a_read_only_disk_is_reported");
        return;
    };
    let home = Path::new(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { Store::open(home, &rules()).unwrap().close().await }).unwrap();
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(home).status().unwrap();
    assert!(remounted.success());
    let error = Store::open(home, &rules()).err().unwrap();
    assert!(matches!(error, StoreError::Write(_)), "{error}");
}
