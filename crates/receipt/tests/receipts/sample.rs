//! Sample receipts and chains for the other tests.

use receipt::RiskLevel;
use receipt::content::{
    Action, ActionTarget, Issuer, Operator, OutcomeStatus, PeerCredential, Position, Principal,
    PrincipalKind, Receipt, ReceiptOutcome, Termination,
};
use receipt::rotation::{ACTION_TYPE, Rotation};
use receipt::{Hash, PublicKey, Runtime, SigningKey};
use serde_json::Value;

pub(crate) const TIME: &str = "2026-11-15T05:30:00.123Z";
pub(crate) const CHAIN: &str = "chain_0193f2a0-0000-7000-8000-000000000001";
const ID: &str = "0193f2a0-1111-7111-8111-111111111111";
const ACTION_ID: &str = "0193f2a0-2222-7222-8222-222222222222";

pub(crate) fn vector(name: &str) -> Value {
    serde_json::from_str(&vector_text(name)).unwrap()
}

pub(crate) fn vector_text(name: &str) -> String {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32])
}

pub(crate) fn minimal(issuer: &str) -> Receipt<'_> {
    Receipt {
        id: ID,
        issuer: Issuer { id: issuer, ..Issuer::default() },
        issued_at: TIME,
        principal: Principal { id: "did:user:me", kind: None },
        action: Action {
            id: ACTION_ID,
            action_type: "filesystem.file.read",
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
        rotation: None,
    }
}

pub(crate) fn full(issuer: &str) -> Receipt<'_> {
    let mut nested = Runtime::new();
    nested.insert("class", "write");
    nested.insert("certain", true);
    let mut runtime = Runtime::new();
    runtime.insert("tool", "create_issue");
    runtime.insert("server", "github");
    runtime.insert("effective", nested);
    runtime.insert("warnings", ["a \"quoted\" one", "zwölf\n"].as_slice());
    runtime.insert("duration_ms", 12.5);
    runtime.insert("raw_bytes", 123_456u32);
    let mut receipt = minimal(issuer);
    receipt.issuer.name = Some("Countersign");
    receipt.issuer.operator = Some(Operator { id: "did:org:acme", name: "Acme \\ Söhne" });
    receipt.issuer.model = Some("some-model");
    receipt.issuer.session_id = Some("session-1");
    receipt.issuer.runtime = runtime;
    receipt.principal.kind = Some(PrincipalKind::Human);
    receipt.action.action_type = "data.api.write";
    receipt.action.risk = RiskLevel::Medium;
    receipt.action.target = Some(ActionTarget { system: "github", resource: Some("me/project") });
    receipt.action.parameters_hash = Some(Hash::of(b"parameters"));
    receipt.action.idempotency_key = Some("7");
    receipt.outcome.response_hash = Some(Hash::of(b"response"));
    receipt.correlation_id = Some("toolu_01");
    receipt
}

pub(crate) fn refused(issuer: &str) -> Receipt<'_> {
    let mut receipt = minimal(issuer);
    receipt.action.action_type = "unknown";
    receipt.action.risk = RiskLevel::High;
    receipt.action.target = Some(ActionTarget { system: "github", resource: None });
    receipt.outcome = ReceiptOutcome {
        status: OutcomeStatus::Failure,
        error: Some("INTENT_MISMATCH"),
        response_hash: None,
    };
    receipt
}

pub(crate) fn from_outside(issuer: &str) -> Receipt<'_> {
    let mut receipt = minimal(issuer);
    receipt.action.action_type = "agent_receipts.events_dropped";
    receipt.action.drop_count = Some(3);
    receipt.action.peer = Some(PeerCredential {
        platform: "linux",
        pid: 4711,
        uid: Some(1000),
        gid: Some(100),
        exe_path: Some("/usr/bin/agent"),
    });
    receipt
}

pub(crate) fn rotation<'a>(issuer: &'a str, old: &PublicKey, new: &PublicKey) -> Receipt<'a> {
    let mut receipt = minimal(issuer);
    receipt.action.action_type = ACTION_TYPE;
    receipt.action.risk = RiskLevel::High;
    receipt.rotation = Some(Rotation::new(old, new));
    receipt
}

/// A chain under construction.
pub(crate) struct Author {
    pub(crate) chain_id: &'static str,
    pub(crate) signed: Vec<String>,
    pub(crate) last: Option<Hash>,
}

impl Author {
    pub(crate) fn new(chain_id: &'static str) -> Author {
        Author { chain_id, signed: Vec::new(), last: None }
    }

    pub(crate) fn add(
        &mut self,
        receipt: &Receipt<'_>,
        key: &SigningKey,
        termination: Option<Termination>,
    ) {
        let sequence = self.signed.len() as u64 + 1;
        let position =
            Position { chain_id: self.chain_id, sequence, previous: self.last, termination };
        let body = receipt.body(&position);
        self.last = Some(body.hash());
        self.signed.push(body.sign(key, TIME));
    }
}

/// Returns a chain of five receipts: three signed by the first key, of which the third rotates to
/// the second; the last is terminal.
pub(crate) fn chain() -> Author {
    let (old, new) = (key(1), key(2));
    let (first, second) = (old.public().did(), new.public().did());
    let mut author = Author::new(CHAIN);
    author.add(&minimal(&first), &old, None);
    author.add(&full(&first), &old, None);
    author.add(&rotation(&first, &old.public(), &new.public()), &old, None);
    author.add(&refused(&second), &new, None);
    author.add(&minimal(&second), &new, Some(Termination::Complete));
    author
}
