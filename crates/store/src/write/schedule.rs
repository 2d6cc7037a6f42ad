//! Decides the writer's next action from a description of its situation: nothing here reads a
//! clock, touches a file or waits.

use std::time::{Duration, Instant};

use domain::config::Durability;

use crate::limits::{
    CHECKPOINT_AFTER, FILE_AFTER, FILE_MAX, JOURNAL_BYTES_LARGE, JOURNAL_BYTES_MAX,
    RETENTION_EVERY, RETENTION_PAUSE, RETRY_EVERY, UNFILED_BYTES_MAX, UNFILED_MAX,
};

/// One action of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Files again the rows that could not be filed.
    Refile,
    /// Commits the messages from the inbox, after those that could not be committed before.
    Commit,
    /// Writes something small, to check whether the ledger can be written again.
    Probe,
    /// Hands the next batch to the signer.
    Sign,
    /// Files the batch that the signer returned.
    FileSigned,
    /// Signs and files the next batch on the writer's own thread.
    FileHere,
    /// Answers callers whose entries can be read.
    AnswerSettled,
    Rotate,
    /// Issues a receipt that names the heads of all chains.
    Checkpoint,
    /// Ends the chain; there is no next action.
    Close,
    /// Applies retention, and closes chains and runs that other processes left open.
    Maintain,
    /// Sleeps, since nothing is left to do in this turn.
    Rest,
}

/// The writer as the schedule sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) durability: Durability,
    /// The length of the chain's journal; none before the first entry.
    pub(crate) journal_bytes: Option<u64>,
    /// The journal must be begun anew, however short it is.
    pub(crate) is_journal_due: bool,
    /// Drafts that could not be committed.
    pub(crate) queued: usize,
    /// The time at which the first held start is due without its end.
    pub(crate) held_until: Option<Instant>,
    /// The last write to the ledger failed.
    pub(crate) is_failing: bool,
    /// The commit time of the first entry that no checkpoint covers.
    pub(crate) uncovered_since: Option<Instant>,
    pub(crate) unfiled: UnfiledRows,
    pub(crate) batches: Batches,
    pub(crate) waiting: Waiting,
}

/// Rows that are committed and in no batch yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnfiledRows {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// The commit time of the oldest of them.
    pub(crate) oldest: Option<Instant>,
}

/// The batches on their way into the tables: at most one in each place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batches {
    pub(crate) at_signer: bool,
    /// A batch was returned by the signer.
    pub(crate) is_signed: bool,
    /// A batch could not be filed.
    pub(crate) is_refused: bool,
}

/// The numbers of callers that wait for more than the commit of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Callers that wait until all earlier entries are committed.
    pub(crate) commit: usize,
    /// Callers that wait for rows to be filed.
    pub(crate) filing: usize,
    pub(crate) rotation: usize,
    pub(crate) checkpoint: usize,
    pub(crate) close: usize,
}

/// A condition that must hold before drafts are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precondition {
    Nothing,
    /// The tables can be written.
    WritableTables,
    /// The tables are known to be unavailable.
    Unmet,
}

/// The outcome of upkeep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upkeep {
    Done,
    /// There is more to delete after a pause.
    More(Duration),
    /// A receipt is to be issued, once no receipts are being signed.
    Statement,
}

/// The writer's place in its turn, and the time at which upkeep is due.
pub(crate) struct Schedule {
    step: Step,
    upkeep_at: Instant,
    /// The next upkeep is not a mere deletion, and runs while no receipts are being signed.
    upkeep_needs_rest: bool,
    /// Upkeep is due, and waits for the signer, which gets no more rows.
    upkeep_waits: bool,
    /// The same of a checkpoint.
    checkpoint_waits: bool,
}

/// The steps of a turn. Each is taken at most once, except `MakeRoom`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Refile,
    Commit,
    Probe,
    /// The signer works on the next batch while the last one is filed.
    SignAhead,
    FileSigned,
    MakeRoom,
    Sign,
    AnswerSettled,
    Rotate,
    Checkpoint,
    Close,
    Maintain,
    Rest,
}

impl Step {
    fn following(self) -> Step {
        match self {
            Step::Refile => Step::Commit,
            Step::Commit => Step::Probe,
            Step::Probe => Step::SignAhead,
            Step::SignAhead => Step::FileSigned,
            Step::FileSigned => Step::MakeRoom,
            Step::MakeRoom => Step::Sign,
            Step::Sign => Step::AnswerSettled,
            Step::AnswerSettled => Step::Rotate,
            Step::Rotate => Step::Checkpoint,
            Step::Checkpoint => Step::Close,
            Step::Close => Step::Maintain,
            Step::Maintain => Step::Rest,
            Step::Rest => Step::Refile,
        }
    }
}

