//! The ledger on loan: while `serve` runs, `run` lets it keep its records, so that one process writes
//! the ledger and its page shows the run live. Both talk over an upgraded connection on
//! `control.sock`, in lines of JSON.

mod borrower;
mod lender;

pub(crate) use borrower::store;
pub(crate) use lender::lend;

use serde::{Deserialize, Serialize};
use store::EntryForm;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// The path at which a connection on `control.sock` becomes a loan.
pub(crate) const LOAN_PATH: &str = "/ledger/loan";
pub(crate) const LOAN_PROTOCOL: &str = "ledger-loan";

/// A line of the borrower.
#[derive(Serialize, Deserialize)]
struct LoanRequest {
    number: u64,
    /// The entry to append. Without one, the answer comes when everything so far can be read.
    entry: Option<EntryForm>,
}

/// A line of the lender.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LoanAnswer {
    /// The entry will survive the process being killed.
    Committed(u64),
    /// The entry is in memory.
    Queued(u64),
    Failed(u64, String),
    Settled(u64),
    /// The lender is about to end: running calls may end there, new ones are not taken.
    Closing,
}

/// Writes each message as a line, until there are no more or the connection ends.
async fn write_lines<T: Serialize>(
    mut outbox: mpsc::UnboundedReceiver<T>,
    mut writer: impl AsyncWrite + Unpin,
) {
    while let Some(message) = outbox.recv().await {
        let Ok(mut line) = serde_json::to_string(&message) else { return };
        line.push('\n');
        if writer.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}
