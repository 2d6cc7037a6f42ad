//! Messages to the writer.

use std::sync::Arc;

use receipt::key::SigningKey;
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::record::Entry;
use crate::write::commit::Safety;
use crate::write::row::JournalRow;

pub(crate) enum Message {
    Append(Submission),
    Signed(Vec<JournalRow>),
    /// Answered when all that was appended before can be read, or cannot be written at all.
    Settle(oneshot::Sender<()>),
    Rotate(RotationReply),
    /// Answered with the signed receipt of a new checkpoint.
    Checkpoint(CheckpointReply),
    /// The rules of retention have changed.
    Retention,
    /// Ends the chain and the thread.
    Close(CloseReply),
}

pub(crate) type CommitReply = oneshot::Sender<Result<Safety, StoreError>>;
pub(crate) type RotationReply = oneshot::Sender<Result<Arc<SigningKey>, StoreError>>;
pub(crate) type CheckpointReply = oneshot::Sender<Result<String, StoreError>>;
pub(crate) type CloseReply = oneshot::Sender<Result<(), StoreError>>;

/// An entry and its waiting caller.
pub(crate) struct Submission {
    pub(crate) entry: Entry,
    pub(crate) reply: Option<CommitReply>,
}

impl Message {
    /// Reports whether this is the start of a call that is made once it is safe.
    pub(crate) fn permits(&self) -> bool {
        match self {
            Message::Append(Submission { entry: Entry::Started(call), .. }) => {
                call.changes_things()
            }
            Message::Append(_)
            | Message::Signed(_)
            | Message::Settle(_)
            | Message::Rotate(_)
            | Message::Checkpoint(_)
            | Message::Retention
            | Message::Close(_) => false,
        }
    }
}
