//! Hand-made chains, and what the audit detects when they are altered.

use super::*;
use crate::RiskLevel;
use crate::checkpoint::{self, HeadLine};
use crate::content::{
    Action, Issuer, OutcomeStatus, Position, Principal, Receipt, ReceiptOutcome, Termination,
};
use crate::rotation::Rotation;
use crate::{Runtime, SigningKey};

const TIME: &str = "2026-02-03T09:08:07.123Z";
const ID: &str = "0197aaaa-0000-7000-8000-000000000001";

struct Writer {
    chain_id: &'static str,
    key: SigningKey,
    end: Option<(u64, Hash)>,
    lines: Vec<String>,
}

impl Writer {
    fn new(chain_id: &'static str, seed: u8) -> Writer {
        let key = SigningKey::from_seed(&[seed; 32]);
        Writer { chain_id, key, end: None, lines: Vec::new() }
    }

    /// Creates a chain that follows another.
    fn after(chain_id: &'static str, seed: u8, before: &Writer) -> Writer {
        let mut writer = Writer::new(chain_id, seed);
        writer.write("data.api.read", naming("preceding_chain", before), None, None);
        writer
    }

    fn call(mut self) -> Writer {
        self.write("data.api.read", Runtime::new(), None, None);
        self
    }

    fn close(mut self) -> Writer {
        let end = Some(Termination::Complete);
        self.write("agent_receipts.chain_closed", Runtime::new(), None, end);
        self
    }

    fn expire(mut self, gone: &Writer) -> Writer {
        self.write(CHAIN_EXPIRED, naming("expired_chain", gone), None, None);
        self
    }

    fn rotate(mut self, seed: u8) -> Writer {
        let new = SigningKey::from_seed(&[seed; 32]);
        let rotation = Rotation::new(&self.key.public(), &new.public());
        self.write("agent.key.rotate", Runtime::new(), Some(rotation), None);
        self.key = new;
        self
    }

    fn write(
        &mut self,
        action_type: &str,
        runtime: Runtime<'_>,
        rotation: Option<Rotation>,
        termination: Option<Termination>,
    ) {
        let did = self.key.public().did();
        let receipt = Receipt {
            id: ID,
            issuer: Issuer { id: &did, runtime, ..Issuer::default() },
            issued_at: TIME,
            principal: Principal { id: &did, kind: None },
            action: Action {
                id: ID,
                action_type,
                risk: RiskLevel::Low,
                target: None,
                parameters_hash: None,
                peer: None,
                drop_count: None,
                timestamp: TIME,
                idempotency_key: None,
            },
            outcome: ReceiptOutcome {
                status: OutcomeStatus::Success,
                error: None,
                response_hash: None,
            },
            correlation_id: None,
            rotation,
        };
        let (sequence, previous) = self.end.map_or((1, None), |(at, hash)| (at + 1, Some(hash)));
        let body =
            receipt.body(&Position { chain_id: self.chain_id, sequence, previous, termination });
        self.end = Some((sequence, body.hash()));
        self.lines.push(body.sign(&self.key, TIME));
    }
}

fn place_of(other: &Writer) -> Runtime<'static> {
    let (sequence, hash) = other.end.unwrap();
    let mut chain = Runtime::new();
    chain.insert("chain_id", other.chain_id);
    chain.insert("sequence", sequence);
    chain.insert("hash", hash);
    chain
}

fn naming(name: &'static str, other: &Writer) -> Runtime<'static> {
    let mut runtime = Runtime::new();
    runtime.insert(name, place_of(other));
    runtime
}

fn audit<'a>(lines: impl IntoIterator<Item = &'a String>, only: Option<&str>) -> Audit {
    let trusted = vec![SigningKey::from_seed(&[1; 32]).public()];
    let mut audit = Audit::new(trusted, only.map(str::to_owned), AuditDetail::Chains).unwrap();
    for line in lines {
        audit.push(line).unwrap();
    }
    audit
}

/// Returns `(chain, error)` for each broken chain.
fn broken<'a>(lines: impl IntoIterator<Item = &'a String>) -> Vec<(String, String)> {
    let outcome = audit(lines, None).finish(AuditScope::All, ChainExpectation::default());
    let broken = outcome.reports.into_iter().filter(|report| !report.valid);
    broken.map(|report| (report.chain_id, report.error.unwrap())).collect()
}

