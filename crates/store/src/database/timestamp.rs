//! Times as the ledger writes them: text in receipts, microseconds in columns.

use jiff::Timestamp;

use crate::error::StoreError;

/// Returns the present time as receipts write it.
pub(crate) fn now() -> String {
    text(Timestamp::now())
}

/// Formats a time as RFC 3339 with milliseconds.
pub(crate) fn text(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// Reads a time from a column.
pub(crate) fn read(microseconds: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(microseconds)
        .map_err(|_| StoreError::Corrupt(format!("{microseconds} is not a valid time")))
}