impl Schedule {
    pub(crate) fn new(now: Instant) -> Schedule {
        // Not at once: startup is not the time for upkeep.
        let upkeep_at = now + RETENTION_PAUSE;
        Schedule {
            step: Step::Refile,
            upkeep_at,
            upkeep_needs_rest: true,
            upkeep_waits: false,
            checkpoint_waits: false,
        }
    }

    /// Returns the next action of this turn. A turn ends with `Rest` or `Close`.
    pub(crate) fn next(&mut self, at: &Situation, now: Instant) -> Action {
        loop {
            let step = self.step;
            let action = self.action(step, at, now);
            if step != Step::MakeRoom || action.is_none() {
                self.step = step.following();
            }
            if let Some(action) = action {
                return action;
            }
        }
    }

    fn action(&mut self, step: Step, at: &Situation, now: Instant) -> Option<Action> {
        match step {
            Step::Refile => at.batches.is_refused.then_some(Action::Refile),
            Step::Commit => Some(Action::Commit),
            // Without anything to retry, a ledger that failed would never be found sound again: a
            // gate that refuses every call sends it nothing.
            Step::Probe => (at.is_failing && !at.is_stuck()).then_some(Action::Probe),
            Step::SignAhead => self.signs_ahead(at, now).then_some(Action::Sign),
            Step::FileSigned => at.batches.is_signed.then_some(Action::FileSigned),
            Step::MakeRoom => at.lacks_room().then_some(Action::FileHere),
            Step::Sign => self.signs(at, now).then_some(Action::Sign),
            Step::AnswerSettled => (at.waiting.filing > 0).then_some(Action::AnswerSettled),
            Step::Rotate => {
                (at.waiting.rotation > 0 && !at.batches.is_signing()).then_some(Action::Rotate)
            }
            Step::Checkpoint => self.checkpoints(at, now).then_some(Action::Checkpoint),
            Step::Close => {
                (at.waiting.close > 0 && !at.batches.is_signing()).then_some(Action::Close)
            }
            Step::Maintain => self.maintains(at, now).then_some(Action::Maintain),
            Step::Rest => Some(Action::Rest),
        }
    }

    /// Returns the time until something needs doing, unless a message comes.
    pub(crate) fn rest(&self, at: &Situation, now: Instant) -> Duration {
        if at.batches.is_signed {
            return Duration::ZERO;
        }
        if at.is_stuck() || at.is_failing {
            return RETRY_EVERY;
        }
        let oldest = at.unfiled.oldest.filter(|_| !at.batches.at_signer);
        let filing = oldest.map(|since| since + FILE_AFTER);
        let upkeep = if self.upkeep_waits { now + FILE_AFTER } else { self.upkeep_at };
        let checkpoint = at.uncovered_since.map(|since| {
            if self.checkpoint_waits { now + FILE_AFTER } else { since + CHECKPOINT_AFTER }
        });
        let due = [at.held_until, filing, checkpoint];
        let next = due.into_iter().flatten().fold(upkeep, Instant::min);
        next.saturating_duration_since(now)
    }

    /// Reports whether rows go to the signer: once they are many, old or waited for. The signer
    /// pauses while a receipt is to be issued after all committed rows.
    pub(crate) fn signs(&self, at: &Situation, now: Instant) -> bool {
        !at.batches.is_signing() && self.has_batch(at, now)
    }

    /// Reports the same while a returned batch is still to be filed, unless some work must come
    /// first that allows no batch in progress.
    fn signs_ahead(&self, at: &Situation, now: Instant) -> bool {
        at.batches.is_signed
            && !at.batches.at_signer
            && !at.is_crowded()
            && !at.is_journal_long()
            && self.has_batch(at, now)
    }

    fn has_batch(&self, at: &Situation, now: Instant) -> bool {
        let Some(oldest) = at.unfiled.oldest else {
            return false;
        };
        let is_urgent = at.waiting.filing > 0 || at.unfiled.rows >= FILE_MAX;
        let is_due = is_urgent || now.saturating_duration_since(oldest) >= FILE_AFTER;
        let is_issuing = at.waiting.rotation + at.waiting.checkpoint + at.waiting.close > 0;
        let rests = is_issuing || self.upkeep_waits || self.checkpoint_waits;
        is_due && !rests && !at.batches.is_refused
    }

    /// Reports whether a caller may commit the few waiting entries on its own thread: if nothing
    /// else is to be done, and if that does not mean waiting for the disk.
    pub(crate) fn lets_callers_commit(&self, at: &Situation) -> bool {
        at.durability == Durability::Process
            && at.journal_bytes.is_some()
            && !self.upkeep_waits
            && !self.checkpoint_waits
            && !at.waiting.is_urgent()
            && at.lets_commit_beside_filing()
    }