#[test]
fn chains_verify_in_any_order_and_interleaved() {
    let a = Writer::new("a", 1).call().call();
    let b = Writer::after("b", 1, &a).close();
    let a = a.call().close();
    for lines in [
        a.lines.iter().chain(&b.lines).collect::<Vec<_>>(),
        b.lines.iter().chain(&a.lines).collect(),
        vec![&a.lines[0], &b.lines[0], &a.lines[1], &a.lines[2], &b.lines[1], &a.lines[3]],
    ] {
        assert_eq!(broken(lines), []);
    }
    // Truncation goes undetected if no later chain refers to the missing part; otherwise it is
    // detected.
    assert_eq!(broken(a.lines[..2].iter().chain(&b.lines)), []);
    let found = broken(a.lines[..1].iter().chain(&b.lines));
    assert_eq!(found.len(), 1);
    assert!(found[0].1.contains("the chain has 1 receipts, but had 2 when chain b began"));
}

#[test]
fn a_chain_named_by_another_must_exist_unless_it_expired() {
    let a = Writer::new("a", 1).call().close();
    let b = Writer::after("b", 1, &a).close();
    let c = Writer::after("c", 1, &b);
    let found = broken(b.lines.iter().chain(&c.lines));
    assert_eq!(
        found,
        [(
            "a".to_owned(),
            "the chain is missing: chain b names it as its preceding chain".to_owned()
        )]
    );
    let c = c.expire(&a);
    assert_eq!(broken(b.lines.iter().chain(&c.lines)), []);
    // Only an intact receipt can say so.
    let forged = c.lines[1].replace("\"low\"", "\"high\"");
    let found = broken(b.lines.iter().chain([&c.lines[0], &forged]));
    assert_eq!(found.iter().map(|(chain, _)| &**chain).collect::<Vec<_>>(), ["c", "a"]);
}

#[test]
fn a_rewritten_chain_is_detected() {
    let a = Writer::new("a", 1).call().close();
    let b = Writer::after("b", 1, &a);
    let anew = Writer::new("a", 1).expire(&b).close();
    let found = broken(anew.lines.iter().chain(&b.lines));
    assert_eq!(found.len(), 1);
    assert!(found[0].1.contains("receipt 2 has changed since chain b began"));
}

#[test]
fn trust_extends_to_the_key_named_in_a_rotation() {
    let a = Writer::new("a", 1).call().rotate(2).close();
    let b = Writer::after("b", 2, &a).call();
    assert_eq!(broken(a.lines.iter().chain(&b.lines)), []);
    let found = broken(b.lines.iter().chain(&a.lines));
    assert_eq!(found.len(), 1, "it is not known yet");
    let stranger = Writer::after("s", 3, &a);
    let found = broken(a.lines.iter().chain(&stranger.lines));
    assert!(found[0].1.contains("signed with another key"), "{found:?}");
}

#[test]
fn a_single_chain_is_checked_against_what_other_chains_say() {
    let a = Writer::new("a", 1).call().close();
    let b = Writer::after("b", 1, &a).call();
    let forged = b.lines[1].replace("\"low\"", "\"high\"");
    let of = |lines: &[&String], only: &str| {
        let outcome = audit(lines.iter().copied(), Some(only))
            .finish(AuditScope::All, ChainExpectation::default());
        outcome
            .reports
            .into_iter()
            .map(|report| (report.chain_id, report.valid))
            .collect::<Vec<_>>()
    };
    let all = [&a.lines[0], &a.lines[1], &b.lines[0], &forged];
    assert_eq!(of(&all, "a"), [("a".to_owned(), true)]);
    assert_eq!(of(&all, "b"), [("b".to_owned(), false)]);
    assert_eq!(of(&[&a.lines[0], &b.lines[0]], "a"), [("a".to_owned(), false)]);
    assert!(audit(&a.lines, Some("x")).is_empty());
}

#[test]
fn a_chain_that_must_have_ended_needs_its_terminal_receipt() {
    let a = Writer::new("a", 1).call().close();
    let end = |lines: &[String]| {
        let mut audit = audit(lines, None);
        audit.must_have_ended("a");
        audit.finish(AuditScope::All, ChainExpectation::default()).reports.remove(0)
    };
    assert!(end(&a.lines).valid);
    for lines in [&a.lines[..1], &[]] {
        let report = end(lines);
        assert!(!report.valid && report.error.unwrap().contains("the end of the chain is missing"));
    }
}

fn head_of(writer: &Writer) -> Head {
    let (length, hash) = writer.end.unwrap();
    Head { chain_id: writer.chain_id.to_owned(), length, hash }
}

