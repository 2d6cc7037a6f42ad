//! Issuers and times of receipts, as the columns have them: enough for an overview of many chains.

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

impl Reader {
    /// Passes the stamp of every receipt to `each`, chain by chain, or of one chain.
    pub fn stamps(
        &self,
        chain_id: Option<&str>,
        mut each: impl FnMut(ReceiptStamp),
    ) -> Result<(), StoreError> {
        self.pool.ask_in_passing(|db| {
            let mut statement = db.prepare_cached(
                "SELECT chain_id, sequence, issuer_id, COALESCE(created_at, timestamp)
                 FROM receipts WHERE ?1 IS NULL OR chain_id = ?1 ORDER BY chain_id, sequence",
            )?;
            let mut rows = statement.query([chain_id])?;
            while let Some(row) = rows.next()? {
                each(ReceiptStamp {
                    chain_id: text_of(row.get_ref(0)?)?,
                    sequence: row.get(1)?,
                    issuer: text_of(row.get_ref(2)?)?,
                    issued_at: text_of(row.get_ref(3)?)?,
                });
            }
            Ok(())
        })
    }
}