    /// Reports whether a checkpoint is issued now: on request, or a minute after the first entry
    /// that none covers. Like every receipt of the ledger's own it follows all committed rows.
    fn checkpoints(&mut self, at: &Situation, now: Instant) -> bool {
        let is_requested = at.waiting.checkpoint > 0;
        let is_old = |since| now.saturating_duration_since(since) >= CHECKPOINT_AFTER;
        let is_due = at.uncovered_since.is_some_and(is_old) && !at.is_stuck() && !at.is_failing;
        self.checkpoint_waits = (is_requested || is_due) && at.batches.is_signing();
        (is_requested || is_due) && !at.batches.is_signing()
    }

    /// Reports whether upkeep runs now. A separate receipt cannot be issued while others are being
    /// signed.
    fn maintains(&mut self, at: &Situation, now: Instant) -> bool {
        if now < self.upkeep_at {
            return false;
        }
        self.upkeep_waits = self.upkeep_needs_rest && at.batches.is_signing();
        !self.upkeep_waits
    }

    /// Schedules the next upkeep: soon if there is more to do. Faults wait for the next round:
    /// keeping too much does no harm.
    pub(crate) fn maintained(&mut self, upkeep: Upkeep, now: Instant) {
        let (pause, needs_rest) = match upkeep {
            Upkeep::Done => (RETENTION_EVERY, true),
            Upkeep::More(pause) => (pause, false),
            Upkeep::Statement => (Duration::ZERO, true),
        };
        self.upkeep_at = now + pause;
        self.upkeep_needs_rest = needs_rest;
    }

    /// Makes upkeep due now.
    pub(crate) fn hasten_upkeep(&mut self, now: Instant) {
        self.upkeep_at = self.upkeep_at.min(now);
    }
}

impl Situation {
    /// Reports whether something could not be written and is to be retried.
    pub(crate) fn is_stuck(&self) -> bool {
        self.queued > 0 || self.batches.is_refused
    }

    /// Reports whether more is committed than can be filed in parallel.
    fn is_crowded(&self) -> bool {
        self.unfiled.rows > UNFILED_MAX || self.unfiled.bytes > UNFILED_BYTES_MAX
    }

    /// Reports whether commits wait until some rows are filed.
    fn lacks_room(&self) -> bool {
        self.is_crowded() && !self.batches.is_signing() && !self.batches.is_refused
    }

    /// Reports whether new entries are committed between the rows that are filed, so that no caller
    /// waits for all of them.
    pub(crate) fn lets_commit_beside_filing(&self) -> bool {
        !self.is_crowded() && !self.is_stuck() && !self.is_failing
    }

    /// Chooses the precondition of a commit: committed rows must be filed soon. So a call that
    /// would change things is not permitted while the tables are unavailable, and after a fault
    /// nothing is committed until they are available again.
    pub(crate) fn precondition(&self, permits_a_call: bool) -> Precondition {
        if self.batches.is_refused {
            Precondition::Unmet
        } else if self.is_failing || permits_a_call {
            Precondition::WritableTables
        } else {
            Precondition::Nothing
        }
    }

    /// Reports whether restarting the journal pays off: much was added since, and little of it is
    /// still needed. For a very long one more may be needed, since a crash would require reading
    /// all of it.
    fn is_journal_long(&self) -> bool {
        self.is_journal_due
            || self.journal_bytes.is_some_and(|length| {
                let parts = if length > JOURNAL_BYTES_LARGE { 4 } else { 16 };
                length > JOURNAL_BYTES_MAX && length / parts > self.unfiled.bytes as u64
            })
    }

    /// Reports whether the journal restarts. Rows at the signer must stay in it, and are not known
    /// here; rows to be retried may end a call whose start is there.
    pub(crate) fn begins_journal_anew(&self) -> bool {
        self.is_journal_long() && !self.batches.is_signing() && self.queued == 0
    }

    /// Reports whether rows up to this one are settled: they are filed, or cannot be.
    pub(crate) fn is_settled(&self, upto: u64, filed: u64) -> bool {
        upto <= filed || self.is_stuck()
    }
}

impl UnfiledRows {
    /// Returns the number of rows to file next.
    pub(crate) fn batch(self) -> usize {
        self.rows.min(FILE_MAX)
    }
}

impl Batches {
    /// Reports whether rows are at the signer, or were returned by it.
    pub(crate) fn is_signing(self) -> bool {
        self.at_signer || self.is_signed
    }
}

impl Waiting {
    /// Reports whether a caller waits for everything to be filed.
    pub(crate) fn is_urgent(self) -> bool {
        self.commit + self.rotation + self.checkpoint + self.close > 0
    }
}

#[cfg(test)]
mod tests;
