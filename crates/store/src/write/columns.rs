//! The columns of `receipts`, which repeat parts of the receipt's text.

use std::borrow::Cow;

use receipt::Hash;
use receipt::content::Receipt;

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
}

#[cfg(test)]
mod tests {
    use receipt::SigningKey;

    use crate::database::timestamp;
    use crate::record::CallEnd;
    use crate::record::tests::started;
    use crate::write::compose;
    use crate::write::link::{ChainEnd, Issuance};

    #[test]
    fn receipt_columns_match_the_receipt_text() {
        let (key, mut end) = (SigningKey::from_seed(&[7; 32]), ChainEnd::default());
        let mut call = started();
        call.agent.token = "a \"quoted\" \\ tøken".to_owned();
        for sequence in 1..=2 {
            let issuance =
                Issuance { chain_id: "chain", key: &key, end: &mut end, beginning: None };
            let link =
                compose::call(issuance, &call, &CallEnd::interrupted(&call.id), &timestamp::now());
            let columns = &link.columns;
            let text: serde_json::Value = serde_json::from_str(link.body.text()).unwrap();
            let subject = &text["credentialSubject"];
            for (told, known) in [
                (&text["id"], &*columns.id),
                (&text["issuanceDate"], &columns.issued_at),
                (&text["issuer"]["id"], &columns.issuer_id),
                (&subject["action"]["type"], &columns.action_type),
                (&subject["action"]["risk_level"], &columns.risk_level),
                (&subject["action"]["timestamp"], &columns.timestamp),
                (&subject["outcome"]["status"], &columns.status),
                (&subject["principal"]["id"], &columns.principal_id),
            ] {
                assert_eq!(told, known);
            }
            let previous = subject["chain"]["previous_receipt_hash"].as_str();
            assert_eq!(previous, columns.previous.as_deref());
            assert_eq!(columns.previous.is_some(), sequence == 2);
            assert_eq!(link.columns.id, crate::write::filing::receipt_id(&call.id));
        }
    }
}
