//! Decides what the writer does next. The writer describes its situation, and the answer is an
//! action: nothing here reads a clock, touches a file or waits.

use std::time::{Duration, Instant};

use domain::config::Durability;

use crate::limits::{
    FILE_AFTER, FILE_MAX, JOURNAL_BYTES_LARGE, JOURNAL_BYTES_MAX, RETENTION_EVERY, RETENTION_PAUSE,
    RETRY_EVERY, UNFILED_BYTES_MAX, UNFILED_MAX,
};

/// One thing that the writer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Files again the rows that could not be filed.
    Refile,
    /// Commits what was taken from the inbox, after what could not be committed before.
    Commit,
    /// Writes something small, to find out whether the ledger can be written again.
    Probe,
    /// Hands the next batch to the signer.
    Sign,
    /// Files the batch that came back from the signer.
    FileSigned,
    /// Signs and files the next batch on the writer's own thread.
    FileHere,
    /// Answers those whose entries can be read.
    AnswerSettled,
    Rotate,
    /// Ends the chain; there is no next action.
    Close,
    /// Lets old things go, and closes what other processes left open.
    Maintain,
    /// Nothing is left to do in this turn.
    Rest,
}

/// The writer as the schedule sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    pub(crate) durability: Durability,
    /// Bytes of the chain's journal; none before the first entry.
    pub(crate) journal_bytes: Option<u64>,
    /// Drafts that could not be committed.
    pub(crate) queued: usize,
    /// The time at which the first start that is held back has waited long enough for its end.
    pub(crate) held_until: Option<Instant>,
    /// The ledger could not be written the last time.
    pub(crate) is_failing: bool,
    pub(crate) unfiled: UnfiledRows,
    pub(crate) batches: Batches,
    pub(crate) waiting: Waiting,
}

/// Rows that are committed and in no batch yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnfiledRows {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// The time at which the first of them was committed.
    pub(crate) oldest: Option<Instant>,
}

/// The batches that are on their way into the tables: at most one in each place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batches {
    pub(crate) at_signer: bool,
    /// Came back from the signer.
    pub(crate) is_signed: bool,
    /// Could not be filed.
    pub(crate) is_refused: bool,
}

/// The numbers of those who wait for more than the commit of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// For all that came before to be committed.
    pub(crate) commit: usize,
    /// For rows to be filed.
    pub(crate) filing: usize,
    pub(crate) rotation: usize,
    pub(crate) close: usize,
}

/// A condition that must hold before drafts are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precondition {
    Nothing,
    /// The tables can be written.
    WritableTables,
    /// They are known to be out of reach.
    Unmet,
}

/// The outcome of upkeep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upkeep {
    Done,
    /// There is more to let go of.
    More,
}

/// The writer's place in its turn, and the time at which upkeep is due.
pub(crate) struct Schedule {
    step: Step,
    upkeep_at: Instant,
    /// Upkeep is due, and waits for the signer, which gets no more rows.
    upkeep_waits: bool,
}

/// The steps of a turn. Each is taken at most once, but for `MakeRoom`.
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
            Step::Rotate => Step::Close,
            Step::Close => Step::Maintain,
            Step::Maintain => Step::Rest,
            Step::Rest => Step::Refile,
        }
    }
}

impl Schedule {
    pub(crate) fn new(now: Instant) -> Schedule {
        // Not at once: a start is not the time for upkeep.
        let upkeep_at = now + RETENTION_PAUSE;
        Schedule { step: Step::Refile, upkeep_at, upkeep_waits: false }
    }

