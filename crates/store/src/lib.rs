//! What Countersign remembers of its calls. Records are appended and read back through typed
//! queries; how they are kept is nobody else's business. They live in memory for now and end with
//! the process.

mod activity;
mod committed;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::Code;

pub use activity::{Activity, Agent, Ended, Entry, Filter, Kind, Started, Status};
pub use committed::Committed;

/// Records kept; the oldest leave first.
const RECORDS_MAX: usize = 10_000;

/// Most records one query answers with.
pub const PAGE_MAX: usize = 100;

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot write the ledger: {0}")]
    Write(String),
}

impl StoreError {
    pub fn code(&self) -> Code {
        match self {
            StoreError::Write(_) => Code::LedgerUnavailable,
        }
    }
}

#[derive(Clone, Default)]
pub struct Store {
    records: Arc<Mutex<VecDeque<Activity>>>,
}

impl Store {
    pub fn in_memory() -> Store {
        Store::default()
    }

    /// Takes an entry. The future resolves once it will survive the process being killed; the
    /// entry is taken whether or not anybody waits.
    pub fn append(&self, entry: Entry) -> Committed {
        let mut records = self.lock();
        match entry {
            Entry::Started(started) => {
                if records.len() == RECORDS_MAX {
                    records.pop_front();
                }
                records.push_back(Activity::from(*started));
            }
            Entry::Ended(ended) => {
                let open = records.iter_mut().rev().find(|record| record.id == ended.id);
                if let Some(record) = open {
                    record.end(*ended);
                }
            }
        }
        Committed::now(Ok(()))
    }

    /// The records that fit, newest first.
    pub fn activity(&self, filter: &Filter, limit: usize) -> Vec<Activity> {
        let records = self.lock();
        let fitting = records.iter().rev().filter(|record| filter.fits(record));
        fitting.take(limit.min(PAGE_MAX)).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Activity>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn started(id: &str) -> Started {
        Started {
            id: id.to_owned(),
            kind: Kind::ToolCall,
            source: "mcp",
            surface: "discovery",
            server: "s".to_owned(),
            tool: "t".to_owned(),
            agent: Agent::default(),
            session: None,
            request_id: None,
            at: jiff::Timestamp::UNIX_EPOCH,
            variant: Some("call_tool_read"),
            declared: Some("read"),
            sensitivity: Some("unknown"),
            reason: None,
            effective: Some("read"),
            warnings: vec![],
            arguments_bytes: 2,
        }
    }

    fn ended(id: &str, status: Status) -> Entry {
        Entry::Ended(Box::new(Ended {
            id: id.to_owned(),
            status,
            error_code: None,
            error_message: None,
            duration: Duration::from_millis(3),
            response_bytes: 7,
        }))
    }

    #[test]
    fn an_end_joins_its_start_and_filters_find_it() {
        let store = Store::in_memory();
        for id in ["a", "b"] {
            drop(store.append(Entry::Started(Box::new(started(id)))));
        }
        drop(store.append(ended("a", Status::Error)));
        let filter = Filter { status: Some(Status::Error), ..Filter::default() };
        let found = store.activity(&filter, 10);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].id, "a");
        assert_eq!(found[0].duration, Some(Duration::from_millis(3)));
        let all = store.activity(&Filter::default(), 10);
        assert_eq!(all[0].id, "b", "newest first");
        assert_eq!(all[0].status, Status::Pending);
    }

    #[test]
    fn memory_is_bounded() {
        let store = Store::in_memory();
        for index in 0..RECORDS_MAX + 5 {
            drop(store.append(Entry::Started(Box::new(started(&index.to_string())))));
        }
        assert_eq!(store.lock().len(), RECORDS_MAX);
        assert_eq!(store.lock()[0].id, "5");
    }
}
