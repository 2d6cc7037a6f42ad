//! The rules of retention. They belong to the home: `serve` sets them from its config, and every
//! process that writes the ledger applies them. Without rules nothing is deleted.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use super::clock::LedgerClock;
use crate::database::{receipts, settings, timestamp};
use crate::error::StoreError;

/// The name of the setting.
const SETTING: &str = "retention_rules";

const MEGABYTE: u64 = 1024 * 1024;

/// Limits on the age and the amount of kept data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetentionRules {
    pub(crate) days: u32,
    pub(crate) records_max: u64,
    pub(crate) megabytes_max: u64,
    /// 0: receipts are kept.
    pub(crate) receipt_days: u32,
}

impl From<&domain::config::Ledger> for RetentionRules {
    fn from(ledger: &domain::config::Ledger) -> RetentionRules {
        RetentionRules {
            days: ledger.activity_retention_days,
            records_max: ledger.max_records.into(),
            megabytes_max: ledger.max_size_mb.into(),
            receipt_days: ledger.receipt_retention_days,
        }
    }
}

impl RetentionRules {
    /// Returns the rules of the home, if any were ever set. Rules that cannot be read count as
    /// none: keeping too much does no harm.
    pub(crate) fn kept(db: &Connection) -> Result<Option<RetentionRules>, StoreError> {
        Ok(settings::get(db, SETTING)?.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Makes these the rules of the home.
    pub(crate) fn keep(&self, db: &Connection) -> Result<(), StoreError> {
        if RetentionRules::kept(db)? == Some(*self) {
            return Ok(());
        }
        let text = serde_json::to_string(self).expect("numbers have a JSON form");
        settings::set(db, SETTING, &text)
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.megabytes_max.saturating_mul(MEGABYTE)
    }

    /// Returns the time before which records are too old, in microseconds.
    pub(crate) fn oldest(&self, clock: &LedgerClock) -> i64 {
        clock.days_ago(self.days)
    }

    /// Returns the time before which receipts are too old, as they write it; none if they are kept.
    pub(crate) fn oldest_receipt(&self, db: &Connection) -> Result<Option<String>, StoreError> {
        if self.receipt_days == 0 {
            return Ok(None);
        }
        let clock = LedgerClock::read(db, Timestamp::now())?;
        Ok(Some(timestamp::text(timestamp::read(clock.days_ago(self.receipt_days))?)))
    }

    /// Returns the oldest closed chain that is old enough to expire.
    pub(crate) fn expired_chain(
        &self,
        db: &Connection,
        cutoff: &str,
    ) -> Result<Option<String>, StoreError> {
        let found = db
            .query_row(
                &format!(
                    "SELECT chain_id FROM chains
                     WHERE status NOT IN ('open', 'expired', 'damaged')
                       AND COALESCE((SELECT {} FROM receipts
                         WHERE receipts.chain_id = chains.chain_id
                         ORDER BY sequence DESC LIMIT 1), '') < ?1
                     ORDER BY chain LIMIT 1",
                    receipts::member("$.credentialSubject.action.timestamp")
                ),
                [cutoff],
                |row| row.get(0),
            )
            .optional()?;
        Ok(found)
    }
}
