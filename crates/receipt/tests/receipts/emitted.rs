//! Our receipts are valid under the format's schema, canonical, and equal to what the general
//! method produces from the same content.

use std::borrow::Cow;

use proptest::prelude::*;
use receipt::RiskLevel;
use receipt::content::{
    Action, ActionTarget, Body, Issuer, Operator, OutcomeStatus, PeerCredential, Position,
    Principal, PrincipalKind, Receipt, ReceiptOutcome, Termination,
};
use receipt::{Hash, Runtime, canonical, verify};
use serde_json::{Value, json};

use crate::sample::{self, CHAIN, TIME, key, vector};

fn position(sequence: u64, termination: Option<Termination>) -> Position<'static> {
    let previous = (sequence > 1).then(|| Hash::of(b"the one before"));
    Position { chain_id: CHAIN, sequence, previous, termination }
}

fn shapes(issuer: &str) -> Vec<(&'static str, Receipt<'_>, Position<'static>)> {
    let (old, new) = (key(1).public(), key(2).public());
    vec![
        ("minimal", sample::minimal(issuer), position(1, None)),
        ("full", sample::full(issuer), position(2, None)),
        ("refused", sample::refused(issuer), position(3, None)),
        ("complete", sample::minimal(issuer), position(4, Some(Termination::Complete))),
        ("interrupted", sample::minimal(issuer), position(4, Some(Termination::Interrupted))),
        ("rotation", sample::rotation(issuer, &old, &new), position(5, None)),
        ("from outside", sample::from_outside(issuer), position(6, None)),
    ]
}

#[test]
fn every_shape_is_valid_by_the_schema_canonical_and_verifies() {
    let schema = jsonschema::options()
        .should_validate_formats(true)
        .build(&vector("spec/schema/agent-receipt.schema.json"))
        .unwrap();
    let issuer = key(1).public().did();
    for (name, receipt, position) in shapes(&issuer) {
        let body = receipt.body(&position);
        let signed = body.sign(&key(1), TIME);
        let value: Value = serde_json::from_str(&signed).unwrap();
        let faults: Vec<_> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(faults, [] as [&str; 0], "{name}: {signed}");
        assert_eq!(canonical::value(&value), signed, "{name}");
        assert_eq!(canonical::receipt(&value).unwrap(), body.text(), "{name}");
        let checked = verify::receipt(&signed, &key(1).public()).unwrap();
        assert_eq!((checked.hash, checked.body()), (body.hash(), body.text()), "{name}");
    }
}

#[test]
fn the_schema_test_can_fail() {
    let schema = jsonschema::options()
        .should_validate_formats(true)
        .build(&vector("spec/schema/agent-receipt.schema.json"))
        .unwrap();
    let mut receipt = sample::minimal("did:key:z");
    receipt.issued_at = "yesterday";
    let signed = receipt.body(&position(1, None)).sign(&key(1), TIME);
    assert!(!schema.is_valid(&serde_json::from_str(&signed).unwrap()));
}

#[test]
fn a_body_left_by_another_process_is_signed_from_its_text() {
    let issuer = key(1).public().did();
    for (name, receipt, position) in shapes(&issuer) {
        let body = receipt.body(&position);
        let again = Body::from_text(body.text().to_owned()).unwrap();
        assert_eq!(again, body, "{name}");
        assert_eq!(again.sign(&key(1), TIME), body.sign(&key(1), TIME), "{name}");
    }
}

#[test]
fn a_text_that_is_not_a_valid_body_is_rejected() {
    let body = sample::full("did:key:z").body(&position(1, None));
    let text = body.text();
    for bad in [
        String::new(),
        "{}".to_owned(),
        text.replace("0.5.0", "0.4.0"),
        text.replace("\"sequence\":1", "\"sequence\": 1"),
        text.replace("\"sequence\":1", "\"sequence\":1,\"sequence\":1"),
        text[..text.len() - 1].to_owned(),
        body.sign(&key(1), TIME),
    ] {
        assert!(Body::from_text(bad.clone()).is_err(), "{bad}");
    }
}

#[derive(Clone, Debug)]
struct Content {
    texts: Vec<String>,
    some: Vec<bool>,
    numbers: (u32, i32, f64, i64),
    choice: usize,
}

fn content() -> impl Strategy<Value = Content> {
    let texts = prop::collection::vec("(?s).{1,12}|[\"\\\\\u{1}\n😀\u{e000}]{1,4}", 24);
    let some = prop::collection::vec(any::<bool>(), 16);
    let numbers = (any::<u32>(), any::<i32>(), -1e15..1e15, -(1i64 << 53)..1i64 << 53);
    (texts, some, numbers, 0usize..12).prop_map(|(texts, some, numbers, choice)| Content {
        texts,
        some,
        numbers,
        choice,
    })
}

impl Content {
    fn text(&self, at: usize) -> &str {
        &self.texts[at]
    }

    fn maybe(&self, at: usize) -> Option<&str> {
        self.some[at].then(|| self.text(at))
    }

    fn hash(&self, at: usize) -> Option<Hash> {
        self.some[at].then(|| Hash::of(self.text(at).as_bytes()))
    }

    fn risk(&self) -> RiskLevel {
        [RiskLevel::Low, RiskLevel::Medium, RiskLevel::High, RiskLevel::Critical][self.choice % 4]
    }

    fn status(&self) -> OutcomeStatus {
        [OutcomeStatus::Success, OutcomeStatus::Failure, OutcomeStatus::Pending][self.choice % 3]
    }

