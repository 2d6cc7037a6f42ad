//! Hand-made chains, and what the audit detects when they are altered.

use super::*;
use crate::RiskLevel;
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

fn naming(name: &'static str, other: &Writer) -> Runtime<'static> {
    let (sequence, hash) = other.end.unwrap();
    let mut chain = Runtime::new();
    chain.insert("chain_id", other.chain_id);
    chain.insert("sequence", sequence);
    chain.insert("hash", hash);
    let mut runtime = Runtime::new();
    runtime.insert(name, chain);
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
