//! The health of the ledger, readable without waiting for the writer.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::config::OnFailure;
use domain::tool::Class;
use jiff::Timestamp;
use receipt::Hash;

use crate::error::StoreError;
use crate::write::backlog::Progress;
use crate::write::link::ChainEnd;

#[derive(Default)]
pub(crate) struct Health(Mutex<LedgerHealth>);

/// The state of the ledger that `status` shows.
#[derive(Clone, Debug, Default)]
pub struct LedgerHealth {
    /// The chain that this process writes; none before its first record.
    pub chain: Option<String>,
    pub length: u64,
    pub last_hash: Option<Hash>,
    /// Entries in memory because the file cannot be written.
    pub queue: usize,
    /// No more of them are accepted.
    pub is_full: bool,
    pub fault: Option<StoreError>,
    /// Entries committed since the start.
    pub committed: u64,
    /// Entries that are signed and filed, and so can be read.
    pub filed: u64,
    /// Failed writes since the start.
    pub failures: u64,
    /// The delivery of checkpoints to the anchor; none if there is no anchor.
    pub anchor: Option<AnchorHealth>,
    /// Losses and repairs that an operator must know of.
    pub notices: Vec<String>,
}

/// The delivery of checkpoints to the anchor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnchorHealth {
    /// The time of the last delivery.
    pub delivered_at: Option<Timestamp>,
    /// The time of the first checkpoint that has not been delivered.
    pub waiting_since: Option<Timestamp>,
    /// The reason the last attempt failed.
    pub error: Option<String>,
}

impl AnchorHealth {
    /// Returns the time for which a checkpoint has been waiting.
    pub fn lag(&self, now: Timestamp) -> Duration {
        let lag = self.waiting_since.map(|since| now.duration_since(since));
        lag.and_then(|lag| lag.try_into().ok()).unwrap_or_default()
    }
}

impl Health {
    pub(crate) fn with(notices: Vec<String>) -> Health {
        Health(Mutex::new(LedgerHealth { notices, ..LedgerHealth::default() }))
    }

    pub(crate) fn add_notices(&self, notices: Vec<String>) {
        if !notices.is_empty() {
            let known = &mut self.lock().notices;
            let new: Vec<String> =
                notices.into_iter().filter(|notice| !known.contains(notice)).collect();
            known.extend(new);
        }
    }

    pub(crate) fn now(&self) -> LedgerHealth {
        self.lock().clone()
    }

    pub(crate) fn set_chain(&self, id: &str, end: ChainEnd) {
        let mut ledger = self.lock();
        if ledger.chain.as_deref() != Some(id) {
            ledger.chain = Some(id.to_owned());
        }
        ledger.length = end.sequence;
        ledger.last_hash = end.hash;
    }

    pub(crate) fn set_queue(&self, queue: usize, most: usize) {
        let mut ledger = self.lock();
        ledger.queue = queue;
        ledger.is_full = queue >= most;
    }

    pub(crate) fn set_progress(&self, progress: Progress) {
        let mut ledger = self.lock();
        (ledger.committed, ledger.filed) = (progress.committed, progress.filed);
    }

    /// Marks the ledger as failing; returns whether that is a change.
    pub(crate) fn set_failing(&self, error: &StoreError) -> bool {
        let mut ledger = self.lock();
        ledger.failures += 1;
        ledger.fault.replace(error.clone()).is_none()
    }

    /// Marks the ledger as sound; returns whether that is a change.
    pub(crate) fn set_sound(&self) -> bool {
        let mut ledger = self.lock();
        ledger.queue = 0;
        ledger.is_full = false;
        ledger.fault.take().is_some()
    }

    pub(crate) fn set_anchor(&self, change: impl FnOnce(&mut AnchorHealth)) {
        change(self.lock().anchor.get_or_insert_default());
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.lock().fault.is_some()
    }

    pub(crate) fn fault(&self) -> StoreError {
        self.lock().fault.clone().unwrap_or(StoreError::Closed)
    }

    /// Refuses a call of this class if its record could not be kept.
    pub(crate) fn admits(&self, class: Class, policy: OnFailure) -> Result<(), StoreError> {
        let ledger = self.lock();
        match (&ledger.fault, policy) {
            (Some(fault), OnFailure::Refuse) => Err(fault.clone()),
            // A call that changes things waits for its start to be written, which is a better test.
            (Some(fault), OnFailure::QueueReads) if class == Class::Read && ledger.is_full => {
                Err(fault.clone())
            }
            (Some(_), OnFailure::QueueReads) | (None, _) => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, LedgerHealth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
