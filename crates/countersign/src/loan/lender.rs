//! The side of `serve`, which writes.

use std::collections::HashSet;

use mcp::lines::{Line, LineReader};
use mcp::task;
use store::{CallEnd, Entry, Safety, Store, StoreError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{LoanAnswer, LoanRequest, write_lines};

/// Keeps the records of another process of the home until it ends. `closing` announces the end of
/// this process: calls that run may still end.
pub(crate) async fn lend(
    store: Store,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    closing: CancellationToken,
) {
    // Bounded by the calls that the other process makes at a time.
    let (answers, outbox) = mpsc::unbounded_channel();
    let mut loan = Lending { store, answers, open: HashSet::new() };
    let answering = write_lines(outbox, writer);
    tokio::pin!(answering);
    let is_heard = tokio::select! {
        () = loan.take_all(LineReader::new(reader), closing) => true,
        () = &mut answering => false,
    };
    loan.end().await;
    if is_heard {
        answering.await;
    }
}

struct Lending {
    store: Store,
    answers: mpsc::UnboundedSender<LoanAnswer>,
    /// Calls that have started and not ended.
    open: HashSet<String>,
}

impl Lending {
    async fn take_all<R: AsyncRead + Unpin>(
        &mut self,
        mut lines: LineReader<R>,
        closing: CancellationToken,
    ) {
        let mut is_closing = false;
        while !(is_closing && self.open.is_empty()) {
            tokio::select! {
                line = lines.next() => {
                    let Ok(Some(Line::Whole(line))) = line else { return };
                    let Ok(request) = serde_json::from_slice(&line) else { return };
                    self.take(request);
                }
                () = closing.cancelled(), if !is_closing => {
                    is_closing = true;
                    let _ = self.answers.send(LoanAnswer::Closing);
                }
            }
        }
    }

    /// Appends in the order of the lines; each is answered once it is safe.
    fn take(&mut self, LoanRequest { number, entry }: LoanRequest) {
        let (store, answers) = (self.store.clone(), self.answers.clone());
        let Some(entry) = entry.and_then(store::EntryForm::entry) else {
            task::spawn(async move {
                store.settled().await;
                let _ = answers.send(LoanAnswer::Settled(number));
            });
            return;
        };
        match &entry {
            Entry::Started(call) => drop(self.open.insert(call.id.clone())),
            Entry::Ended(call) => drop(self.open.remove(&call.id)),
            Entry::Whole(..) => {}
        }
        let commit = store.append(entry);
        task::spawn(async move {
            let _ = answers.send(match commit.await {
                Ok(Safety::Committed) => LoanAnswer::Committed(number),
                Ok(Safety::Queued) => LoanAnswer::Queued(number),
                Err(StoreError::Write(reason)) => LoanAnswer::Failed(number, reason),
                Err(error) => LoanAnswer::Failed(number, error.to_string()),
            });
        });
    }

    /// Ends the calls that the other process can no longer end.
    async fn end(self) {
        for call in self.open {
            let _ = self.store.append(Entry::Ended(Box::new(CallEnd::interrupted(&call)))).await;
        }
    }
}
