//! A ledger that another process of the home writes. Entries go to that process, the lender, which
//! answers once they are safe. When it is gone, this process writes for itself. A call that began
//! at the lender cannot end here then: the lender, or recovery after it, ends it as interrupted.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::tool::Class;
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::record::Entry;
use crate::write::message::CommitReply;
use crate::write::{Commit, LedgerHealth};
use crate::{OnFailure, Store};

/// The connection to the process that writes.
pub trait Lender: Send + Sync {
    /// Hands an entry over. An answer that never comes is dropped.
    fn append(&self, entry: Entry, reply: CommitReply);

    /// Answers when everything appended before can be read, or the lender is gone.
    fn settle(&self, done: oneshot::Sender<()>);

    /// Reports whether the lender takes no more calls. Those that it has taken may still end there.
    fn is_gone(&self) -> bool;

    /// Returns the reason that the last entry was not written, if it was not.
    fn fault(&self) -> Option<StoreError>;
}

pub(crate) struct Loan {
    lender: Box<dyn Lender>,
    /// Calls that began at the lender and have not ended.
    begun: Mutex<HashSet<String>>,
    /// The ledger as this process writes it, once the lender is gone.
    own: Mutex<Option<Store>>,
    home: PathBuf,
    rules: domain::config::Ledger,
}

impl Loan {
    pub(crate) fn new(
        lender: Box<dyn Lender>,
        home: PathBuf,
        rules: domain::config::Ledger,
    ) -> Loan {
        Loan { lender, begun: Mutex::default(), own: Mutex::default(), home, rules }
    }

    pub(crate) fn append(&self, entry: Entry) -> Commit {
        let is_lent = {
            let mut begun = lock(&self.begun);
            match &entry {
                Entry::Ended(end) => begun.remove(&end.id),
                Entry::Started(_) | Entry::Whole(..) if self.lender.is_gone() => false,
                Entry::Started(start) => begun.insert(start.id.clone()),
                Entry::Whole(..) => true,
            }
        };
        if !is_lent {
            return match self.own() {
                Ok(own) => own.append(entry),
                Err(error) => Commit::known(Err(error)),
            };
        }
        let (reply, answer) = oneshot::channel();
        self.lender.append(entry, reply);
        Commit::awaited(answer)
    }

    pub(crate) fn admits(&self, class: Class) -> Result<(), StoreError> {
        if self.lender.is_gone() {
            return self.own()?.admits(class);
        }
        match (self.lender.fault(), self.rules.on_failure) {
            (Some(fault), OnFailure::Refuse) => Err(fault),
            (Some(_), OnFailure::QueueReads) | (None, _) => Ok(()),
        }
    }

    pub(crate) async fn settled(&self) {
        let (done, settled) = oneshot::channel();
        self.lender.settle(done);
        let _ = settled.await;
        let own = lock(&self.own).clone();
        if let Some(own) = own {
            Box::pin(own.settled()).await;
        }
    }

    pub(crate) fn health(&self) -> LedgerHealth {
        match &*lock(&self.own) {
            Some(own) => own.ledger(),
            None => LedgerHealth { fault: self.lender.fault(), ..LedgerHealth::default() },
        }
    }

    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        self.settled().await;
        let own = lock(&self.own).take();
        match own {
            Some(own) => Box::pin(own.close()).await,
            None => Ok(()),
        }
    }

    /// Returns the ledger of this process. Opening it recovers what the lender left.
    fn own(&self) -> Result<Store, StoreError> {
        let mut own = lock(&self.own);
        if let Some(own) = &*own {
            return Ok(own.clone());
        }
        tracing::info!("the gate that kept the records has ended: this process keeps them itself");
        Ok(own.insert(Store::open(&self.home, &self.rules)?).clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
