//! The proof of one receipt: what its signed text states, and whether the text is as it was signed.
//! The columns of the table are not trusted here: in another program's file, nobody compares them.

use receipt::audit::AuditOutcome;
use receipt::chain::ReceiptCheck;
use serde_json::Value;
use store::read::StoredReceipt;

use crate::output::status::spoken;
use crate::output::{fields, or_dash};

pub(super) struct ReceiptProof {
    facts: Vec<(&'static str, String)>,
    /// The reason that it proves nothing.
    pub(super) fault: Option<String>,
}

impl ReceiptProof {
    /// Finds the receipt in an audit of its chain, and leaves no other in the audit's reports.
    pub(super) fn new(receipt: &StoredReceipt, outcome: &mut AuditOutcome) -> ReceiptProof {
        let signed: Value = serde_json::from_str(&receipt.text).unwrap_or_default();
        let text = |place: &str| signed.pointer(place).and_then(Value::as_str);
        let (chain, mut length) = (text("/credentialSubject/chain/chain_id"), 0);
        let mut found = Vec::new();
        for report in &mut outcome.reports {
            let checks = report.receipts.get_or_insert_default();
            checks.retain(|check| check.receipt_id == receipt.id);
            if chain == Some(&*report.chain_id) {
                length = report.length;
                found.extend(checks.iter().cloned());
            }
        }
        let is_other = text("/id") != Some(&*receipt.id);
        let sequence = signed.pointer("/credentialSubject/chain/sequence").and_then(Value::as_u64);
        let place = format!(
            "number {} of {length} in chain {}",
            sequence.map_or_else(|| "?".to_owned(), |sequence| sequence.to_string()),
            or_dash(chain)
        );
        let fault = fault(is_other, &found);
        let verdict = match &fault {
            None => "intact: signature, link and order are valid".to_owned(),
            Some(fault) => format!("BROKEN: {fault}"),
        };
        let agent = text("/issuer/runtime/agent_id").or(text("/credentialSubject/principal/id"));
        let tool = [text("/issuer/runtime/server"), text("/issuer/runtime/tool")];
        let tool = tool.into_iter().flatten().collect::<Vec<_>>().join(":");
        let target = ["system", "resource"]
            .map(|name| text(&format!("/credentialSubject/action/target/{name}")));
        let target = target.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let facts = vec![
            ("receipt", receipt.id.clone()),
            ("time", or_dash(text("/credentialSubject/action/timestamp"))),
            ("agent", or_dash(agent)),
            ("action", or_dash(text("/credentialSubject/action/type"))),
            ("tool", or_dash(Some(&tool))),
            ("target", or_dash(Some(&target))),
            ("outcome", or_dash(text("/credentialSubject/outcome/status").map(spoken))),
            ("place", place),
            ("verdict", verdict),
        ];
        ReceiptProof { facts, fault }
    }

    pub(super) fn shown(&self) -> String {
        fields(&self.facts)
    }
}

fn fault(is_other: bool, checks: &[ReceiptCheck]) -> Option<String> {
    if is_other {
        return Some("the text under this id is not the receipt's own".to_owned());
    }
    if checks.is_empty() {
        return Some("the receipt cannot be read".to_owned());
    }
    let is_each = |is_valid: fn(&ReceiptCheck) -> bool| checks.iter().all(is_valid);
    let parts = [
        ("signature", is_each(|check| check.signature_valid)),
        ("link", is_each(|check| check.hash_link_valid)),
        ("order", is_each(|check| check.sequence_valid)),
    ];
    let wrong: Vec<&str> =
        parts.into_iter().filter(|(_, is_valid)| !is_valid).map(|(name, _)| name).collect();
    (!wrong.is_empty()).then(|| format!("{} not valid", wrong.join(", ")))
}

#[cfg(test)]
mod tests {
    use receipt::audit::Report;
    use receipt::chain::ChainStatus;
    use serde_json::json;

    use super::*;

    /// Returns the proof of the receipt that a table has under `id`, with this text.
    fn proof(id: &str, text: &Value, signature_valid: bool) -> (ReceiptProof, usize) {
        let checks = ["a", "b"].map(|id| ReceiptCheck {
            index: 0,
            receipt_id: id.to_owned(),
            signature_valid,
            hash_link_valid: true,
            sequence_valid: true,
        });
        let report = Report {
            chain_id: "c".to_owned(),
            valid: true,
            length: 2,
            status: ChainStatus::Unknown,
            broken_at: None,
            receipt_id: None,
            error: None,
            faults: 0,
            receipts: Some(checks.to_vec()),
        };
        let mut outcome = AuditOutcome { reports: vec![report], notes: Vec::new() };
        let receipt = StoredReceipt {
            id: id.to_owned(),
            chain_id: "c".to_owned(),
            sequence: 9,
            action_type: "of the column".to_owned(),
            tool_name: String::new(),
            risk_level: String::new(),
            status: String::new(),
            timestamp: String::new(),
            hash: String::new(),
            previous_hash: None,
            text: text.to_string(),
        };
        let proof = ReceiptProof::new(&receipt, &mut outcome);
        (proof, outcome.reports[0].receipts.as_ref().map_or(0, Vec::len))
    }

    #[test]
    fn only_the_receipts_own_valid_text_proves_it() {
        let text = json!({"id": "a", "issuer": {"runtime": {"server": "s", "tool": "t"}},
            "credentialSubject": {"chain": {"chain_id": "c", "sequence": 1},
                "action": {"type": "data.api.read", "target": {"system": "db", "resource": "x"}}}});
        let (good, kept) = proof("a", &text, true);
        assert_eq!((good.fault.as_deref(), kept), (None, 1));
        let shown = good.shown();
        for line in ["action   data.api.read", "tool     s:t", "target   db x"] {
            assert!(shown.lines().any(|found| found == line), "{line}: {shown}");
        }
        assert!(shown.contains("number 1 of 2 in chain c\nverdict  intact"), "{shown}");
        for (id, text, is_signed, expected) in [
            ("a", &text, false, "signature not valid"),
            ("b", &text, true, "the text under this id is not the receipt's own"),
            ("a", &Value::Null, true, "the text under this id is not the receipt's own"),
            ("a", &json!({"id": "a"}), true, "the receipt cannot be read"),
        ] {
            let (bad, _) = proof(id, text, is_signed);
            assert_eq!(bad.fault.as_deref(), Some(expected));
            assert!(
                bad.shown().ends_with(&format!("verdict  BROKEN: {expected}")),
                "{}",
                bad.shown()
            );
        }
    }
}
