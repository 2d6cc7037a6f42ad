//! The calls of running steps. They come from the ledger, which has their targets and outcomes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp::task;
use runner::environment::SessionList;
use store::Store;
use store::read::LedgerChange;

use super::moment::SeenCall;
use super::writes::Writes;

/// Changes of the ledger that are read at once.
const CHANGES_MAX: usize = 200;

/// The sessions of running steps.
#[derive(Clone, Default)]
pub(super) struct Sessions(Arc<Mutex<BTreeMap<u32, StepSessions>>>);

struct StepSessions {
    run: String,
    list: SessionList,
    /// Those that the record of the step already has.
    known: Vec<String>,
}

impl Sessions {
    /// Adds a step that has begun.
    pub(super) fn follow(&self, run: &str, step: u32, list: SessionList) {
        let sessions = StepSessions { run: run.to_owned(), list, known: Vec::new() };
        self.lock().insert(step, sessions);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, StepSessions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls of running steps that were not shown yet.
pub(super) struct StepCalls {
    store: Store,
    /// The last change that was read.
    last: Option<i64>,
    sessions: Sessions,
    writes: Writes,
}

impl StepCalls {
    /// Begins with the next change of the ledger.
    pub(super) async fn from_now(store: Store, sessions: Sessions, writes: Writes) -> StepCalls {
        let reader = store.read().clone();
        let latest = task::spawn_blocking(move || reader.latest_change());
        let last = latest.await.ok().and_then(Result::ok);
        StepCalls { store, last, sessions, writes }
    }

    /// Returns the calls that began or ended since the last time.
    pub(super) async fn news(&mut self) -> Vec<SeenCall> {
        self.keep_sessions();
        let mut seen = Vec::new();
        while let Some(last) = self.last {
            let reader = self.store.read().clone();
            let found = task::spawn_blocking(move || reader.changes_after(last, CHANGES_MAX));
            let Ok(Ok(found)) = found.await else { break };
            self.last = found.last().map_or(self.last, |(newest, _)| Some(*newest));
            let is_all = found.len() < CHANGES_MAX;
            for (_, change) in found {
                if let LedgerChange::Record(record) = change
                    && let Some(step) = self.step_of(record.session_id.as_deref())
                {
                    seen.push(SeenCall::of(step, &record));
                }
            }
            if is_all {
                break;
            }
        }
        seen
    }

    /// Returns the last calls of a step that has ended, once all of it is written.
    pub(super) async fn last_of(&mut self, step: u32) -> Vec<SeenCall> {
        self.writes.flushed().await;
        self.store.settled().await;
        let seen = self.news().await;
        self.sessions.lock().remove(&step);
        seen
    }

    fn step_of(&self, session: Option<&str>) -> Option<u32> {
        let session = session?;
        let sessions = self.sessions.lock();
        let mut steps = sessions.iter();
        steps.find_map(|(step, of)| of.known.iter().any(|it| it == session).then_some(*step))
    }

    /// Writes new sessions of running steps into their records, so that others see their calls.
    fn keep_sessions(&self) {
        for (number, step) in self.sessions.lock().iter_mut() {
            let found = (step.list)();
            if found.len() > step.known.len() {
                step.known.clone_from(&found);
                let (run, number) = (step.run.clone(), *number);
                self.writes
                    .send(move |store, _| store.state().set_step_sessions(&run, number, &found));
            }
        }
    }
}
