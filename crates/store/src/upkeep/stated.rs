//! The deletions of records that signed receipts state: such a record is missing for a reason, and
//! nothing brings it back.

use std::path::Path;

use jiff::Timestamp;
use receipt::verify::SignedReceipt;
use rusqlite::Connection;
use serde_json::Value;

use super::tally::{ExpiredData, ExpiredKind};
use crate::error::StoreError;
use crate::keys;

/// The type of the action that deletes records.
pub(crate) const RECORDS_EXPIRED: &str = "agent_receipts.records_expired";

/// The records that were deleted, according to signed receipts.
#[derive(Default)]
pub(crate) struct StatedDeletions(Vec<StatedDeletion>);

/// The times of deleted records, and the token whose they were, if only one's were deleted.
struct StatedDeletion {
    token: Option<String>,
    from: Timestamp,
    to: Timestamp,
    count: u64,
}

impl StatedDeletions {
    /// Adds the deletions that a receipt states.
    pub(crate) fn add(&mut self, receipt: &Value) {
        if receipt["credentialSubject"]["action"]["type"] != RECORDS_EXPIRED {
            return;
        }
        let stated = receipt["issuer"]["runtime"]["expired_records"].as_array();
        for deletion in stated.into_iter().flatten().filter(|it| it["kind"] == "records") {
            let time = |name| deletion[name].as_str()?.parse().ok();
            let token = deletion["holder"].as_str().map(str::to_owned);
            let span = time("from").zip(time("to"));
            let count = deletion["count"].as_u64().unwrap_or_default();
            self.0.extend(span.map(|(from, to)| StatedDeletion { token, from, to, count }));
        }
    }

    /// Reads what a ledger in its home states.
    pub(crate) fn of_home(db: &Connection) -> Result<StatedDeletions, StoreError> {
        let home = db.path().and_then(|file| Path::new(file).parent());
        let keys = keys::all_public(&home.unwrap_or(Path::new("")).join(keys::FOLDER));
        let mut statement = db.prepare("SELECT receipt_json FROM receipts WHERE own = ?1")?;
        let texts = statement.query_map([RECORDS_EXPIRED], |row| row.get::<_, String>(0))?;
        let mut stated = StatedDeletions::default();
        for text in texts.filter_map(Result::ok) {
            let Ok((signed, members)) = SignedReceipt::read(&text) else { continue };
            if signed.key_among(&keys).is_some_and(|key| signed.verify(key).is_ok()) {
                stated.add(&members);
            }
        }
        Ok(stated)
    }

    /// Adds deletions that the next receipt will state.
    pub(crate) fn add_unstated(&mut self, deleted: &[ExpiredData]) {
        for data in deleted.iter().filter(|data| data.kind == ExpiredKind::Records) {
            let time = |us| Timestamp::from_microsecond(us).ok();
            let span = data.span_us.and_then(|(from, to)| time(from - 1_000).zip(time(to)));
            let (token, count) = (data.holder.clone(), data.count);
            self.0.extend(span.map(|(from, to)| StatedDeletion { token, from, to, count }));
        }
    }

    /// Returns the number of records that they deleted.
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|deletion| deletion.count).sum()
    }

    /// Reports whether a record of this token that began at this time is among them.
    pub(crate) fn cover(&self, token: &str, started: Timestamp) -> bool {
        self.0.iter().any(|deletion| {
            deletion.token.as_deref().is_none_or(|of| of == token)
                && (deletion.from..=deletion.to).contains(&started)
        })
    }
}
