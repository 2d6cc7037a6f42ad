//! Retention in rounds: what is too old goes first; then, if a limit is exceeded, payloads, and
//! records older than a day, of those who hold most; then names that nothing refers to. A round takes
//! many small steps, and ends with a signed statement of what it deleted. Records of the last day are
//! never deleted.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use rusqlite::Connection;

use super::clock::LedgerClock;
use super::deletion::ExpiringRow;
use super::meter::{Measure, Meter};
use super::names::NamesProgress;
use super::pace::RetentionPace;
use super::plan::DeletionPlan;
use super::rules::RetentionRules;
use super::shares::{self, RecordShares};
use super::tally::ExpiryReason;
use super::{clock, deletion};
use crate::error::StoreError;
use crate::limits::{RETENTION_REST_MAX, RETENTION_ROUNDS_APART};

/// Retention by one process.
pub(crate) struct Retention {
    phase: Phase,
    round: Round,
    plan: DeletionPlan,
    pace: RetentionPace,
    meter: Meter,
    shares: Arc<RecordShares>,
    /// The bytes of the file that retention cannot free, when they were last measured.
    others: u64,
    filed: FiledRows,
    /// The beginning of the last round, by both clocks.
    began: Option<(Instant, Timestamp)>,
    ended: Instant,
}

/// The state of a round.
#[derive(Clone, Copy, Default)]
struct Round {
    rules: Option<RetentionRules>,
    /// Records from before this time are too old, in microseconds.
    oldest_us: i64,
    /// Records from this time on are never deleted.
    day_us: i64,
    /// The bytes that are still to be freed.
    excess: u64,
    /// Records were deleted, so that names may be unused.
    is_effective: bool,
}

/// Rows filed since the last round.
#[derive(Clone, Copy, Default)]
struct FiledRows {
    rows: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    Runs,
    Old,
    Weigh,
    /// Records beyond the limit on their number.
    Surplus,
    Payloads,
    Outputs,
    Records,
    Names(NamesProgress),
    End,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetentionStep {
    /// There is more to do after a pause.
    More(Duration),
    /// The round has ended, and its deletions are to be stated.
    Ended,
}

impl Retention {
    pub(crate) fn new(file: &Path, shares: Arc<RecordShares>) -> Retention {
        Retention {
            phase: Phase::Begin,
            round: Round::default(),
            plan: DeletionPlan::default(),
            pace: RetentionPace::default(),
            meter: Meter::new(file),
            shares,
            others: 0,
            filed: FiledRows::default(),
            began: None,
            ended: Instant::now(),
        }
    }

    /// Returns the rules by which this round deletes; none if nothing is deleted.
    pub(crate) fn rules_in_effect(&self) -> Option<RetentionRules> {
        self.round.rules
    }

    /// Reports whether the deletions of the round are to be stated.
    pub(crate) fn is_stating(&self) -> bool {
        self.phase == Phase::End
    }

    pub(crate) fn end_round(&mut self, now: Instant) {
        self.phase = Phase::Begin;
        self.ended = now;
    }

    /// Reports whether the next step begins a round.
    pub(crate) fn is_new_round(&self) -> bool {
        self.phase == Phase::Begin
    }

    /// Gives up the round, if there is one; the next step begins anew.
    pub(crate) fn begin_anew(&mut self) {
        self.phase = Phase::Begin;
    }

    /// Stops what runs in parallel with the writer.
    pub(crate) fn stop(&mut self) {
        self.meter.stop();
    }

    /// Counts filed rows; returns whether so many were filed that a round is due.
    pub(crate) fn count_filed(&mut self, rows: usize, bytes: usize) -> bool {
        self.filed.rows += rows as u64;
        self.filed.bytes += bytes as u64;
        let Some(rules) = self.round.rules else {
            return false;
        };
        let is_much =
            self.filed.rows > rules.records_max / 8 || self.filed.bytes > rules.bytes_max() / 8;
        is_much && self.is_new_round() && self.ended.elapsed() > RETENTION_ROUNDS_APART
    }

    /// Does one small step of the round.
    pub(crate) fn step(
        &mut self,
        db: &Connection,
        now: Timestamp,
    ) -> Result<RetentionStep, StoreError> {
        loop {
            let began = Instant::now();
            let (phase, is_work) = self.advance(db, now)?;
            let is_waiting = phase == self.phase && phase == Phase::Weigh;
            self.phase = phase;
            if phase == Phase::End {
                return Ok(RetentionStep::Ended);
            }
            if is_waiting {
                return Ok(RetentionStep::More(RETENTION_REST_MAX));
            }
            if is_work {
                return Ok(RetentionStep::More(self.pace.took(began.elapsed())));
            }
        }
    }

