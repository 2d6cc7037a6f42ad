//! The promise that an entry is safe.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;

use crate::error::StoreError;

/// The safety of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Safety {
    /// The entry survives the process being killed.
    Committed,
    /// The entry is in memory: the start of a call that only reads waits for its end; anything
    /// else, until the file can be written.
    Queued,
}

/// Resolves once the entry is safe, or could not be made so. Dropping it does not withdraw the
/// entry.
#[must_use = "an entry is only known to be safe once this was awaited"]
pub struct Commit(Answer);

enum Answer {
    Known(Option<Result<Safety, StoreError>>),
    Awaited(oneshot::Receiver<Result<Safety, StoreError>>),
}

impl Commit {
    pub(crate) fn known(result: Result<Safety, StoreError>) -> Commit {
        Commit(Answer::Known(Some(result)))
    }

    pub(crate) fn awaited(answer: oneshot::Receiver<Result<Safety, StoreError>>) -> Commit {
        Commit(Answer::Awaited(answer))
    }
}

impl Future for Commit {
    type Output = Result<Safety, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Answer::Known(result) => {
                Poll::Ready(result.take().expect("a future is not polled after completion"))
            }
            Answer::Awaited(answer) => {
                let answer = ready!(Pin::new(answer).poll(cx));
                Poll::Ready(answer.unwrap_or(Err(StoreError::Closed)))
            }
        }
    }
}
