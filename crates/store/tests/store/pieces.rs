//! Single pieces of a home that are missing or older: a start, a check and the verification say so in
//! the same words.

use std::fs;

use domain::tool::Class;
use store::Store;
use store::survey::Survey;

use super::faults::foreign;
use super::losses::{refusal, repairs, secret};
use super::support::{Home, call, journal_file, rules};
use super::unsigned::{change, ended_chains, faults, receipts};

/// Returns what an operator is told at a start, which changes nothing else.
async fn told(home: &Home) -> Vec<String> {
    let store = home.open();
    let notices = store.ledger().notices;
    store.close().await.unwrap();
    notices
}

#[tokio::test]
async fn a_start_misses_the_chain_with_the_newest_checkpoint() {
    let original = ended_chains(3).await;
    let receipts =
        "DELETE FROM receipts WHERE chain_id=(SELECT chain_id FROM chains WHERE chain=3);
        DELETE FROM activity WHERE chain=3;";
    let list = "DELETE FROM checkpoints WHERE number=3;";
    let row = "DELETE FROM chains WHERE chain=3;";
    let file = |home: &Home| fs::remove_file(home.path().join("checkpoint.json")).unwrap();
    for (case, sql, is_file_gone) in [
        ("with all its rows", format!("{receipts}{list}{row}"), false),
        ("with the file", format!("{receipts}{row}"), true),
        (
            "said to have expired",
            format!("{receipts}{list}UPDATE chains SET status='expired' WHERE chain=3"),
            false,
        ),
    ] {
        let home = original.copy();
        change(&home, &sql);
        if is_file_gone {
            file(&home);
        }
        let words = refusal(home.path());
        assert!(words.contains("has 0 receipts, but 2 at the last checkpoint"), "{case}: {words}");
        let survey = Survey::of(home.path(), None);
        assert!(survey.faults[0].contains("but 2 at the last checkpoint"), "{case}: {survey:?}");
    }
}

#[tokio::test]
async fn a_checkpoint_file_that_is_missing_older_or_no_checkpoint_is_told_once() {
    let original = ended_chains(1).await;
    let older = fs::read(original.path().join("checkpoint.json")).unwrap();
    let store = original.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    let newest = fs::read(original.path().join("checkpoint.json")).unwrap();
    for (case, content, words) in [
        ("missing", None, "checkpoint.json is missing"),
        ("older", Some(&older[..]), "checkpoint.json is older than the newest checkpoint"),
        ("garbage", Some(&b"garbage"[..]), "the checkpoint is not trusted"),
    ] {
        let home = original.copy();
        let file = home.path().join("checkpoint.json");
        match content {
            Some(content) => fs::write(&file, content).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let survey = Survey::of(home.path(), None);
        let found: Vec<String> = survey.faults.into_iter().chain(survey.notes).collect();
        assert!(found.iter().any(|found| found.contains(words)), "{case}: {found:?}");
        let told = told(&home).await;
        assert!(told[0].contains(words), "{case}: {told:?}");
        assert_eq!(fs::read(&file).unwrap(), newest, "{case}: it is written anew");
        assert_eq!(told.len(), usize::from(case == "garbage") + 1, "{case}: {told:?}");
        if case == "garbage" {
            assert!(told[1].contains("set 'checkpoint.json' aside"), "{told:?}");
        }
        assert_eq!(self::told(&home).await, Vec::<String>::new(), "{case}");
    }
}

#[tokio::test]
async fn a_repair_makes_a_new_key_in_place_of_a_deleted_one() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    let first = store.key().public().fingerprint().to_string();
    let second = store.rotate_key().await.unwrap().public().fingerprint().to_string();
    store.close().await.unwrap();
    fs::remove_file(secret(&home, &second)).unwrap();
    let words = format!("the secret half of the signing key {second} is missing");
    assert_eq!(Survey::of(home.path(), None).faults, [&*words]);
    let done = store::repair::repair(home.path(), None).unwrap();
    let store = home.open();
    let third = store.key().public().fingerprint().to_string();
    assert!(third != first && third != second, "the first key was retired");
    assert_eq!(done, [format!("{words}: made the new key {third}, which signs from here on")],);
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(Survey::of(home.path(), None).faults, Vec::<String>::new());
    assert_eq!(faults(&home), Vec::<String>::new());
    home.open().close().await.unwrap();
}

