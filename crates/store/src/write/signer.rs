//! Signs on a separate thread, since a signature costs more than a commit.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use receipt::key::SigningKey;

use crate::error::StoreError;
use crate::write::inbox::Inbox;
use crate::write::message::Message;
use crate::write::row::JournalRow;

/// The signing thread. At most one batch is in progress, so that a send never waits.
pub(crate) struct Signer {
    work: SyncSender<Batch>,
}

struct Batch {
    rows: Vec<JournalRow>,
    key: Arc<SigningKey>,
}

impl Signer {
    /// Starts the thread, which ends when the writer drops this.
    pub(crate) fn spawn(results: Arc<Inbox>) -> Result<Signer, StoreError> {
        let (work, batches) = sync_channel::<Batch>(1);
        std::thread::Builder::new()
            .name("ledger-signer".to_owned())
            .spawn(move || {
                for Batch { mut rows, key } in batches {
                    rows.iter_mut().for_each(|row| row.sign(&key));
                    if results.send(Message::Signed(rows)).is_err() {
                        break;
                    }
                }
            })
            .map_err(|error| StoreError::Write(format!("cannot start a thread: {error}")))?;
        Ok(Signer { work })
    }

    pub(crate) fn sign(&self, rows: Vec<JournalRow>, key: Arc<SigningKey>) {
        let _ = self.work.send(Batch { rows, key });
    }
}
