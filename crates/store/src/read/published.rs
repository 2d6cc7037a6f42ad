//! Exports receipts into a file of SQLite with the published table, for programs that verify it.

use std::path::Path;

use receipt::verify::SignedReceipt;
use rusqlite::{Connection, params};
use serde_json::Value;

use super::reader::Reader;
use super::receipts;
use crate::database::{connection, transaction};
use crate::error::StoreError;
use crate::limits::EXPORT_PAGE;

/// The table that programs for receipts in this format read.
const TABLE: &str = "CREATE TABLE receipts (
  id TEXT PRIMARY KEY,
  chain_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  action_type TEXT NOT NULL,
  tool_name TEXT NOT NULL DEFAULT '',
  risk_level TEXT NOT NULL,
  status TEXT NOT NULL,
  timestamp TEXT NOT NULL,
  issuer_id TEXT NOT NULL,
  principal_id TEXT,
  receipt_json TEXT NOT NULL,
  receipt_hash TEXT NOT NULL,
  previous_receipt_hash TEXT,
  created_at TEXT DEFAULT CURRENT_TIMESTAMP,
  UNIQUE (chain_id, sequence)
)";

impl Reader {
    /// Writes all receipts, or those of one chain, into a new file, each with the text that was
    /// signed. Returns their number.
    pub fn export_table(&self, chain: Option<&str>, file: &Path) -> Result<u64, StoreError> {
        connection::create(file)?;
        let out = Connection::open(file)?;
        let chains = self.chains()?.into_iter().rev().map(|chain| chain.id);
        let chains = chains.filter(|id| chain.is_none_or(|chain| chain == id));
        transaction::whole(&out, |out| {
            out.execute_batch(TABLE)?;
            chains.map(|id| self.export_chain(&id, out)).sum()
        })
    }

    fn export_chain(&self, chain_id: &str, out: &Connection) -> Result<u64, StoreError> {
        let (mut after, mut count) = (i64::MIN, 0);
        loop {
            let page = self
                .pool
                .ask_in_passing(|db| receipts::stored_after(db, (chain_id, after), EXPORT_PAGE))?;
            for receipt in &page {
                add(out, receipt)?;
            }
            count += page.len() as u64;
            match page.last() {
                Some(last) => after = i64::try_from(last.sequence).unwrap_or(i64::MAX),
                None => return Ok(count),
            }
        }
    }
}

fn add(out: &Connection, receipt: &receipts::StoredReceipt) -> Result<(), StoreError> {
    let members: Value = serde_json::from_str(&receipt.text).unwrap_or_default();
    let issuer = &members["issuer"];
    // The column of the ledger may have been edited, and the text is what is signed.
    let hash = SignedReceipt::parse(&receipt.text).map(|signed| signed.hash.to_string());
    let values = params![
        receipt.id,
        receipt.chain_id,
        receipt.sequence,
        receipt.action_type,
        receipt.tool_name,
        receipt.risk_level,
        receipt.status,
        receipt.timestamp,
        issuer.get("id").unwrap_or(issuer).as_str().unwrap_or_default(),
        members.pointer("/credentialSubject/principal/id").and_then(Value::as_str),
        receipt.text,
        hash.as_ref().unwrap_or(&receipt.hash),
        receipt.previous_hash,
        members["issuanceDate"].as_str(),
    ];
    let words = "INSERT INTO receipts VALUES
                 (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    out.prepare_cached(words)?.execute(values)?;
    Ok(())
}