/// A loss in a ledger of three chains, the second of which has four calls.
const LOSSES: [(&str, &str, &str); 6] = [
    (
        "an end",
        "DELETE FROM activity WHERE receipt_id IN (SELECT id FROM receipts WHERE {2} AND sequence > 2);
         DELETE FROM receipts WHERE {2} AND sequence > 2",
        "lacks receipts 3-5 of 5",
    ),
    (
        "an end with its records left",
        "DELETE FROM receipts WHERE {2} AND sequence > 2",
        "lacks receipts 3-5 of 5, the last with the hash",
    ),
    ("a receipt in the middle", "DELETE FROM receipts WHERE {2} AND sequence = 2", "receipts 2,"),
    ("a beginning", "DELETE FROM receipts WHERE {2} AND sequence < 3", "lacks receipts 1-2"),
    (
        "a whole chain",
        "DELETE FROM activity WHERE receipt_id IN (SELECT id FROM receipts WHERE {2});
         DELETE FROM receipts WHERE {2}; DELETE FROM chains WHERE {2}",
        "lacks receipts 1-5 of 5",
    ),
    (
        "records",
        "DELETE FROM touches WHERE number IN (3, 4); DELETE FROM activity WHERE number IN (3, 4)",
        "lacks the records of receipts 2-3; receipt 5",
    ),
];

#[tokio::test]
async fn an_accepted_loss_is_no_fault_and_a_new_one_is() {
    let original = ended_chains(1).await;
    let store = original.open();
    for _ in 0..4 {
        call(&store, Class::Write).await.unwrap();
    }
    store.close().await.unwrap();
    let store = original.open();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    let chains: Vec<String> = original.look().chains.into_iter().map(|chain| chain.id).collect();
    let of = |chain: usize| format!("chain_id='{}'", chains[chain - 1]);
    for (case, sql, words) in LOSSES {
        let home = original.copy();
        change(&home, &sql.replace("{2}", &of(2)));
        assert!(!faults(&home).is_empty(), "{case}");
        let losses = store::acceptance::losses(home.path()).unwrap();
        assert!(losses[0].words().contains(words), "{case}: {}", losses[0].words());
        assert_eq!(losses.len(), 1, "{case}: {losses:#?}");
        store::acceptance::accept(home.path(), &losses).unwrap();
        assert_eq!(faults(&home), Vec::<String>::new(), "{case}");
        assert_eq!(Survey::of(home.path(), None).faults, Vec::<String>::new(), "{case}");
        assert_eq!(store::acceptance::losses(home.path()).unwrap(), [], "{case}");
        for _ in 0..2 {
            assert_eq!(told(&home).await, Vec::<String>::new(), "{case}");
            let store = home.open();
            call(&store, Class::Write).await.unwrap();
            store.close().await.unwrap();
        }
        assert_eq!(faults(&home), Vec::<String>::new(), "{case}");
        // What is left of the chain, another chain, or the acceptance.
        let accepted = "action_type='agent_receipts.loss_accepted'";
        for more in [&*of(2), &*of(3), accepted] {
            let home = home.copy();
            let db = testkit::ledger::edit(home.path());
            let sql = format!(
                "DELETE FROM receipts
                 WHERE receipt_number=(SELECT max(receipt_number) FROM receipts WHERE {more})"
            );
            let before = db.total_changes();
            db.execute(&sql, []).unwrap();
            let is_any = db.total_changes() > before;
            assert_eq!(faults(&home).is_empty(), !is_any, "{case}, then {more}");
        }
    }
}

