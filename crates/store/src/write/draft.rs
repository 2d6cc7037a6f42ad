//! One entry before it is committed, and its outcome if the file cannot be written.

use std::sync::Arc;

use domain::config::OnFailure;

use crate::database::timestamp;
use crate::error::StoreError;
use crate::limits::QUEUE_MAX;
use crate::record::{CallEnd, CallStart, RecordStatus};
use crate::write::commit::Safety;
use crate::write::compose;
use crate::write::link::Issuance;
use crate::write::message::CommitReply;
use crate::write::row::JournalRow;

/// The content of one row of the journal.
pub(crate) struct Draft {
    pub(crate) call: Arc<CallStart>,
    pub(crate) part: DraftPart,
    pub(crate) reply: Option<CommitReply>,
}

/// The part of a call that a draft records.
pub(crate) enum DraftPart {
    Start,
    /// The end, with the journal entry that holds the start.
    End(i64, Arc<CallEnd>),
    Whole(Arc<CallEnd>),
}

/// The outcome of a draft that could not be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DraftOutcome {
    /// The caller gets the error, and nothing is kept.
    Refused,
    /// It waits for its end again.
    Held,
    /// It is kept until it can be written, and the caller continues.
    Queued,
    /// It is kept until it can be written, and the caller gets the error.
    QueuedWithError,
}

impl Draft {
    /// Returns the row, linked to the chain if it ends a call.
    pub(crate) fn row(&self, issuance: Issuance<'_>) -> JournalRow {
        let (start, ended) = match &self.part {
            DraftPart::Start => (None, None),
            DraftPart::End(start, ended) => (Some(*start), Some(ended)),
            DraftPart::Whole(ended) => (None, Some(ended)),
        };
        let link = ended.map(|ended| compose::call(issuance, &self.call, ended, &timestamp::now()));
        let (call, ended) = (Some(self.call.clone()), ended.cloned());
        JournalRow { entry: 0, call, ended, start, link, promise: None }
    }

    pub(crate) fn answer(&mut self, result: Result<Safety, StoreError>) {
        if let Some(reply) = self.reply.take() {
            let _ = reply.send(result);
        }
    }

    /// Reports whether this is the start of a call that is made once it is safe.
    pub(crate) fn permits(&self) -> bool {
        matches!(self.part, DraftPart::Start) && self.call.changes_things()
    }

    pub(crate) fn starts(&self, id: &str) -> bool {
        matches!(self.part, DraftPart::Start) && self.call.id == id
    }

    /// Decides the outcome of a draft if the file cannot be written and this many are queued. A call
    /// that would change things is not made; the record of a past event is kept.
    pub(crate) fn outcome_on_failure(&self, queued: usize, policy: OnFailure) -> DraftOutcome {
        let (changes, is_outside) = (self.call.changes_things(), self.call.outside.is_some());
        let is_refused = |ended: &CallEnd| ended.status == RecordStatus::Blocked;
        match &self.part {
            DraftPart::Start if changes => DraftOutcome::Refused,
            DraftPart::Start => DraftOutcome::Held,
            // Refused calls and events have touched nothing here, so they may be rejected.
            DraftPart::Whole(ended)
                if queued >= QUEUE_MAX
                    && self.reply.is_some()
                    && (is_refused(ended) || is_outside) =>
            {
                DraftOutcome::Refused
            }
            // It happened elsewhere: there is nothing to withhold, and a queued entry is not lost.
            DraftPart::Whole(_) if is_outside => DraftOutcome::Queued,
            DraftPart::End(_, ended) | DraftPart::Whole(ended) => match policy {
                OnFailure::QueueReads if !changes || is_refused(ended) => DraftOutcome::Queued,
                OnFailure::QueueReads | OnFailure::Refuse => DraftOutcome::QueuedWithError,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::tool::Class;
    use tokio::sync::oneshot;

    use super::*;
    use crate::record::OutsideSource;
    use crate::record::tests::started;

    fn call(class: Class) -> CallStart {
        CallStart { effective: Some(class), outside: None, ..started() }
    }

    fn event() -> CallStart {
        CallStart { outside: Some(Box::new(OutsideSource::default())), ..call(Class::Write) }
    }

    fn end(status: RecordStatus) -> Arc<CallEnd> {
        Arc::new(CallEnd { status, ..CallEnd::at_once(started().id) })
    }

    /// Returns a draft with a waiting caller.
    fn draft(call: CallStart, part: DraftPart) -> Draft {
        Draft { call: Arc::new(call), part, reply: Some(oneshot::channel().0) }
    }

    #[test]
    fn on_failure_ended_calls_are_kept_and_new_writes_refused() {
        use OnFailure::{QueueReads, Refuse};
        let whole = |status| DraftPart::Whole(end(status));
        let ended = || DraftPart::End(1, end(RecordStatus::Success));
        let (read, write) = (call(Class::Read), call(Class::Write));
        for (case, draft, queued, policy, expected) in [
            (
                "write starts",
                draft(write.clone(), DraftPart::Start),
                0,
                QueueReads,
                DraftOutcome::Refused,
            ),
            (
                "read starts",
                draft(read.clone(), DraftPart::Start),
                0,
                QueueReads,
                DraftOutcome::Held,
            ),
            (
                "read starts, none kept",
                draft(read.clone(), DraftPart::Start),
                0,
                Refuse,
                DraftOutcome::Held,
            ),
            ("read ends", draft(read.clone(), ended()), 0, QueueReads, DraftOutcome::Queued),
            (
                "read ends, refusing",
                draft(read.clone(), ended()),
                0,
                Refuse,
                DraftOutcome::QueuedWithError,
            ),
            (
                "write ends",
                draft(write.clone(), ended()),
                0,
                QueueReads,
                DraftOutcome::QueuedWithError,
            ),
            (
                "read ends, queue full",
                draft(read.clone(), ended()),
                QUEUE_MAX,
                QueueReads,
                DraftOutcome::Queued,
            ),
            (
                "whole read",
                draft(read.clone(), whole(RecordStatus::Success)),
                QUEUE_MAX,
                QueueReads,
                DraftOutcome::Queued,
            ),
            (
                "refused call",
                draft(write.clone(), whole(RecordStatus::Blocked)),
                QUEUE_MAX - 1,
                QueueReads,
                DraftOutcome::Queued,
            ),
            (
                "refused call, refusing",
                draft(write.clone(), whole(RecordStatus::Blocked)),
                0,
                Refuse,
                DraftOutcome::QueuedWithError,
            ),
            (
                "refused call, queue full",
                draft(write.clone(), whole(RecordStatus::Blocked)),
                QUEUE_MAX,
                QueueReads,
                DraftOutcome::Refused,
            ),
            (
                "event",
                draft(event(), whole(RecordStatus::Success)),
                0,
                Refuse,
                DraftOutcome::Queued,
            ),
            (
                "event, queue full",
                draft(event(), whole(RecordStatus::Success)),
                QUEUE_MAX,
                QueueReads,
                DraftOutcome::Refused,
            ),
            (
                "event that nobody waits for, queue full",
                Draft { reply: None, ..draft(event(), whole(RecordStatus::Success)) },
                QUEUE_MAX,
                QueueReads,
                DraftOutcome::Queued,
            ),
        ] {
            assert_eq!(draft.outcome_on_failure(queued, policy), expected, "{case}");
        }
    }
}
