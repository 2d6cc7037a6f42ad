//! The parts of the demo beyond its agents' calls: the run whose steps they are, and two copies of
//! the chain, one of them altered.

use std::path::Path;

use gateway::Gateway;
use jiff::Timestamp;
use mcp::task;
use store::read::{Page, RecordFilter};
use store::run::{RunEnd, RunRecord, RunStatus, StepRecord, StepStatus};
use store::{Store, StoreError};

use super::script::PLANNER;
use crate::exit::Failure;

/// The zero-based index of the receipt that is altered in one copy.
const CHANGED: usize = 2;

/// A run whose steps the scripted agents play.
pub(super) struct Run {
    store: Store,
    id: String,
    steps: u32,
}

impl Run {
    pub(super) async fn begin(gateway: &Gateway) -> Result<Run, Failure> {
        let id = uuid::Uuid::now_v7().to_string();
        let run = RunRecord {
            id: id.clone(),
            workflow: "release-plan".to_owned(),
            version: Some("1.0".to_owned()),
            file: None,
            pid: std::process::id(),
            started_at: Timestamp::now(),
            ended_at: None,
            status: RunStatus::Running,
            message: None,
            exit_code: None,
            trace_id: None,
            resumed_from: None,
        };
        let store = gateway.store().clone();
        kept(&store, move |store| store.state().begin_run(&run)).await?;
        Ok(Run { store, id, steps: 0 })
    }

    pub(super) async fn begin_step(
        &mut self,
        state: &str,
        agent: &str,
    ) -> Result<StepRecord, Failure> {
        self.steps += 1;
        let step = StepRecord {
            provider: Some(format!("scripted {agent}")),
            isolation: Some("full".to_owned()),
            ..StepRecord::begun(&self.id, self.steps, "agent", state, Timestamp::now())
        };
        let begun = step.clone();
        kept(&self.store, move |store| store.state().begin_step(&begun)).await?;
        Ok(step)
    }

    /// Ends a step; its calls are those of its session.
    pub(super) async fn end_step(&self, step: StepRecord, agent: &str) -> Result<(), Failure> {
        self.store.settled().await;
        let filter = RecordFilter { agent: Some(agent.to_owned()), ..RecordFilter::default() };
        let last = kept(&self.store, move |store| {
            store.read().activity(&filter, &Page::first(1)).map(|found| found.records)
        });
        let sessions = last.await?.into_iter().filter_map(|record| record.session_id).collect();
        let ended = StepRecord {
            status: StepStatus::Success,
            ended_at: Some(Timestamp::now()),
            exit_code: Some(0),
            sessions,
            ..step
        };
        kept(&self.store, move |store| store.state().end_step(&ended)).await
    }

    pub(super) async fn end(self) -> Result<(), Failure> {
        let end = RunEnd {
            status: RunStatus::Success,
            message: Some(format!("the plan is complete; {PLANNER} wrote it last")),
            exit_code: Some(0),
            at: Timestamp::now(),
        };
        kept(&self.store, move |store| store.state().end_run(&self.id, &end)).await
    }
}

/// Writes two copies of the receipts signed so far into the home: one intact, one with a single
/// digit changed.
pub(super) async fn copies(gateway: &Gateway, home: &Path) -> Result<(), Failure> {
    let store = gateway.store().clone();
    store.settled().await;
    let texts = kept(&store, |store| {
        let chain = store.ledger().chain.unwrap_or_default();
        store.read().receipt_texts(&chain).collect::<Result<Vec<String>, StoreError>>()
    });
    let texts = texts.await?;
    let changed: Vec<String> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| if index == CHANGED { with_a_change(text) } else { text.clone() })
        .collect();
    let folder = home.join(store::COPIES);
    let write =
        |name: &str, texts: &[String]| std::fs::write(folder.join(name), texts.join("\n") + "\n");
    std::fs::create_dir_all(&folder)
        .and_then(|()| write("as-signed.jsonl", &texts))
        .and_then(|()| write("tampered.jsonl", &changed))
        .map_err(|error| Failure::system(format!("cannot write '{}': {error}", folder.display())))
}

/// Returns the receipt altered, as if other arguments had been sent.
fn with_a_change(receipt: &str) -> String {
    let mark = "\"parameters_hash\":\"sha256:";
    let Some(place) = receipt.find(mark).map(|at| at + mark.len()) else {
        return receipt.to_owned();
    };
    let digit = if receipt[place..].starts_with('0') { "1" } else { "0" };
    [&receipt[..place], digit, &receipt[place + 1..]].concat()
}

/// Queries the store off the async threads.
async fn kept<T: Send + 'static>(
    store: &Store,
    work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Failure> {
    let store = store.clone();
    let done = task::spawn_blocking(move || work(&store)).await;
    done.map_err(|error| Failure::system(error.to_string()))?.map_err(Failure::store)
}