#[tokio::test]
async fn only_what_was_shown_is_accepted() {
    // The newest checkpoint does not name the first chain, so that a gate starts without its end.
    let home = ended_chains(3).await;
    let delete = |chain: u8| {
        let id = format!("(SELECT chain_id FROM chains WHERE chain={chain})");
        change(&home, &format!("DELETE FROM receipts WHERE sequence=2 AND chain_id={id}"));
    };
    delete(1);
    let shown = store::acceptance::losses(home.path()).unwrap();
    let running = home.open();
    call(&running, Class::Write).await.unwrap();
    let refused = store::acceptance::accept(home.path(), &shown).unwrap_err();
    assert!(refused.to_string().contains("stop all gates of this home first"), "{refused}");
    running.close().await.unwrap();
    delete(2);
    let refused = store::acceptance::accept(home.path(), &shown).unwrap_err();
    assert!(refused.to_string().contains("lacks something else by now"), "{refused}");
    let before = receipts(&home);
    let shown = store::acceptance::losses(home.path()).unwrap();
    store::acceptance::accept(home.path(), &shown).unwrap();
    assert_eq!((shown.len(), receipts(&home)), (2, before + 2), "the acceptance and a checkpoint");
    assert_eq!(faults(&home), Vec::<String>::new());
}

#[tokio::test]
async fn a_clock_that_went_back_is_told() {
    let home = ended_chains(1).await;
    let sql = "UPDATE receipts SET receipt_json=json_set(receipt_json, '$.issuanceDate',
                 '2099-01-01T00:00:00.000Z') WHERE sequence=2";
    change(&home, sql);
    let words = "the last receipt is of 2099-01-01T00:00:00Z, which is later than the clock says";
    assert!(told(&home).await[0].starts_with(words));
    assert!(Survey::of(home.path(), None).notes.iter().any(|note| note.starts_with(words)));
}

#[tokio::test]
async fn entries_that_were_erased_with_their_journal_are_counted() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.settled().await;
    let holder = foreign(&home);
    for _ in 0..2 {
        call(&store, Class::Read).await.unwrap();
    }
    let copy = home.copy();
    holder.execute_batch("COMMIT").unwrap();
    let chain = copy.look().chains[0].id.clone();
    let gone = "the journal of chain";
    for (case, lost, cut) in [
        ("the last line", 1, Some(1)),
        ("all that is not filed", 2, Some(2)),
        ("the file", 2, None),
        ("nothing", 0, Some(0)),
    ] {
        let home = copy.copy();
        let journal = journal_file(home.path(), &chain);
        let text = fs::read_to_string(&journal).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        match cut {
            Some(cut) => fs::write(&journal, lines[..lines.len() - cut].concat()).unwrap(),
            None => fs::remove_file(&journal).unwrap(),
        }
        let words = format!("its journal lacks {lost} entries that were committed and not filed");
        let survey = Survey::of(home.path(), None);
        assert_eq!(survey.faults.iter().any(|fault| fault.contains(&words)), lost > 0, "{case}");
        assert_eq!(faults(&home).contains(&words), lost > 0, "{case}: {:?}", faults(&home));
        let told = told(&home).await;
        assert_eq!(told.iter().any(|told| told.starts_with(gone)), lost > 0, "{case}: {told:?}");
        let accounts = repairs(&home.look());
        let counted: u64 = accounts.iter().filter_map(|it| it["lost_entries"].as_u64()).sum();
        assert_eq!(counted, lost, "{case}: {accounts:?}");
        assert_eq!(faults(&home), Vec::<String>::new(), "{case}: it is signed");
    }
    // Without any trace, nobody knows.
    fs::remove_file(journal_file(copy.path(), &chain)).unwrap();
    fs::remove_file(copy.path().join(format!("writers/{chain}.lock"))).unwrap();
    assert!(told(&copy).await[0].contains("its lock file with it"));
    assert_eq!(repairs(&copy.look())[0]["journal"], "gone");
}