    fn receipt(&self) -> Receipt<'_> {
        let mut inner = Runtime::new();
        inner.insert(self.text(12), self.numbers.2);
        inner.insert(self.text(13), vec![Cow::from(self.text(14)), Cow::from(self.text(15))]);
        let mut runtime = Runtime::new();
        runtime.insert(self.text(16), self.text(17));
        runtime.insert(self.text(18), self.numbers.3);
        runtime.insert(self.text(19), self.some[12]);
        runtime.insert(self.text(20), inner);
        let mut receipt = sample::minimal(self.text(21));
        receipt.issuer = Issuer {
            id: self.text(21),
            name: self.maybe(0),
            operator: self.some[1].then(|| Operator { id: self.text(1), name: self.text(2) }),
            model: self.maybe(3),
            session_id: self.maybe(4),
            runtime,
        };
        receipt.issued_at = self.text(22);
        let kind = self.some[5].then_some(PrincipalKind::Organization);
        receipt.principal = Principal { id: self.text(23), kind };
        receipt.action = self.action();
        receipt.outcome = ReceiptOutcome {
            status: self.status(),
            error: self.maybe(6),
            response_hash: self.hash(7),
        };
        receipt.correlation_id = self.maybe(8);
        receipt
    }

    fn action(&self) -> Action<'_> {
        Action {
            id: "0193f2a0-2222-7222-8222-222222222222",
            action_type: self.text(9),
            risk: self.risk(),
            target: self.some[9]
                .then(|| ActionTarget { system: self.text(10), resource: self.maybe(10) }),
            parameters_hash: self.hash(11),
            peer: self.some[13].then(|| PeerCredential {
                platform: self.text(11),
                pid: self.numbers.1,
                uid: self.some[14].then_some(self.numbers.0),
                gid: self.some[15].then_some(self.numbers.0),
                exe_path: self.maybe(12),
            }),
            drop_count: self.some[14].then_some(self.numbers.0),
            timestamp: self.text(5),
            idempotency_key: self.maybe(13),
        }
    }

    /// Returns the same content as a tree, with null for missing values.
    fn tree(&self, position: &Position<'_>) -> Value {
        let receipt = self.receipt();
        let (issuer, action) = (&receipt.issuer, &receipt.action);
        let mut inner = json!({ self.text(12): self.numbers.2 });
        inner[self.text(13)] = json!([self.text(14), self.text(15)]);
        let mut runtime = json!({ self.text(16): self.text(17) });
        runtime[self.text(18)] = json!(self.numbers.3);
        runtime[self.text(19)] = json!(self.some[12]);
        runtime[self.text(20)] = inner;
        json!({
            "version": "0.5.0",
            "type": ["VerifiableCredential", "AgentReceipt"],
            "@context": ["https://www.w3.org/ns/credentials/v2", "https://agentreceipts.ai/context/v2"],
            "id": format!("urn:receipt:{}", receipt.id),
            "issuer": {
                "id": issuer.id, "name": issuer.name, "model": issuer.model,
                "session_id": issuer.session_id, "runtime": runtime,
                "operator": issuer.operator.map(|operator| json!({"id": operator.id, "name": operator.name})),
            },
            "issuanceDate": receipt.issued_at,
            "credentialSubject": {
                "principal": {"id": receipt.principal.id, "type": self.some[5].then_some("OrganizationPrincipal")},
                "action": {
                    "id": format!("act_{}", action.id), "type": action.action_type,
                    "risk_level": action.risk.as_str(), "timestamp": action.timestamp,
                    "target": action.target.map(|target| json!({"system": target.system, "resource": target.resource})),
                    "parameters_hash": action.parameters_hash, "idempotency_key": action.idempotency_key,
                    "peer_credential": action.peer.map(|peer| json!({
                        "platform": peer.platform, "pid": peer.pid, "uid": peer.uid, "gid": peer.gid, "exe_path": peer.exe_path})),
                    "emitter_metadata": action.drop_count.map(|count| json!({"drop_count": count})),
                },
                "outcome": {"status": self.status().as_str(), "error": receipt.outcome.error, "response_hash": receipt.outcome.response_hash},
                "chain": {
                    "chain_id": position.chain_id, "sequence": position.sequence,
                    "previous_receipt_hash": position.previous,
                    "terminal": position.termination.map(|_| true),
                    "status": position.termination.map(Termination::as_str),
                },
                "correlation_id": receipt.correlation_id,
            },
        })
    }
}

/// Canonicalizes a tree with another implementation.
fn general(mut tree: Value) -> String {
    fn prune(value: &mut Value) {
        if let Value::Object(members) = value {
            members.retain(|name, member| name == "previous_receipt_hash" || !member.is_null());
            members.values_mut().for_each(prune);
        }
    }
    prune(&mut tree);
    serde_json_canonicalizer::to_string(&tree).unwrap()
}

proptest! {
    #[test]
    fn a_body_equals_the_general_serialization_of_its_content(content in content()) {
        let end = [None, Some(Termination::Complete), Some(Termination::Interrupted)];
        let position = position(content.choice as u64 % 2 + 1, end[content.choice % 3]);
        let body = content.receipt().body(&position);
        prop_assert_eq!(body.text(), general(content.tree(&position)));
        prop_assert_eq!(body.hash(), Hash::of(body.text().as_bytes()));
        prop_assert!(Body::from_text(body.text().to_owned()).is_ok());
    }
}