    /// Returns the next phase, and whether this one wrote to the file.
    fn advance(&mut self, db: &Connection, now: Timestamp) -> Result<(Phase, bool), StoreError> {
        let oldest_us = self.round.oldest_us;
        let rows = self.pace.rows();
        let next = match self.phase {
            Phase::Begin => (self.begin(db, now)?, false),
            Phase::Runs => {
                let deleted = deletion::runs(db, oldest_us, rows)?;
                if deleted.rows > 0 { (Phase::Runs, true) } else { (Phase::Old, false) }
            }
            Phase::Old => {
                let deleted = deletion::records(db, oldest_us, rows)?;
                self.round.is_effective |= deleted.rows > 0;
                let next = if deleted.rows < rows { Phase::Weigh } else { Phase::Old };
                (next, deleted.rows > 0)
            }
            Phase::Weigh => (self.weigh(db)?, false),
            Phase::Surplus => match next_rows(&mut self.plan.surplus, rows) {
                planned if planned.is_empty() => (Phase::Payloads, false),
                planned => {
                    let reason = ExpiryReason::Number;
                    self.freed(deletion::planned_records(db, &planned, reason)?);
                    self.round.is_effective = true;
                    (Phase::Surplus, true)
                }
            },
            Phase::Payloads | Phase::Outputs | Phase::Records if self.round.excess == 0 => {
                (self.names(), false)
            }
            Phase::Payloads => match next_rows(&mut self.plan.payloads, rows) {
                planned if planned.is_empty() => (Phase::Outputs, false),
                planned => {
                    self.freed(deletion::planned_payloads(db, &planned)?);
                    (Phase::Payloads, true)
                }
            },
            Phase::Outputs => match next_rows(&mut self.plan.outputs, rows) {
                planned if planned.is_empty() => (Phase::Records, false),
                planned => {
                    self.freed(deletion::planned_outputs(db, &planned)?);
                    (Phase::Outputs, true)
                }
            },
            Phase::Records => match next_rows(&mut self.plan.records, rows) {
                planned if planned.is_empty() => (self.names(), false),
                planned => {
                    self.freed(deletion::planned_records(db, &planned, ExpiryReason::Size)?);
                    self.round.is_effective = true;
                    (Phase::Records, true)
                }
            },
            Phase::Names(mut progress) => {
                let has_more = progress.prune(db, rows)?;
                (if has_more { Phase::Names(progress) } else { Phase::End }, has_more)
            }
            Phase::End => (Phase::End, false),
        };
        Ok(next)
    }

    fn freed(&mut self, deleted: deletion::Deleted) {
        self.round.excess = self.round.excess.saturating_sub(deleted.bytes);
    }

    fn begin(&mut self, db: &Connection, now: Timestamp) -> Result<Phase, StoreError> {
        self.filed = FiledRows::default();
        self.plan = DeletionPlan::default();
        let rules = RetentionRules::kept(db)?;
        if let Some((at, time)) = self.began {
            // What a clock that was not set would show by now, at least.
            let passed = SignedDuration::try_from(at.elapsed()).unwrap_or(SignedDuration::ZERO);
            clock::note(db, time.checked_add(passed).unwrap_or(time).as_microsecond(), now)?;
        }
        self.began = Some((Instant::now(), now));
        let clock = LedgerClock::read(db, now)?;
        self.round = Round {
            rules,
            oldest_us: rules.map_or(i64::MIN, |rules| rules.oldest(&clock)),
            day_us: clock.days_ago(1),
            ..Round::default()
        };
        Ok(if rules.is_some() { Phase::Runs } else { Phase::End })
    }

    /// Compares the limits with cheap upper bounds, and measures if those exceed them.
    fn weigh(&mut self, db: &Connection) -> Result<Phase, StoreError> {
        let Some(rules) = self.round.rules else {
            return Ok(Phase::End);
        };
        let may_exceed = records_bound(db)? > rules.records_max
            || deletion::used_bytes(db)?.saturating_sub(self.others) > rules.bytes_max();
        if !may_exceed {
            self.shares.set(Default::default());
            return Ok(self.names());
        }
        let Some(measure) = self.meter.poll(rules, self.round.day_us)? else {
            return Ok(Phase::Weigh);
        };
        Ok(self.weighed(measure, &rules))
    }

    fn weighed(&mut self, measure: Measure, rules: &RetentionRules) -> Phase {
        self.shares.set(shares::over(&measure.day, rules));
        // Receipts that leave with their chains would make this too large.
        let others = measure.used.saturating_sub(measure.bytes);
        self.others = if rules.receipt_days == 0 { others } else { 0 };
        self.round.excess = measure.bytes.saturating_sub(rules.bytes_max());
        self.plan = measure.plan;
        Phase::Surplus
    }

    fn names(&self) -> Phase {
        if self.round.is_effective { Phase::Names(NamesProgress::default()) } else { Phase::End }
    }
}

/// Takes the next rows of a plan.
fn next_rows(plan: &mut VecDeque<ExpiringRow>, most: usize) -> Vec<ExpiringRow> {
    plan.drain(..most.min(plan.len())).collect()
}

/// Returns an upper bound on the number of records.
fn records_bound(db: &Connection) -> Result<u64, StoreError> {
    let bound: Option<i64> = db
        .prepare_cached(
            "SELECT (SELECT MAX(number) FROM activity) - (SELECT MIN(number) FROM activity) + 1",
        )?
        .query_row([], |row| row.get(0))?;
    Ok(bound.and_then(|bound| u64::try_from(bound).ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests;
