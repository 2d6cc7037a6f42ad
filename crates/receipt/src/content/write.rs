//! The canonical text of a receipt, written directly in the order of its names: `Value` and sorting
//! would cost ten times as much. A property test compares it with the general method.

use crate::Hash;
use crate::canonical::{write_integer, write_text};
use crate::content::parts::{
    Action, Issuer, PeerCredential, Position, Principal, Receipt, ReceiptOutcome,
};

pub(super) const HEAD: &str = r#"{"@context":["https://www.w3.org/ns/credentials/v2","https://agentreceipts.ai/context/v2"],"credentialSubject":{"#;
/// The text after the proof.
pub(super) const TAIL: &str =
    r#","type":["VerifiableCredential","AgentReceipt"],"version":"0.5.0"}"#;

pub(super) fn receipt(receipt: &Receipt<'_>, position: &Position<'_>) -> String {
    let mut out = String::with_capacity(2048);
    out.push_str(HEAD);
    let mut subject = MemberWriter::new(&mut out);
    action(subject.member("action"), &receipt.action);
    chain(subject.member("chain"), position);
    subject.text_if("correlation_id", receipt.correlation_id);
    if let Some(rotation) = &receipt.rotation {
        rotation.write(subject.member("keyRotation"));
    }
    outcome(subject.member("outcome"), &receipt.outcome);
    principal(subject.member("principal"), &receipt.principal);
    out.push_str(r#"},"id":"urn:receipt:"#);
    out.push_str(receipt.id);
    out.push_str(r#"","issuanceDate":"#);
    write_text(&mut out, receipt.issued_at);
    out.push_str(r#","issuer":"#);
    issuer(&mut out, &receipt.issuer);
    out.push_str(TAIL);
    out
}

fn action(out: &mut String, action: &Action<'_>) {
    out.push('{');
    let mut members = MemberWriter::new(out);
    if let Some(count) = action.drop_count {
        MemberWriter::object(members.member("emitter_metadata"), |part| {
            part.integer("drop_count", count.into());
        });
    }
    action_id(members.member("id"), action.id);
    members.text_if("idempotency_key", action.idempotency_key);
    members.hash_if("parameters_hash", action.parameters_hash);
    if let Some(peer) = &action.peer {
        peer_credential(members.member("peer_credential"), peer);
    }
    members.word("risk_level", action.risk.as_str());
    if let Some(target) = &action.target {
        MemberWriter::object(members.member("target"), |part| {
            part.text_if("resource", target.resource);
            part.text("system", target.system);
        });
    }
    members.text("timestamp", action.timestamp);
    members.text("type", action.action_type);
    out.push('}');
}

fn action_id(out: &mut String, id: &str) {
    out.push_str(r#""act_"#);
    out.push_str(id);
    out.push('"');
}

fn peer_credential(out: &mut String, peer: &PeerCredential<'_>) {
    out.push('{');
    let mut members = MemberWriter::new(out);
    members.text_if("exe_path", peer.exe_path);
    members.integer_if("gid", peer.gid);
    members.integer("pid", peer.pid.into());
    members.text("platform", peer.platform);
    members.integer_if("uid", peer.uid);
    out.push('}');
}

fn chain(out: &mut String, position: &Position<'_>) {
    out.push('{');
    let mut members = MemberWriter::new(out);
    members.text("chain_id", position.chain_id);
    match position.previous {
        Some(hash) => members.hash_if("previous_receipt_hash", Some(hash)),
        None => members.member("previous_receipt_hash").push_str("null"),
    }
    let sequence = i64::try_from(position.sequence).expect("a chain ends long before 2^63");
    members.integer("sequence", sequence);
    if let Some(termination) = position.termination {
        members.word("status", termination.as_str());
        members.member("terminal").push_str("true");
    }
    out.push('}');
}

fn outcome(out: &mut String, outcome: &ReceiptOutcome<'_>) {
    out.push('{');
    let mut members = MemberWriter::new(out);
    members.text_if("error", outcome.error);
    members.hash_if("response_hash", outcome.response_hash);
    members.word("status", outcome.status.as_str());
    out.push('}');
}

fn principal(out: &mut String, principal: &Principal<'_>) {
    out.push('{');
    let mut members = MemberWriter::new(out);
    members.text("id", principal.id);
    if let Some(kind) = principal.kind {
        members.word("type", kind.as_str());
    }
    out.push('}');
}

fn issuer(out: &mut String, issuer: &Issuer<'_>) {
    out.push('{');
    let mut members = MemberWriter::new(out);
    members.text("id", issuer.id);
    members.text_if("model", issuer.model);
    members.text_if("name", issuer.name);
    if let Some(operator) = &issuer.operator {
        MemberWriter::object(members.member("operator"), |part| {
            part.text("id", operator.id);
            part.text("name", operator.name);
        });
    }
    if !issuer.runtime.is_empty() {
        issuer.runtime.write(members.member("runtime"));
    }
    members.text_if("session_id", issuer.session_id);
    out.push('}');
}

/// Writes the members of one object. The caller passes them in canonical order.
struct MemberWriter<'a> {
    out: &'a mut String,
    first: bool,
}

impl<'a> MemberWriter<'a> {
    fn new(out: &'a mut String) -> MemberWriter<'a> {
        MemberWriter { out, first: true }
    }

    fn object(out: &'a mut String, write: impl FnOnce(&mut MemberWriter<'_>)) {
        out.push('{');
        write(&mut MemberWriter::new(out));
        out.push('}');
    }

    /// Begins a member and returns the string to write its value to.
    fn member(&mut self, name: &str) -> &mut String {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self.out
    }

    fn text(&mut self, name: &str, text: &str) {
        write_text(self.member(name), text);
    }

    /// Also omits empty text: the format requires at least one character.
    fn text_if(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.text(name, text);
        }
    }

    /// Writes one of our own words, which needs no escapes.
    fn word(&mut self, name: &str, word: &str) {
        let out = self.member(name);
        out.push('"');
        out.push_str(word);
        out.push('"');
    }

    fn hash_if(&mut self, name: &str, hash: Option<Hash>) {
        if let Some(hash) = hash {
            let out = self.member(name);
            out.push('"');
            hash.write(out);
            out.push('"');
        }
    }

    fn integer(&mut self, name: &str, value: i64) {
        write_integer(self.member(name), value);
    }

    fn integer_if(&mut self, name: &str, value: Option<u32>) {
        if let Some(value) = value {
            self.integer(name, value.into());
        }
    }
}
