//! Callers that wait for more than the commit of an entry.

use tokio::sync::oneshot;

use crate::write::message::{CheckpointReply, CloseReply, RotationReply};
use crate::write::schedule::Waiting;

#[derive(Default)]
pub(crate) struct Waiters {
    settling: Vec<oneshot::Sender<()>>,
    filing: Vec<FilingWaiter>,
    rotating: Vec<RotationReply>,
    checkpoints: Vec<CheckpointReply>,
    closing: Option<CloseReply>,
}

/// A caller whose entries are committed, and the number of rows to file for it.
struct FilingWaiter {
    upto: u64,
    reply: oneshot::Sender<()>,
}

impl Waiters {
    pub(crate) fn count(&self) -> Waiting {
        Waiting {
            commit: self.settling.len(),
            filing: self.filing.len(),
            rotation: self.rotating.len(),
            checkpoint: self.checkpoints.len(),
            close: usize::from(self.closing.is_some()),
        }
    }

    pub(crate) fn settle(&mut self, reply: oneshot::Sender<()>) {
        self.settling.push(reply);
    }

    pub(crate) fn rotate(&mut self, reply: RotationReply) {
        self.rotating.push(reply);
    }

    pub(crate) fn checkpoint(&mut self, reply: CheckpointReply) {
        self.checkpoints.push(reply);
    }

    pub(crate) fn close(&mut self, reply: CloseReply) {
        self.closing = Some(reply);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.is_some()
    }

    /// Moves on the callers that settle: their entries are committed, and these rows are to be
    /// filed.
    pub(crate) fn committed(&mut self, upto: u64) {
        self.filing.extend(self.settling.drain(..).map(|reply| FilingWaiter { upto, reply }));
    }

    /// Answers callers whose rows are settled.
    pub(crate) fn answer(&mut self, is_settled: impl Fn(u64) -> bool) {
        for waiter in self.filing.extract_if(.., |waiter| is_settled(waiter.upto)) {
            let _ = waiter.reply.send(());
        }
    }

    pub(crate) fn take_rotating(&mut self) -> Vec<RotationReply> {
        std::mem::take(&mut self.rotating)
    }

    pub(crate) fn take_checkpoints(&mut self) -> Vec<CheckpointReply> {
        std::mem::take(&mut self.checkpoints)
    }

    pub(crate) fn take_closing(&mut self) -> Option<CloseReply> {
        self.closing.take()
    }
}