#[tokio::test]
async fn a_page_of_noise_is_told_wherever_it_is() {
    const PAGE: usize = 4096;
    let original = ended_chains(4).await;
    let whole = fs::read(original.path().join(store::FILE)).unwrap();
    let pages = whole.len() / PAGE;
    assert!(pages > 30, "{pages}");
    for page in (0..pages).step_by(3) {
        let home = original.copy();
        let mut bytes = whole.clone();
        bytes[page * PAGE..(page + 1) * PAGE].fill(0x5a);
        fs::write(home.path().join(store::FILE), bytes).unwrap();
        let found = store::survey::integrity(home.path());
        // A page that is not in use holds nothing.
        let is_told = found.map_or(true, |found| !found.is_empty());
        assert!(is_told || faults(&home).is_empty(), "page {page}");
        // A start uses the rest, or says why it cannot.
        if let Ok(store) = Store::open(home.path(), &rules()) {
            let _ = store.close().await;
        }
        store::repair::repair(home.path(), None).unwrap();
        home.open().close().await.unwrap();
        assert_eq!(store::survey::integrity(home.path()).unwrap(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_last_line_that_was_written_anew_is_told_and_signed_for() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    store.settled().await;
    let holder = foreign(&home);
    call(&store, Class::Read).await.unwrap();
    let copy = home.copy();
    holder.execute_batch("COMMIT").unwrap();
    let chain = copy.look().chains[0].id.clone();
    let lock = copy.path().join(format!("writers/{chain}.lock"));
    let words = "the last line of its journal is not the one that was committed";
    let is_told = |found: &[String]| found.iter().any(|found| found.contains(words));
    assert!(!is_told(&Survey::of(copy.path(), None).faults) && !is_told(&faults(&copy)));
    // As if the line had been replaced by another one with a right checksum.
    let text = fs::read_to_string(&lock).unwrap();
    let committed = receipt::Hash::of(b"another").to_string();
    let known = text.split_whitespace().last().unwrap();
    fs::write(&lock, text.replace(known, &committed)).unwrap();
    assert!(is_told(&Survey::of(copy.path(), None).faults) && is_told(&faults(&copy)));
    assert!(is_told(&told(&copy).await));
    let receipts = copy.look().chains.remove(0).receipts;
    let promised: Vec<&serde_json::Value> =
        receipts.iter().map(|it| &it["issuer"]["runtime"]["promised_hash"]).collect();
    assert!(promised.contains(&&committed.into()), "{promised:?}");
    assert_eq!(faults(&copy), Vec::<String>::new());
}

#[tokio::test]
async fn every_start_tells_of_a_chain_without_its_end() {
    let home = Home::new();
    let store = home.open();
    for _ in 0..3 {
        call(&store, Class::Write).await.unwrap();
    }
    store.checkpoint().await.unwrap();
    store.settled().await;
    let home = home.copy();
    fs::remove_file(home.path().join("checkpoint.json")).unwrap();
    fs::remove_dir_all(home.path().join("writers")).unwrap();
    change(&home, "DELETE FROM receipts WHERE sequence > 2; DELETE FROM checkpoints;");
    for start in 0..3 {
        let told = told(&home).await;
        let is_told = told.iter().any(|words| words.contains("is missing, and nothing is signed"));
        assert!(is_told, "start {start}: {told:?}");
    }
}

#[tokio::test]
async fn a_start_tells_of_a_deleted_public_key() {
    let home = Home::new();
    let store = home.open();
    call(&store, Class::Write).await.unwrap();
    let first = store.key().public().fingerprint().to_string();
    store.close().await.unwrap();
    let store = home.open();
    store.rotate_key().await.unwrap();
    call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(told(&home).await, Vec::<String>::new());
    let secret = secret(&home, &first);
    let public = secret.to_string_lossy().replace(".secret.", ".public.");
    fs::remove_file(&public).unwrap();
    let words = format!("the public half of the key {first} was missing: made it again");
    assert!(told(&home).await[0].starts_with(&words));
    assert_eq!(told(&home).await, Vec::<String>::new());
    // An old secret half may be removed.
    for file in [secret, public.into()] {
        fs::remove_file(file).unwrap();
    }
    let words = format!("the public key {first}, which signed chains, is missing");
    assert_eq!(told(&home).await, [&*words]);
    assert!(Survey::of(home.path(), None).faults.contains(&words));
}
