//! Issuers and times of receipts: enough for an overview of many chains.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::reader::Reader;
use super::receipts::text_of;
use crate::error::StoreError;

/// The issuer of a receipt and the time of its issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptStamp {
    pub chain_id: String,
    pub sequence: u64,
    pub issuer: String,
    pub issued_at: String,
}

/// The members of a receipt that a stamp needs.
#[derive(Default, Deserialize)]
struct StampMembers<'a> {
    #[serde(borrow)]
    issuer: Option<&'a RawValue>,
    #[serde(borrow, rename = "issuanceDate")]
    issued_at: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Issuer {
    id: String,
}

impl StampMembers<'_> {
    /// Returns the id of the issuer, which may be all that is said of it.
    fn issuer(&self) -> String {
        let text = self.issuer.map_or("null", RawValue::get);
        let named = serde_json::from_str(text).map(|issuer: Issuer| issuer.id);
        named.or_else(|_| serde_json::from_str(text)).unwrap_or_default()
    }
}

impl Reader {
    /// Passes the stamp of every receipt to `each`, chain by chain, or of one chain.
    pub fn stamps(
        &self,
        chain_id: Option<&str>,
        mut each: impl FnMut(ReceiptStamp),
    ) -> Result<(), StoreError> {
        self.pool.ask_in_passing(|db| {
            let mut statement = db.prepare_cached(
                "SELECT chain_id, sequence, receipt_json FROM receipts
                 WHERE ?1 IS NULL OR chain_id = ?1 ORDER BY chain_id, sequence",
            )?;
            let mut rows = statement.query([chain_id])?;
            while let Some(row) = rows.next()? {
                let text = text_of(row.get_ref(2)?)?;
                let stamp: StampMembers<'_> = serde_json::from_str(&text).unwrap_or_default();
                each(ReceiptStamp {
                    chain_id: text_of(row.get_ref(0)?)?,
                    sequence: row.get(1)?,
                    issuer: stamp.issuer(),
                    issued_at: stamp.issued_at.into_owned(),
                });
            }
            Ok(())
        })
    }
}
