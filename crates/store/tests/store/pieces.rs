//! Single pieces of a home that are missing or older: a start, a check and the verification say so in
//! the same words.

use std::fs;

use domain::tool::Class;
use store::survey::Survey;

use super::losses::{refusal, secret};
use super::support::{Home, call};
use super::unsigned::{change, ended_chains, faults};

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
