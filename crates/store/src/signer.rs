//! Signing, beside the thread that writes: a signature costs more than a commit.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use receipt::key::SigningKey;

use crate::StoreError;
use crate::compose;
use crate::inbox::Inbox;
use crate::journal::Row;
use crate::writer::Message;

/// At most one batch is under way, so that a send never waits.
pub(crate) struct Signer {
    work: SyncSender<(Vec<Row>, Arc<SigningKey>)>,
}

impl Signer {
    /// The thread ends when the writer lets go of this.
    pub(crate) fn spawn(results: Arc<Inbox>) -> Result<Signer, StoreError> {
        let (work, batches) = sync_channel::<(Vec<Row>, Arc<SigningKey>)>(1);
        std::thread::Builder::new()
            .name("ledger-signer".to_owned())
            .spawn(move || {
                for (mut rows, key) in batches {
                    rows.iter_mut().for_each(|row| row.sign(&key));
                    if results.send(Message::Signed(rows)).is_err() {
                        break;
                    }
                }
            })
            .map_err(|error| StoreError::Write(format!("cannot start a thread: {error}")))?;
        Ok(Signer { work })
    }

    pub(crate) fn sign(&self, rows: Vec<Row>, key: Arc<SigningKey>) {
        let _ = self.work.send((rows, key));
    }
}

impl Row {
    pub(crate) fn sign(&mut self, key: &SigningKey) {
        if let Some(link) = &mut self.link {
            let now = compose::now();
            link.signed = Some(link.body.sign(key, &now));
        }
    }
}
