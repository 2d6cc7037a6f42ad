//! Records a run in the store as it progresses, and notifies observers. A separate thread writes to
//! the store, in the order of events, and removes secrets first.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};

use domain::ledger::redaction::Redactor;
use runner::surroundings::{CallCount, Watch};
use serde::Serialize;
use store::run::{RunEnd, RunRecord, StepRecord, StepStatus};
use store::{Store, StoreError};
use tokio::task::JoinHandle;

use super::progress::Progress;

pub(super) struct Recorder {
    inner: Arc<Inner>,
    writing: JoinHandle<()>,
}

type Write = Box<dyn FnOnce(&Store, &Redactor) -> Result<(), StoreError> + Send>;

struct Inner {
    writes: Mutex<Option<mpsc::Sender<Write>>>,
    steps: Mutex<Vec<EndedStep>>,
    progress: Progress,
}

impl Recorder {
    pub(super) fn start(store: Store, redactor: Redactor, progress: Progress) -> Recorder {
        let (sender, writes) = mpsc::channel::<Write>();
        let writing = tokio::task::spawn_blocking(move || {
            for write in writes {
                if let Err(error) = write(&store, &redactor) {
                    tracing::warn!("cannot record the progress of the run: {error}");
                }
            }
        });
        let inner = Inner { writes: Mutex::new(Some(sender)), steps: Mutex::default(), progress };
        Recorder { inner: Arc::new(inner), writing }
    }

    pub(super) fn watch(&self) -> Arc<dyn Watch> {
        self.inner.clone()
    }

    /// Waits until all is written. Returns the steps, in the order in which they ended.
    pub(super) async fn end(self) -> Vec<EndedStep> {
        self.inner.writes.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = self.writing.await;
        std::mem::take(&mut *self.inner.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    fn write(
        &self,
        write: impl FnOnce(&Store, &Redactor) -> Result<(), StoreError> + Send + 'static,
    ) {
        let writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writes) = &*writes {
            // The writer ends only after this write.
            let _ = writes.send(Box::new(write));
        }
    }
}

impl Watch for Inner {
    fn run_began(&self, run: &RunRecord) {
        let run = run.clone();
        self.write(move |store, _| store.state().begin_run(&run));
    }

    fn run_ended(&self, run: &RunRecord, end: &RunEnd) {
        self.progress.run_ended(run, end);
        let (id, end) = (run.id.clone(), end.clone());
        self.write(move |store, redactor| store.state().end_run(&id, &end.redacted(redactor)));
    }

    fn step_began(&self, step: &StepRecord) {
        self.progress.step_began(step);
        let step = step.clone();
        self.write(move |store, _| store.state().begin_step(&step));
    }

    fn step_at_work(&self, step: &StepRecord, calls: CallCount) {
        self.progress.step_at_work(step, calls);
    }

    fn step_ended(&self, step: &StepRecord, calls: u64) {
        self.progress.step_ended(step, calls);
        let ended = EndedStep::new(step, calls);
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
        let step = step.clone();
        self.write(move |store, redactor| store.state().end_step(&step.redacted(redactor)));
    }
}

/// A step in the output for programs.
#[derive(Serialize)]
pub(super) struct EndedStep {
    state: String,
    kind: String,
    attempt: u32,
    provider: Option<String>,
    model: Option<String>,
    isolation: Option<String>,
    status: &'static str,
    duration_ms: Option<u64>,
    exit_code: Option<i32>,
    calls: u64,
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    error_code: Option<String>,
    error_message: Option<String>,
    output: Option<String>,
}

impl EndedStep {
    fn new(step: &StepRecord, calls: u64) -> EndedStep {
        let took = step.ended_at.map(|end| end.duration_since(step.started_at).as_millis());
        EndedStep {
            state: step.state.clone(),
            kind: step.kind.clone(),
            attempt: step.attempt,
            provider: step.provider.clone(),
            model: step.model.clone(),
            isolation: step.isolation.clone(),
            status: step.status.as_str(),
            duration_ms: took.map(|took| u64::try_from(took).unwrap_or_default()),
            exit_code: step.exit_code,
            calls,
            tokens: step.tokens,
            cost_usd: step.cost_usd,
            error_code: step.error_code.clone(),
            error_message: step.error.clone(),
            output: step.output.clone(),
        }
    }

    /// Returns the output of the step, if it succeeded.
    pub(super) fn said(&self) -> Option<&str> {
        self.output.as_deref().filter(|_| self.status == StepStatus::Success.as_str())
    }
}
