//! Altered chains are detected and reported at the point where they break.

use std::sync::LazyLock;

use proptest::prelude::*;
use receipt::chain::{self, Chain, ChainCheck, ChainExpectation, ChainStatus};
use receipt::content::Termination;
use receipt::{Hash, verify};
use serde_json::{Value, json};

use crate::sample::{self, Author, CHAIN, key, minimal};

fn check(receipts: &[String]) -> ChainCheck {
    check_with(receipts, ChainExpectation::default())
}

fn check_with(receipts: &[String], expected: ChainExpectation) -> ChainCheck {
    chain::verify(receipts, &key(1).public(), expected)
}

#[track_caller]
fn assert_broken(check: &ChainCheck, at: u64, reason: &str) {
    assert_eq!((check.valid, check.broken_at), (false, Some(at)), "{check:#?}");
    let error = check.error.as_deref().unwrap();
    assert!(error.contains(reason), "{error}");
}

/// Returns an open chain of this many receipts, signed with one key.
fn plain(chain_id: &'static str, length: usize) -> Vec<String> {
    let issuer = key(1).public().did();
    let mut author = Author::new(chain_id);
    for _ in 0..length {
        author.add(&minimal(&issuer), &key(1), None);
    }
    author.signed
}

#[test]
fn a_whole_chain_is_valid_through_a_rotation_to_its_end() {
    let author = sample::chain();
    let expected = ChainExpectation { length: Some(5), final_hash: author.last };
    let check = check_with(&author.signed, expected);
    assert!(check.valid, "{check:#?}");
    assert_eq!(check.status, ChainStatus::Complete);
    assert!(
        check
            .receipts
            .iter()
            .all(|one| one.signature_valid && one.hash_link_valid && one.sequence_valid)
    );
    assert_eq!(
        json!(check)["receipts"][1],
        json!({
            "index": 1,
            "receipt_id": "urn:receipt:0193f2a0-1111-7111-8111-111111111111",
            "signature_valid": true,
            "hash_link_valid": true,
            "sequence_valid": true,
        })
    );
}

#[test]
fn the_published_form_of_an_outcome() {
    let check = ChainCheck { receipts: Vec::new(), ..check(&plain(CHAIN, 2)) };
    let expect = json!({"valid": true, "length": 2, "status": "unknown", "broken_at": null, "error": null, "receipts": []});
    assert_eq!(json!(check), expect);
}

#[test]
fn an_empty_chain_is_valid_unless_something_was_expected() {
    assert!(check(&[]).valid);
    assert_broken(
        &check_with(&[], ChainExpectation { length: Some(1), final_hash: None }),
        0,
        "has 0 receipts, expected 1",
    );
    let final_hash = Some(Hash::of(b""));
    assert_broken(
        &check_with(&[], ChainExpectation { length: None, final_hash }),
        0,
        "hash of the last receipt is none",
    );
}

#[test]
fn a_changed_receipt_breaks_its_signature_and_the_link_after_it() {
    let mut chain = plain(CHAIN, 4);
    chain[1] = chain[1].replace("filesystem.file.read", "filesystem.file.move");
    let check = check(&chain);
    assert_broken(&check, 1, "receipt at index 1: signature does not match");
    assert!(!check.receipts[1].signature_valid && check.receipts[1].hash_link_valid);
    assert!(check.receipts[2].signature_valid && !check.receipts[2].hash_link_valid);
    assert!(check.receipts[3].hash_link_valid);
}

#[test]
fn a_cut_off_tail_is_seen_by_length_or_final_hash_only() {
    let author = sample::chain();
    let cut = &author.signed[..3];
    assert!(check(cut).valid);
    assert_eq!(check(cut).status, ChainStatus::Unknown);
    assert_broken(
        &check_with(cut, ChainExpectation { length: Some(5), final_hash: None }),
        2,
        "has 3 receipts, expected 5",
    );
    assert_broken(
        &check_with(cut, ChainExpectation { length: None, final_hash: author.last }),
        2,
        "hash of the last receipt",
    );
}

#[test]
fn missing_swapped_and_doubled_receipts_are_found() {
    let chain = plain(CHAIN, 5);
    let pick = |order: &[usize]| order.iter().map(|at| chain[*at].clone()).collect::<Vec<_>>();
    assert_broken(&check(&pick(&[0, 1, 3, 4])), 2, "sequence is 4, expected 3");
    assert_broken(&check(&pick(&[0, 2, 1, 3, 4])), 1, "sequence is 3, expected 2");
    assert_broken(&check(&pick(&[0, 1, 1, 2])), 2, "sequence is 2, expected 3");
    assert_broken(&check(&pick(&[1, 2, 3])), 0, "sequence is 2, expected 1");
}

#[test]
fn a_fork_breaks_where_the_other_branch_goes_on() {
    let main = plain(CHAIN, 4);
    let issuer = key(1).public().did();
    let mut branch = Author::new(CHAIN);
    branch.add(&minimal(&issuer), &key(1), None);
    branch.add(&sample::refused(&issuer), &key(1), None);
    branch.add(&minimal(&issuer), &key(1), None);
    let forked = [main[0].clone(), main[1].clone(), branch.signed[2].clone()];
    let check = check(&forked);
    assert_broken(&check, 2, "previous_receipt_hash is sha256:");
    assert!(check.receipts[2].signature_valid && check.receipts[2].sequence_valid);
}

#[test]
fn receipts_of_another_chain_do_not_fit_in() {
    let (main, other) = (plain(CHAIN, 3), plain("chain_other", 3));
    let spliced = [main[0].clone(), main[1].clone(), other[2].clone()];
    assert_broken(&check(&spliced), 2, "belongs to chain \"chain_other\", expected");
    // correctly linked and signed, but under another name
    let issuer = key(1).public().did();
    let mut author = Author::new(CHAIN);
    author.add(&minimal(&issuer), &key(1), None);
    author.chain_id = "chain_other";
    author.add(&minimal(&issuer), &key(1), None);
    assert_broken(&check(&author.signed), 1, "belongs to chain");
}

