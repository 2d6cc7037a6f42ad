//! Upkeep by the writer: by one process at a time, in small steps.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::Writer;
use crate::database::change;
use crate::database::lock::Lock;
use crate::error::StoreError;
use crate::limits::{FILE_MAX, RETENTION_EVERY, RETENTION_PAUSE, RETENTION_REST_MAX, UNMADE_AFTER};
use crate::state;
use crate::upkeep::retention::RetentionStep;
use crate::upkeep::{expiry, tally};
use crate::write::adoption::Adoption;
use crate::write::chain::filed_end_of;
use crate::write::chain_row;
use crate::write::compose;
use crate::write::filing::Consequence;
use crate::write::heads;
use crate::write::joining;
use crate::write::recovery;
use crate::write::schedule::Upkeep;

impl Writer {
    /// Applies retention, and closes what other processes left open.
    pub(super) fn maintain(&mut self) {
        let upkeep = self.try_maintain().unwrap_or_else(|error| {
            tracing::warn!("cannot apply retention: {error}");
            self.retention.begin_anew();
            Upkeep::Done
        });
        self.schedule.maintained(upkeep, Instant::now());
    }

    /// Does a step of the upkeep, unless another process is doing one.
    fn try_maintain(&mut self) -> Result<Upkeep, StoreError> {
        let Some(_lock) = Lock::try_maintenance(&self.writers)? else {
            return Ok(Upkeep::More(RETENTION_PAUSE));
        };
        if self.retention.is_new_round() {
            self.recover_others()?;
        }
        if self.retention.is_stating() { self.end_round() } else { self.delete_some() }
    }

    /// Does a step of the round, unless callers would have to wait for another process.
    fn delete_some(&mut self) -> Result<Upkeep, StoreError> {
        if self.health.is_failing() || !self.is_free() {
            return Ok(Upkeep::More(RETENTION_REST_MAX));
        }
        let step = self.retention.step(&self.db, Timestamp::now())?;
        self.log_copy.look();
        Ok(match step {
            RetentionStep::More(pause) => Upkeep::More(pause),
            RetentionStep::Ended => Upkeep::Statement,
        })
    }

    /// Issues the receipts of a round, for which the signer must be idle.
    fn end_round(&mut self) -> Result<Upkeep, StoreError> {
        if self.work.backlog.batches().is_signing() {
            return Ok(Upkeep::Statement);
        }
        self.state_deletions()?;
        if self.expire_chain()? {
            return Ok(Upkeep::Statement);
        }
        self.retention.end_round(Instant::now());
        Ok(Upkeep::Done)
    }

    /// Closes chains and runs whose process is gone, every ten minutes however often rounds begin.
    fn recover_others(&mut self) -> Result<(), StoreError> {
        let is_due = |at: Instant| at.elapsed() + Duration::from_secs(1) > RETENTION_EVERY;
        if self.recovered_at.is_none_or(is_due) {
            let recovered =
                recovery::recover(&mut self.db, &self.home, &self.keys, Adoption::Intact)?;
            self.health.add_notices(recovered.faults);
            self.health.add_notices(recovered.doubtful);
            if recovered.closed > 0 {
                self.work.uncovered_since.get_or_insert_with(Instant::now);
            }
            state::end_lost_runs(&self.db, &self.writers)?;
            self.end_unmade_calls()?;
            self.recovered_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Ends calls that an event announced and that were never made.
    fn end_unmade_calls(&mut self) -> Result<(), StoreError> {
        let unmade = SignedDuration::try_from(UNMADE_AFTER).unwrap_or(SignedDuration::MAX);
        let before = Timestamp::now().checked_sub(unmade).unwrap_or(Timestamp::MIN);
        if joining::end_unmade(&self.db, before.as_microsecond(), FILE_MAX)? > 0 {
            self.changes.send_replace(change::latest(&self.db)?);
        }
        Ok(())
    }

    /// Signs what retention has deleted since the last statement, by this process or another.
    fn state_deletions(&mut self) -> Result<(), StoreError> {
        let known = self.keys.known();
        if tally::unsigned(&self.db, &known)?.is_some() {
            tracing::error!("{}", tally::UNSIGNED);
        }
        let deleted = tally::unstated(&self.db, &known)?;
        if deleted.is_empty() {
            return Ok(());
        }
        self.issue(Consequence::DeletionsStated, |issuance| {
            Ok(compose::records_expired(issuance, &deleted))
        })?;
        for data in &deleted {
            let (kind, reason) = (data.kind.as_str(), data.reason.as_str());
            let holder = data.holder.as_deref();
            tracing::info!(kind, reason, holder, count = data.count, "deleted old data");
        }
        Ok(())
    }

    /// Expires one chain, if one is old enough and the clock can be trusted.
    fn expire_chain(&mut self) -> Result<bool, StoreError> {
        let Some(rules) = self.retention.rules_in_effect() else { return Ok(false) };
        let Some(cutoff) = rules.oldest_receipt(&self.db)? else { return Ok(false) };
        let Some(chain_id) = rules.expired_chain(&self.db, &cutoff)? else { return Ok(false) };
        let known = self.keys.known();
        if heads::set_damaged_aside(&self.db, (&self.home, &known), &chain_id)? {
            return Ok(true);
        }
        let doubt = chain_row::contradiction(&self.db, (&self.home, &known), &chain_id)?;
        let doubt = match doubt {
            None => chain_row::younger(&self.db, &known, (&chain_id, &cutoff))?,
            doubt => doubt,
        };
        if let Some(words) = doubt {
            tracing::error!("chain {chain_id} does not expire: {words}");
            return Ok(false);
        }
        let last = filed_end_of(&self.db, &chain_id)?;
        let before = heads::expired_by(&self.db, &chain_id)?;
        expiry::export(&self.db, &chain_id, &self.home)?;
        self.issue(Consequence::Expired(&chain_id), |issuance| {
            Ok(compose::expired(issuance, &chain_id, last, &before))
        })?;
        tracing::info!(chain = %chain_id, "exported and removed old receipts");
        Ok(true)
    }
}
