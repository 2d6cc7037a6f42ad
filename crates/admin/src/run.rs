//! `GET /runs`: workflows that ran or run, newest first, and one with its steps and their calls.

pub(crate) mod openapi;

use axum::Json;
use axum::extract::State;
use domain::{Code, Refusal};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use store::read::{Filter, PAGE_MAX, Page, Reader, Record, Run, RunFilter};
use store::run::{RunStatus, StepRecord, StepStatus};
use store::{Store, StoreError};

use crate::Admin;
use crate::answer::{Path, Query, Refused};
use crate::ledger::{off_thread, one_of, page};
use crate::record::{milliseconds, moment};

/// Calls in one answer; a step has at most a page of them, and its calls are counted all the same.
const CALLS_MAX: usize = 1_000;

/// Fewer characters of an id stand for too many runs.
const BEGINNING_MIN: usize = 4;

/// Ids that are named where a beginning fits several.
const NEAR_MAX: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    status: Option<String>,
    workflow: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

pub(crate) async fn list(
    State(admin): State<Admin>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, Refused> {
    let status = one_of("status", query.status.as_deref(), &RunStatus::ALL, RunStatus::as_str)?;
    let filter = RunFilter { status, workflow: query.workflow };
    let page = page(query.limit, query.cursor)?;
    let found = ask(&admin, move |reader| reader.runs(&filter, &page)).await?;
    Ok(Json(json!({
        "runs": found.runs.iter().map(entry).collect::<Vec<_>>(),
        "next_cursor": found.next_cursor,
        "total": found.total,
        "total_is_exact": true,
    })))
}

/// By its id, or by as much of the beginning as no other run has.
pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refused> {
    let asked = id.to_ascii_lowercase();
    let found = ask(&admin, move |reader| find(reader, &asked)).await?;
    match found {
        Found::One(run) => Ok(Json(run)),
        Found::None => Err(Refusal::new(Code::NotFound, format!("there is no run '{id}'")).into()),
        Found::Several(ids) => {
            let message = format!("'{id}' stands for several runs: give more of the id");
            let details = json!({"field": "id", "provided": id, "near": ids});
            Err(Refusal::new(Code::InvalidRequest, message).with(details).into())
        }
    }
}

enum Found {
    One(Value),
    None,
    Several(Vec<String>),
}

fn find(reader: &Reader, id: &str) -> Result<Found, StoreError> {
    let mut ids = match id.len() {
        BEGINNING_MIN.. => reader.run_ids(id, NEAR_MAX)?,
        _ => Vec::new(),
    };
    if ids.len() > 1 {
        return Ok(Found::Several(ids));
    }
    let found = match ids.pop() {
        Some(id) => reader.run(&id)?,
        None => None,
    };
    match found {
        Some((run, steps)) => Ok(Found::One(whole(reader, &run, &steps)?)),
        None => Ok(Found::None),
    }
}

/// What is asked of runs is asked once those are ended whose process is gone.
async fn ask<T: Send + 'static>(
    admin: &Admin,
    question: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refused> {
    let store = admin.gateway.store().clone();
    off_thread(move || end_lost(&store)).await;
    admin.ask(question).await
}

/// That the file cannot be written is told elsewhere; what is in it can be looked at.
pub(crate) fn end_lost(store: &Store) {
    let _ = store.state().end_lost_runs();
}

pub(crate) fn entry(run: &Run) -> Value {
    let record = &run.record;
    json!({
        "id": record.id,
        "workflow": record.workflow,
        "version": record.version,
        "file": record.file,
        "pid": record.pid,
        "status": record.status.as_str(),
        "message": record.message,
        "exit_code": record.exit_code,
        "started_at": moment(record.started_at),
        "ended_at": record.ended_at.map(moment),
        "duration_ms": duration(record.started_at, record.ended_at),
        "trace_id": record.trace_id,
        "steps_total": run.steps_total,
        "tokens": run.tokens,
        "cost_usd": run.cost_usd,
    })
}

/// Without its output, which may be long.
pub(crate) fn step_entry(step: &StepRecord) -> Value {
    json!({
        "number": step.number,
        "state": step.state,
        "kind": step.kind,
        "attempt": step.attempt,
        "provider": step.provider,
        "model": step.model,
        "isolation": step.isolation,
        "status": step.status.as_str(),
        "started_at": moment(step.started_at),
        "ended_at": step.ended_at.map(moment),
        "duration_ms": duration(step.started_at, step.ended_at),
        "exit_code": step.exit_code,
        "tokens": step.tokens,
        "cost_usd": step.cost_usd,
        "error_code": step.error_code,
        "error_message": step.error,
        "sessions": step.sessions,
    })
}

/// What the event of a run or step tells.
pub(crate) fn phase(run: &Run, step: Option<&StepRecord>) -> &'static str {
    let goes_on = match step {
        Some(step) => step.status == StepStatus::Running,
        None => run.record.status == RunStatus::Running,
    };
    if goes_on { "start" } else { "end" }
}

fn whole(reader: &Reader, run: &Run, steps: &[StepRecord]) -> Result<Value, StoreError> {
    let mut room = CALLS_MAX;
    let mut entries = Vec::with_capacity(steps.len());
    for step in steps {
        let (calls, total) = calls(reader, &step.sessions, room.min(PAGE_MAX))?;
        room -= calls.len();
        let mut entry = step_entry(step);
        entry["output"] = json!(step.output);
        entry["calls"] = calls.iter().map(call).collect();
        entry["calls_total"] = total.into();
        entries.push(entry);
    }
    let mut whole = entry(run);
    whole["steps"] = entries.into();
    Ok(whole)
}

/// The newest calls under these sessions, the newest last, and how many there are.
fn calls(
    reader: &Reader,
    sessions: &[String],
    limit: usize,
) -> Result<(Vec<Record>, u64), StoreError> {
    let (mut calls, mut total) = (Vec::new(), 0);
    for session in sessions {
        let filter = Filter { session_id: Some(session.clone()), ..Filter::default() };
        let found = reader.activity(&filter, &Page::first(limit))?;
        total += found.total.count();
        calls.extend(found.records);
    }
    calls.sort_by_key(|record| record.number);
    calls.drain(..calls.len().saturating_sub(limit));
    Ok((calls, total))
}

fn call(record: &Record) -> Value {
    json!({
        "id": record.id,
        "server_name": record.server,
        "tool_name": record.tool,
        "status": record.status.as_str(),
        "error_code": record.error_code,
        "duration_ms": record.duration.map(milliseconds),
        "timestamp": moment(record.timestamp),
        "target": record.target.as_ref().map(|target| {
            json!({"system": target.system, "resource": target.resource})
        }),
    })
}

/// A clock that was set back in between makes no negative time.
fn duration(from: Timestamp, to: Option<Timestamp>) -> Option<f64> {
    let lasted = to?.duration_since(from).max(SignedDuration::ZERO);
    Some(milliseconds(lasted.unsigned_abs()))
}
