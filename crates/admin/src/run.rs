//! `GET /runs`: workflow runs, newest first, and one run with its steps and their calls.

use axum::Json;
use axum::extract::State;
use domain::{Code, Refusal};
use serde::Deserialize;
use store::read::{IdKind, PAGE_MAX, Page, Reader, Record, RecordFilter, Run, RunFilter};
use store::run::{RunStatus, StepRecord, StepStatus};
use store::{Store, StoreError};
use utoipa::IntoParams;

use crate::Admin;
use crate::answer::{Path, Query, Refused};
use crate::form;
use crate::ledger::{PageQuery, off_thread, one_of};
use crate::view::{RunEntry, RunPage, StepEntry};

/// The number of calls in one response. A step lists at most a page of them, but all are counted.
const CALLS_MAX: usize = 1_000;

#[derive(Deserialize, IntoParams)]
pub(crate) struct FilterQuery {
    /// Runs with this outcome.
    #[param(inline, value_type = Option<form::RunStatus>)]
    status: Option<String>,
    /// Runs of the workflow with this name.
    workflow: Option<String>,
}

pub(crate) async fn list(
    State(admin): State<Admin>,
    Query(query): Query<FilterQuery>,
    Query(page): Query<PageQuery>,
) -> Result<Json<RunPage>, Refused> {
    let status = one_of("status", query.status.as_deref(), &RunStatus::ALL, RunStatus::as_str)?;
    let filter = RunFilter { status, workflow: query.workflow };
    let page = page.page()?;
    let found = ask(&admin, move |reader| reader.runs(&filter, &page)).await?;
    Ok(Json(found.into()))
}

/// Returns a run by its id or an unambiguous part of it.
pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<RunEntry>, Refused> {
    let not_found = || Refusal::new(Code::NotFound, format!("run '{id}' not found"));
    let given = id.to_ascii_lowercase();
    let asked = admin.id(IdKind::Run, ("id", &given)).await?.ok_or_else(not_found)?;
    let found = ask(&admin, move |reader| match reader.run(&asked)? {
        Some((run, steps)) => Ok(Some(whole(reader, &run, &steps)?)),
        None => Ok(None),
    });
    Ok(Json(found.await?.ok_or_else(not_found)?))
}

/// Marks runs of dead processes as ended before querying.
async fn ask<T: Send + 'static>(
    admin: &Admin,
    question: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refused> {
    let store = admin.gateway.store().clone();
    off_thread(move || end_lost(&store)).await;
    admin.ask(question).await
}

/// Marks runs of dead processes as ended. A failed write is reported elsewhere; the file can still
/// be read.
pub(crate) fn end_lost(store: &Store) {
    let _ = store.state().end_lost_runs();
}

/// Returns the phase that an event of a run or step reports.
pub(crate) fn phase(run: &Run, step: Option<&StepRecord>) -> &'static str {
    let goes_on = match step {
        Some(step) => step.status == StepStatus::Running,
        None => run.record.status == RunStatus::Running,
    };
    if goes_on { "start" } else { "end" }
}

fn whole(reader: &Reader, run: &Run, steps: &[StepRecord]) -> Result<RunEntry, StoreError> {
    let texts = reader.step_texts(&run.record.id)?;
    let mut room = CALLS_MAX;
    let mut entries = Vec::with_capacity(steps.len());
    for step in steps {
        let (calls, total) = calls(reader, &step.sessions, room.min(PAGE_MAX))?;
        room -= calls.len();
        let texts = texts.iter().filter(|(number, _)| *number == step.number);
        let texts = texts.map(|(_, text)| text.into()).collect();
        entries.push(StepEntry::whole(step, texts, &calls, total));
    }
    Ok(RunEntry { steps: Some(entries), ..RunEntry::brief(run) })
}

/// Returns the newest calls of these sessions, newest last, and the number of all of them.
fn calls(
    reader: &Reader,
    sessions: &[String],
    limit: usize,
) -> Result<(Vec<Record>, u64), StoreError> {
    let (mut calls, mut total) = (Vec::new(), 0);
    for session in sessions {
        let filter = RecordFilter { session_id: Some(session.clone()), ..RecordFilter::default() };
        let found = reader.activity(&filter, &Page::first(limit))?;
        total += found.total.count();
        calls.extend(found.records);
    }
    calls.sort_by_key(|record| record.number);
    calls.drain(..calls.len().saturating_sub(limit));
    Ok((calls, total))
}