impl Writer {
    /// Names the heads of these chains and its own.
    fn checkpoint(mut self, others: &[&Writer], previous: Option<Head>) -> Writer {
        let mut heads: Vec<Head> = others.iter().map(|other| head_of(other)).collect();
        heads.extend(self.end.map(|_| head_of(&self)));
        heads.sort_by(|a, b| a.chain_id.cmp(&b.chain_id));
        let (count, digest) = (heads.len() as u64, checkpoint::digest(&heads));
        self.state(&Checkpoint { heads, omitted: 0, count, digest, decisions: 0, previous });
        self
    }

    fn state(&mut self, checkpoint: &Checkpoint) {
        let mut runtime = Runtime::new();
        runtime.insert(checkpoint::MEMBER, checkpoint.runtime());
        self.write(checkpoint::ACTION_TYPE, runtime, None, None);
    }
}

#[test]
fn a_cut_end_shows_if_a_checkpoint_names_it() {
    let a = Writer::new("a", 1).call().call().call();
    let b = Writer::new("b", 1).call().checkpoint(&[&a], None);
    assert_eq!(broken(a.lines.iter().chain(&b.lines)), []);
    let found = broken(a.lines[..2].iter().chain(&b.lines));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0].1,
        "the chain has 2 receipts, but had 3 at the checkpoint in receipt 2 of chain b: the end of \
         the chain is missing"
    );
    let found = broken(&b.lines);
    assert_eq!(found[0].1, "the chain is missing: the checkpoint in receipt 2 of chain b names it");
    // A checkpoint that is not intact says nothing, but breaks its own chain.
    let forged = b.lines[1].replace("\"low\"", "\"high\"");
    let found = broken(a.lines[..2].iter().chain([&b.lines[0], &forged]));
    assert_eq!(found.iter().map(|(chain, _)| &**chain).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn checkpoints_are_replayed_in_their_order_whatever_the_order_of_chains() {
    let a = Writer::new("a", 1).call();
    let b = Writer::new("b", 1).call().checkpoint(&[&a], None);
    let first = head_of(&b);
    let a = a.call();
    let a = a.checkpoint(&[&b], Some(first.clone()));
    let second = head_of(&a);
    let b = b.checkpoint(&[&a], Some(second));
    for lines in [
        a.lines.iter().chain(&b.lines).collect::<Vec<_>>(),
        b.lines.iter().chain(&a.lines).collect(),
    ] {
        assert_eq!(broken(lines), []);
    }
    let c = Writer::new("c", 1).call().checkpoint(&[&a, &b], Some(first));
    let found = broken(a.lines.iter().chain(&b.lines).chain(&c.lines));
    assert!(found.iter().any(|(_, error)| error.contains("an earlier copy")), "{found:?}");
}

#[test]
fn the_digest_of_the_last_checkpoint_is_that_of_all_heads() {
    let a = Writer::new("a", 1).call().close();
    let mut b = Writer::new("b", 1).call().checkpoint(&[&a], None);
    let previous = Some(head_of(&b));
    let heads = vec![head_of(&b)];
    let digest = checkpoint::digest(&[head_of(&a), head_of(&b)]);
    let right = Checkpoint { heads, omitted: 0, count: 2, digest, decisions: 0, previous };
    let cases = [
        (right.clone(), 0),
        (Checkpoint { digest: Hash::of(b"other"), ..right.clone() }, 1),
        (Checkpoint { digest: Hash::of(b"other"), omitted: 1, ..right.clone() }, 0),
        (Checkpoint { digest: Hash::of(b"other"), count: 3, ..right.clone() }, 0),
    ];
    let (end, length) = (b.end, b.lines.len());
    for (checkpoint, faults) in cases {
        b.state(&checkpoint);
        let found = broken(a.lines.iter().chain(&b.lines));
        assert_eq!(found.len(), faults, "{checkpoint:?}: {found:?}");
        (b.end, _) = (end, b.lines.truncate(length));
    }
}

#[test]
fn a_chain_cannot_have_expired_with_less_than_it_had() {
    let a = Writer::new("a", 1).call().call();
    let b = Writer::new("b", 1).call().checkpoint(&[&a], None);
    let fair = Writer::new("c", 1).expire(&a);
    assert_eq!(broken(b.lines.iter().chain(&fair.lines)), []);
    // The chain that states it may expire as well, if the next one states both.
    let mut runtime = naming("expired_chain", &fair);
    runtime.insert("expired_before", vec![place_of(&a)]);
    let mut later = Writer::new("d", 1);
    later.write(CHAIN_EXPIRED, runtime, None, None);
    assert_eq!(broken(b.lines.iter().chain(&later.lines)), []);
    let cut = Writer::new("a", 1).call();
    let unfair = Writer::new("c", 1).expire(&cut);
    let found = broken(b.lines.iter().chain(&unfair.lines));
    assert!(found[0].1.contains("expired with 1 receipts, but had 2"), "{found:?}");
}

#[test]
fn what_was_kept_elsewhere_must_still_be_there() {
    let a = Writer::new("a", 1).call().checkpoint(&[], None).call();
    let (kept, other) = (&a.lines[1], Writer::new("b", 2).call().checkpoint(&[], None));
    let line = |receipt: &str| -> HeadLine {
        HeadLine::of(&serde_json::from_str(receipt).unwrap()).unwrap()
    };
    let errors = |lines: &[String], require: &dyn Fn(&mut Audit)| -> Vec<String> {
        let mut audit = audit(lines, None);
        require(&mut audit);
        let outcome = audit.finish(AuditScope::All, ChainExpectation::default());
        outcome.reports.into_iter().filter_map(|report| report.error).collect()
    };
    let require = |audit: &mut Audit, raw: &str, decisions| {
        assert_eq!(audit.require("kept.json", raw), decisions);
    };
    let receipt = |audit: &mut Audit| require(audit, kept, Some(0));
    let digest = |audit: &mut Audit| audit.require_digest(line(kept).digest, Some(1));
    for require in [&receipt as &dyn Fn(&mut Audit), &digest] {
        assert_eq!(errors(&a.lines, require), [] as [&str; 0]);
        assert_eq!(errors(&a.lines[..1], require).len(), 1);
    }
    let noise = |audit: &mut Audit| require(audit, "noise", None);
    assert!(errors(&a.lines, &noise)[0].contains("kept.json is not a checkpoint"));
    let foreign = |audit: &mut Audit| require(audit, &other.lines[1], Some(0));
    assert!(errors(&a.lines, &foreign)[0].contains("the chain is missing"));
    let wrong = |audit: &mut Audit| audit.require_digest(line(kept).digest, Some(2));
    assert!(errors(&a.lines, &wrong)[0].contains("no checkpoint has the head"));
}

#[test]
fn receipts_that_are_committed_and_not_signed_yet_are_not_missing() {
    let a = Writer::new("a", 1).call().call();
    let b = Writer::after("b", 1, &a);
    let faults = |promised: Hash| {
        let mut audit = audit(a.lines[..1].iter().chain(&b.lines), None);
        audit.expect_later("a", vec![(2, promised)]);
        let outcome = audit.finish(AuditScope::All, ChainExpectation::default());
        outcome.reports.iter().map(|report| report.faults).sum::<u64>()
    };
    assert_eq!((faults(head_of(&a).hash), faults(Hash::of(b"other"))), (0, 1));
}

#[test]
fn every_fault_is_counted_and_the_first_one_is_shown() {
    let a = Writer::new("a", 1).call().call().call().close();
    let mut lines = a.lines.clone();
    for place in [0, 2] {
        lines[place] = lines[place].replace("\"low\"", "\"high\"");
    }
    let mut audit = audit(&lines, None);
    audit.fault("a", Some(1), "found elsewhere".to_owned());
    let report = audit.finish(AuditScope::All, ChainExpectation::default()).reports.remove(0);
    assert_eq!((report.valid, report.broken_at), (false, Some(0)));
    // Two signatures, the two links after them, and the fault that others found.
    assert_eq!(report.faults, 5);
    assert!(report.error.unwrap().contains("signature"), "not the last");
}

#[test]
fn a_single_chain_hears_the_checkpoints_of_others() {
    let a = Writer::new("a", 1).call().call();
    let b = Writer::new("b", 1).call().checkpoint(&[&a], None);
    let valid = |lines: &[String], heard: &str| {
        let mut audit = audit(lines, Some("a"));
        audit.hear(heard);
        audit.finish(AuditScope::All, ChainExpectation::default()).is_valid()
    };
    assert!(valid(&a.lines, &b.lines[1]));
    assert!(!valid(&a.lines[..1], &b.lines[1]));
    assert!(valid(&a.lines[..1], &b.lines[1].replace("\"low\"", "\"high\"")), "not signed");
}