    /// The next action of this turn. A turn ends with `Rest` or `Close`.
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
            // Where nothing waits to be tried again, a ledger that failed would never be found
            // sound: a gate that refuses every call meanwhile asks nothing of it.
            Step::Probe => (at.is_failing && !at.is_stuck()).then_some(Action::Probe),
            Step::SignAhead => self.signs_ahead(at, now).then_some(Action::Sign),
            Step::FileSigned => at.batches.is_signed.then_some(Action::FileSigned),
            Step::MakeRoom => at.lacks_room().then_some(Action::FileHere),
            Step::Sign => self.signs(at, now).then_some(Action::Sign),
            Step::AnswerSettled => (at.waiting.filing > 0).then_some(Action::AnswerSettled),
            Step::Rotate => {
                (at.waiting.rotation > 0 && !at.batches.is_signing()).then_some(Action::Rotate)
            }
            Step::Close => {
                (at.waiting.close > 0 && !at.batches.is_signing()).then_some(Action::Close)
            }
            Step::Maintain => self.maintains(at, now).then_some(Action::Maintain),
            Step::Rest => Some(Action::Rest),
        }
    }

    /// The time until something needs doing, unless a message comes.
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
        let next = [at.held_until, filing].into_iter().flatten().fold(upkeep, Instant::min);
        next.saturating_duration_since(now)
    }

    /// Returns whether rows go to the signer: once they are many, old or waited for. It rests while
    /// something is to be issued after all that is committed.
    pub(crate) fn signs(&self, at: &Situation, now: Instant) -> bool {
        !at.batches.is_signing() && self.has_batch(at, now)
    }

    /// The same while a batch that came back is still to be filed: unless there is first something
    /// to be done for which none may be under way.
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
        let rests = at.waiting.rotation > 0 || at.waiting.close > 0 || self.upkeep_waits;
        is_due && !rests && !at.batches.is_refused
    }

    /// Returns whether a caller may commit the few entries that wait on its own thread: if nothing
    /// else is to be done, and not where that means to wait for the disk.
    pub(crate) fn lets_callers_commit(&self, at: &Situation) -> bool {
        at.durability == Durability::Process
            && at.journal_bytes.is_some()
            && !self.upkeep_waits
            && !at.waiting.is_urgent()
            && at.lets_commit_beside_filing()
    }

    /// Upkeep is not done while receipts are being signed.
    fn maintains(&mut self, at: &Situation, now: Instant) -> bool {
        if now < self.upkeep_at {
            return false;
        }
        self.upkeep_waits = at.batches.is_signing();
        !self.upkeep_waits
    }

    /// Looks again soon if there is more to do. Faults wait for the next time: nothing is lost by
    /// keeping too much.
    pub(crate) fn maintained(&mut self, upkeep: Upkeep, now: Instant) {
        self.upkeep_at = now
            + match upkeep {
                Upkeep::Done => RETENTION_EVERY,
                Upkeep::More => RETENTION_PAUSE,
            };
    }
}

impl Situation {
    /// Something could not be written and is tried again.
    pub(crate) fn is_stuck(&self) -> bool {
        self.queued > 0 || self.batches.is_refused
    }

    /// More is committed than can be filed beside it.
    fn is_crowded(&self) -> bool {
        self.unfiled.rows > UNFILED_MAX || self.unfiled.bytes > UNFILED_BYTES_MAX
    }

    /// Commits wait until some rows are filed.
    fn lacks_room(&self) -> bool {
        self.is_crowded() && !self.batches.is_signing() && !self.batches.is_refused
    }

    /// Returns whether new entries are committed between the rows that are filed, so that nobody
    /// waits for all of them.
    pub(crate) fn lets_commit_beside_filing(&self) -> bool {
        !self.is_crowded() && !self.is_stuck() && !self.is_failing
    }

    /// Chooses the check: what is committed must be filed soon. So a call that would change things is not permitted
    /// while the tables are out of reach, and after a fault nothing is committed until they are not.
    pub(crate) fn precondition(&self, permits_a_call: bool) -> Precondition {
        if self.batches.is_refused {
            Precondition::Unmet
        } else if self.is_failing || permits_a_call {
            Precondition::WritableTables
        } else {
            Precondition::Nothing
        }
    }

    /// It is worth while to begin the journal anew: much was added since, and little of it is still
    /// needed. Of a very long one more may be needed: a crash would have all of it read.
    fn is_journal_long(&self) -> bool {
        self.journal_bytes.is_some_and(|length| {
            let parts = if length > JOURNAL_BYTES_LARGE { 4 } else { 16 };
            length > JOURNAL_BYTES_MAX && length / parts > self.unfiled.bytes as u64
        })
    }

    /// Returns whether the journal begins anew. What is with the signer must stay in it, and is not known
    /// here; what waits to be tried again may end a call whose start is there.
    pub(crate) fn begins_journal_anew(&self) -> bool {
        self.is_journal_long() && !self.batches.is_signing() && self.queued == 0
    }

    /// Returns whether rows up to this one are settled: they are filed, or cannot be.
    pub(crate) fn is_settled(&self, upto: u64, filed: u64) -> bool {
        upto <= filed || self.is_stuck()
    }
}

impl UnfiledRows {
    /// The number of rows that are filed next.
    pub(crate) fn batch(self) -> usize {
        self.rows.min(FILE_MAX)
    }
}

impl Batches {
    /// Rows are with the signer, or came back from it.
    fn is_signing(self) -> bool {
        self.at_signer || self.is_signed
    }
}

impl Waiting {
    /// Somebody waits for everything to be in its place.
    pub(crate) fn is_urgent(self) -> bool {
        self.commit > 0 || self.rotation > 0 || self.close > 0
    }
}

#[cfg(test)]
mod tests;
