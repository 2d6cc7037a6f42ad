//! What the columns of `receipts` repeat of a receipt. It is known where the receipt is made; only
//! what a dead process left is read from its text.

use std::borrow::Cow;

use domain::ledger::Hash;
use domain::ledger::receipt::Receipt;
use serde::Deserialize;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) id: String,
    pub(crate) action_type: String,
    pub(crate) risk_level: Cow<'static, str>,
    pub(crate) status: Cow<'static, str>,
    pub(crate) timestamp: String,
    pub(crate) issuer_id: String,
    pub(crate) principal_id: String,
    pub(crate) previous: Option<String>,
    pub(crate) issued_at: String,
}

impl Columns {
    pub(crate) fn of(receipt: &Receipt<'_>, previous: Option<Hash>) -> Columns {
        Columns {
            id: format!("urn:receipt:{}", receipt.id),
            action_type: receipt.action.action_type.to_owned(),
            risk_level: receipt.action.risk.as_str().into(),
            status: receipt.outcome.status.as_str().into(),
            timestamp: receipt.action.timestamp.to_owned(),
            issuer_id: receipt.issuer.id.to_owned(),
            principal_id: receipt.principal.id.to_owned(),
            previous: previous.map(|hash| hash.to_string()),
            issued_at: receipt.issued_at.to_owned(),
        }
    }

    pub(crate) fn read(text: &str) -> Result<Columns, serde_json::Error> {
        let Text { id, issued_at, issuer, subject } = serde_json::from_str(text)?;
        let Subject { action, chain, outcome, principal } = subject;
        Ok(Columns {
            id,
            action_type: action.kind,
            risk_level: action.risk_level.into(),
            status: outcome.status.into(),
            timestamp: action.timestamp,
            issuer_id: issuer.id,
            principal_id: principal.id,
            previous: chain.previous_receipt_hash,
            issued_at,
        })
    }
}

#[derive(Deserialize)]
struct Text {
    id: String,
    #[serde(rename = "issuanceDate")]
    issued_at: String,
    issuer: Named,
    #[serde(rename = "credentialSubject")]
    subject: Subject,
}

#[derive(Deserialize)]
struct Subject {
    action: Action,
    chain: Chain,
    outcome: Outcome,
    principal: Named,
}

#[derive(Deserialize)]
struct Action {
    #[serde(rename = "type")]
    kind: String,
    risk_level: String,
    timestamp: String,
}

#[derive(Deserialize)]
struct Chain {
    previous_receipt_hash: Option<String>,
}

#[derive(Deserialize)]
struct Outcome {
    status: String,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[cfg(test)]
mod tests {
    use domain::ledger::SigningKey;

    use super::*;
    use crate::chain::End;
    use crate::compose::{self, Place};
    use crate::drafts::interrupted;
    use crate::record::tests::started;

    #[test]
    fn what_is_known_is_what_the_text_says() {
        let (key, mut end) = (SigningKey::from_seed(&[7; 32]), End::default());
        let mut call = started();
        call.agent.token = "a \"quoted\" \\ tøken".to_owned();
        for sequence in 1..=2 {
            let place = Place { chain_id: "chain", key: &key, end: &mut end, preceding: None };
            let link = compose::call(place, &call, &interrupted(&call));
            assert_eq!(Columns::read(link.body.text()).unwrap(), link.columns);
            assert_eq!(link.columns.previous.is_some(), sequence == 2);
            assert_eq!(link.columns.id, crate::filing::receipt_id(&call.id));
        }
    }
}
