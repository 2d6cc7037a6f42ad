//! The count of what retention deleted and no receipt states yet. It changes in the transaction that
//! deletes, so that a crash between a deletion and its receipt loses no count.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use crate::database::settings;
use crate::error::StoreError;

/// The name of the setting.
const SETTING: &str = "expired_records";

/// The kind of deleted data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExpiredKind {
    Records,
    Payloads,
    Runs,
    StepOutputs,
    Agents,
    Targets,
}

/// The limit that the data exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExpiryReason {
    Age,
    Number,
    Size,
    /// Nothing refers to it any more.
    Unused,
}

/// Deleted data of one kind, deleted for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExpiredData {
    pub(crate) kind: ExpiredKind,
    pub(crate) reason: ExpiryReason,
    pub(crate) count: u64,
    /// The times of the oldest and the newest, in microseconds; names have none.
    pub(crate) span_us: Option<(i64, i64)>,
}

impl ExpiredKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ExpiredKind::Records => "records",
            ExpiredKind::Payloads => "payloads",
            ExpiredKind::Runs => "runs",
            ExpiredKind::StepOutputs => "step_outputs",
            ExpiredKind::Agents => "agents",
            ExpiredKind::Targets => "targets",
        }
    }
}

impl ExpiryReason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ExpiryReason::Age => "age",
            ExpiryReason::Number => "number",
            ExpiryReason::Size => "size",
            ExpiryReason::Unused => "unused",
        }
    }
}

impl ExpiredData {
    /// Counts data by its times.
    pub(crate) fn of_times(
        kind: ExpiredKind,
        reason: ExpiryReason,
        times: impl Iterator<Item = i64> + Clone,
    ) -> ExpiredData {
        let span_us = times.clone().min().zip(times.clone().max());
        ExpiredData { kind, reason, count: times.count() as u64, span_us }
    }
}

/// Returns what no receipt states yet.
pub(crate) fn unstated(db: &Connection) -> Result<Vec<ExpiredData>, StoreError> {
    let text = settings::get(db, SETTING)?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Adds to the count, in the transaction that deletes.
pub(crate) fn add(db: &Connection, more: ExpiredData) -> Result<(), StoreError> {
    if more.count == 0 {
        return Ok(());
    }
    let all = joined(unstated(db)?, more);
    let text = serde_json::to_string(&all).expect("counts have a JSON form");
    settings::set(db, SETTING, &text)
}

/// Begins a new count, in the transaction that files the receipt of the last one.
pub(crate) fn clear(db: &Connection) -> Result<(), StoreError> {
    settings::remove(db, SETTING)
}

fn joined(mut all: Vec<ExpiredData>, more: ExpiredData) -> Vec<ExpiredData> {
    let same = all.iter_mut().find(|one| one.kind == more.kind && one.reason == more.reason);
    match same {
        Some(one) => {
            one.count += more.count;
            one.span_us = match (one.span_us, more.span_us) {
                (Some((from, to)), Some((first, last))) => Some((from.min(first), to.max(last))),
                (one, other) => one.or(other),
            };
        }
        None => all.push(more),
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_one_kind_and_reason_are_joined() {
        use ExpiredKind::{Payloads, Records};
        use ExpiryReason::{Age, Size};
        let data = |kind, reason, times: &[i64]| {
            ExpiredData::of_times(kind, reason, times.iter().copied())
        };
        let all = [
            data(Records, Age, &[5, 3]),
            data(Payloads, Age, &[4]),
            data(Records, Age, &[9]),
            data(Records, Size, &[]),
        ];
        let all = all.into_iter().fold(Vec::new(), joined);
        let facts: Vec<_> = all.iter().map(|one| (one.kind, one.count, one.span_us)).collect();
        assert_eq!(
            facts,
            [(Records, 3, Some((3, 9))), (Payloads, 1, Some((4, 4))), (Records, 0, None)]
        );
    }
}