#[test]
fn nothing_may_follow_a_terminal_receipt() {
    let issuer = key(1).public().did();
    for end in [Termination::Complete, Termination::Interrupted] {
        let mut author = Author::new(CHAIN);
        author.add(&minimal(&issuer), &key(1), None);
        author.add(&minimal(&issuer), &key(1), Some(end));
        assert_eq!(json!(check(&author.signed).status), end.as_str());
        author.add(&minimal(&issuer), &key(1), None);
        assert_broken(&check(&author.signed), 2, "follows a terminal receipt");
    }
}

#[test]
fn only_the_active_key_may_sign_and_hand_over() {
    let (one, two, three) = (key(1), key(2), key(3));
    let issuer = one.public().did();
    let start = |handing: &receipt::SigningKey, from: u8| {
        let mut author = Author::new(CHAIN);
        author.add(&minimal(&issuer), &one, None);
        let event = sample::rotation(&issuer, &key(from).public(), &two.public());
        author.add(&event, handing, None);
        author
    };
    // the old key keeps signing after the rotation
    let mut author = start(&one, 1);
    author.add(&minimal(&issuer), &one, None);
    assert_broken(&check(&author.signed), 2, "signed with another key");
    // the new key appoints itself
    let mut author = start(&two, 1);
    author.add(&minimal(&issuer), &two, None);
    let found = check(&author.signed);
    assert_broken(&found, 1, "signed with another key");
    assert!(!found.receipts[2].signature_valid);
    // the event names another old key
    assert_broken(&check(&start(&one, 3).signed), 1, "old_key_fingerprint");
    // a stranger's chain
    let mut author = Author::new(CHAIN);
    author.add(&minimal(&issuer), &three, None);
    assert_broken(&check(&author.signed), 0, "signed with another key");
}

#[test]
fn an_unreadable_receipt_breaks_the_chain_and_is_not_skipped() {
    let good = plain(CHAIN, 3);
    for (bad, reason) in [
        (String::new(), "not valid JSON"),
        ("[]".to_owned(), "the receipt object"),
        (
            good[1].replace("\"version\":\"0.5.0\"", "\"version\":\"0.7.0\""),
            "unsupported format version \"0.7.0\"",
        ),
        (
            good[1].replace("\"sequence\":2", "\"sequence\":2,\"sequence\":2"),
            "duplicate key 'sequence'",
        ),
        (
            good[1].replace("\"sequence\":2", "\"sequence\":2,\"status\":\"complete\""),
            "chain.terminal",
        ),
        (good[1].replace("\"sequence\":2", "\"sequence\":0"), "chain.sequence"),
        (good[1].replace("\"sequence\":2", "\"sequence\":2.0"), "chain.sequence"),
        (good[1].replace("\"sequence\":2", "\"sequence\":2,\"n\":9007199254740993"), "beyond 2^53"),
        (
            good[1].replace("assertionMethod", "authentication"),
            "proof purpose is \"authentication\"",
        ),
        (good[1].replace("context/v2", "context/v1"), "@context"),
        (good[1].replace("\"AgentReceipt\"", "\"Other\""), "type is missing"),
        (good[1].replace("\"created\"", "\"made\""), "proof.created"),
    ] {
        let found = check(&[good[0].clone(), bad, good[2].clone()]);
        assert_broken(&found, 1, reason);
        assert_eq!(found.length, 3);
        assert!(found.receipts[2].signature_valid && !found.receipts[2].hash_link_valid);
    }
}

#[test]
fn a_chain_can_be_verified_without_keeping_its_receipts() {
    let receipts = plain(CHAIN, 50);
    let mut chain = Chain::new(key(1).public());
    for raw in &receipts {
        chain.push(raw);
    }
    let outcome = chain.finish(ChainExpectation { length: Some(50), final_hash: None });
    assert_eq!((outcome.valid, outcome.length, outcome.receipts.len()), (true, 50, 0));
}

static WHOLE: LazyLock<Vec<String>> = LazyLock::new(|| sample::chain().signed);

/// Reports whether a byte is part of the proof's time, the only value that neither signature nor
/// key covers.
fn is_proof_time(raw: &str, at: usize) -> bool {
    let start = raw.find("\"proof\":{\"created\":\"").unwrap() + "\"proof\":{\"created\":\"".len();
    (start..start + sample::TIME.len()).contains(&at)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_change_of_any_byte_is_detected(which in 0usize..5, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut chain = WHOLE.clone();
        let at = at.index(chain[which].len());
        let mut bytes = chain[which].clone().into_bytes();
        prop_assume!(bytes[at] != byte && !is_proof_time(&chain[which], at));
        bytes[at] = byte;
        // a receipt is text: other bytes never reach the check
        let Ok(changed) = String::from_utf8(bytes) else { return Ok(()) };
        let same = serde_json::from_str::<Value>(&changed).ok() == serde_json::from_str(&chain[which]).ok();
        prop_assert!(!same, "a byte that means nothing: {changed}");
        chain[which] = changed;
        let outcome = check(&chain);
        prop_assert!(!outcome.valid, "{}", chain[which]);
        prop_assert_eq!(outcome.broken_at, Some(which as u64));
    }

    #[test]
    fn no_text_makes_the_check_panic(text in "\\PC{0,60}|[\\[\\]{}:,\"a-z0-9]{0,60}") {
        prop_assert!(verify::receipt(&text, &key(1).public()).is_err());
    }
}
