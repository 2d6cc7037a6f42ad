//! Upkeep by the writer: by one process at a time, and not while receipts are being signed.

use std::time::Instant;

use super::Writer;
use crate::database::lock::Lock;
use crate::error::StoreError;
use crate::state;
use crate::upkeep::expiry;
use crate::write::adoption::Adoption;
use crate::write::chain::filed_end_of;
use crate::write::compose;
use crate::write::filing::Consequence;
use crate::write::recovery;
use crate::write::schedule::Upkeep;

impl Writer {
    /// Applies retention, and closes what other processes left open.
    pub(super) fn maintain(&mut self) {
        let upkeep = self.try_maintain().unwrap_or_else(|error| {
            tracing::warn!("cannot apply retention: {error}");
            Upkeep::Done
        });
        self.schedule.maintained(upkeep, Instant::now());
    }

    /// Does the upkeep, unless another process is doing it.
    fn try_maintain(&mut self) -> Result<Upkeep, StoreError> {
        let Some(_lock) = Lock::try_maintenance(&self.writers)? else {
            return Ok(Upkeep::Done);
        };
        let recovered =
            recovery::recover(&mut self.db, &self.writers, &self.keys, Adoption::Intact)?;
        self.health.add_notices(recovered.faults);
        state::end_lost_runs(&self.db, &self.writers)?;
        let more = self.retention.let_go(&mut self.db)?;
        let expired = self.expire_chain()?;
        Ok(if expired || more { Upkeep::More } else { Upkeep::Done })
    }

    /// Expires one chain, if one is old enough.
    fn expire_chain(&mut self) -> Result<bool, StoreError> {
        let Some(chain_id) = self.retention.expired_chain(&self.db)? else {
            return Ok(false);
        };
        let last = filed_end_of(&self.db, &chain_id)?;
        expiry::export(&self.db, &chain_id, &self.home)?;
        self.issue(Consequence::Expired(&chain_id), |issuance| {
            compose::expired(issuance, &chain_id, last)
        })?;
        tracing::info!(chain = %chain_id, "exported and removed old receipts");
        Ok(true)
    }
}
