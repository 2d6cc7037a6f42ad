//! The thread that writes a run to the store, in the order of events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::task;
use redact::Redactor;
use store::{Store, StoreError};
use tokio::task::JoinError;

type Write = Box<dyn FnOnce(&Store, &Redactor) -> Result<(), StoreError> + Send>;

/// The end of the thread.
pub(super) type Written = BoxFuture<'static, Result<(), JoinError>>;

/// The way to the thread.
#[derive(Clone)]
pub(super) struct Writes(Arc<Mutex<Option<mpsc::Sender<Write>>>>);

impl Writes {
    /// Starts the thread, which ends once it has written all that was sent before `close`.
    pub(super) fn start(store: Store, redactor: Redactor) -> (Writes, Written) {
        let (sender, writes) = mpsc::channel::<Write>();
        let writing = task::spawn_blocking(move || {
            for write in writes {
                if let Err(error) = write(&store, &redactor) {
                    tracing::warn!("cannot record the progress of the run: {error}");
                }
            }
        });
        (Writes(Arc::new(Mutex::new(Some(sender)))), writing.boxed())
    }

    pub(super) fn send(
        &self,
        write: impl FnOnce(&Store, &Redactor) -> Result<(), StoreError> + Send + 'static,
    ) {
        if let Some(writes) = &*self.sender() {
            // The writer ends only after this write.
            let _ = writes.send(Box::new(write));
        }
    }

    /// Waits until everything sent so far is written.
    pub(super) async fn flushed(&self) {
        let (done, flushed) = tokio::sync::oneshot::channel();
        self.send(move |_, _| {
            let _ = done.send(());
            Ok(())
        });
        let _ = flushed.await;
    }

    /// Takes no more writes.
    pub(super) fn close(&self) {
        self.sender().take();
    }

    fn sender(&self) -> MutexGuard<'_, Option<mpsc::Sender<Write>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
