//! Edits of files and receipts that SQL alone cannot express.

use std::path::Path;

use receipt::content::{
    Action, Issuer, OutcomeStatus, Position, Principal, Receipt, ReceiptOutcome, Termination,
};
use receipt::verify::SignedReceipt;
use receipt::{RiskLevel, SigningKey};
use serde_json::Value;

pub(super) fn change(home: &Path, name: &str, change: impl FnOnce(String) -> String) {
    let file = home.join(name);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(file, change(text)).unwrap();
}

pub(super) fn replace(home: &Path, name: &str, from: &str, to: &str) {
    change(home, name, |text| text.replace(from, to));
}

pub(super) fn other_signature(text: &str) -> String {
    let mut receipt: Value = serde_json::from_str(text).unwrap();
    let value = receipt["proof"]["proofValue"].as_str().unwrap().to_owned();
    let first = if value.as_bytes()[1] == b'A' { "uB" } else { "uA" };
    receipt["proof"]["proofValue"] = format!("{first}{}", &value[2..]).into();
    receipt.to_string()
}

pub(super) fn without(text: &str, member: &str) -> String {
    let mut receipt: Value = serde_json::from_str(text).unwrap();
    receipt.as_object_mut().unwrap().shift_remove(member);
    receipt.to_string()
}

/// Changes the first digit after a mark.
pub(super) fn other_digit(text: &str, mark: &str) -> String {
    let place = text.find(mark).unwrap() + mark.len();
    let digit = if &text[place..=place] == "0" { "1" } else { "0" };
    format!("{}{digit}{}", &text[..place], &text[place + 1..])
}

/// Makes a checkpoint say that a chain was longer than it was.
pub(super) fn longer_head(text: &str) -> String {
    let mut receipt: Value = serde_json::from_str(text).unwrap();
    let chain = &mut receipt["issuer"]["runtime"]["checkpoint"]["chains"][0];
    chain["length"] = (chain["length"].as_u64().unwrap() + 1).into();
    receipt.to_string()
}

/// Ends the chain of `serve` after its checkpoint, with a new key.
pub(super) fn forge_end(home: &Path) {
    let db = testkit::ledger::edit(home);
    let sql = "SELECT receipt_json, chain_id FROM receipts
               WHERE action_type='agent_receipts.checkpoint'";
    let (last, chain_id): (String, String) =
        db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let last = SignedReceipt::parse(&last).unwrap();
    let key = SigningKey::from_seed(&[9; 32]);
    let (did, time) = (key.public().did(), "2026-01-01T00:00:00.000Z");
    let id = "01980a5e-7000-7000-8000-000000000000";
    let receipt = Receipt {
        id,
        issuer: Issuer { id: &did, ..Issuer::default() },
        issued_at: time,
        principal: Principal { id: &did, kind: None },
        action: Action {
            id,
            action_type: "agent_receipts.chain_closed",
            risk: RiskLevel::Low,
            target: None,
            parameters_hash: None,
            peer: None,
            drop_count: None,
            timestamp: time,
            idempotency_key: None,
        },
        outcome: ReceiptOutcome {
            status: OutcomeStatus::Success,
            error: None,
            response_hash: None,
        },
        correlation_id: None,
        rotation: None,
    };
    let body = receipt.body(&Position {
        chain_id: &chain_id,
        sequence: last.link.sequence + 1,
        previous: Some(last.hash),
        termination: Some(Termination::Complete),
    });
    let after = last.link.sequence;
    db.execute("DELETE FROM receipts WHERE chain_id=?1 AND sequence>?2", (&chain_id, after))
        .unwrap();
    db.execute(
        "INSERT INTO receipts (id, chain_id, sequence, own, receipt_json, receipt_hash)
         VALUES (?1, ?2, ?3, 'agent_receipts.chain_closed', ?4, ?5)",
        (
            format!("urn:receipt:{id}"),
            &chain_id,
            after + 1,
            body.sign(&key, time),
            body.hash().to_string(),
        ),
    )
    .unwrap();
}
