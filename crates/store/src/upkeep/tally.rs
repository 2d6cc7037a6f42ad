//! The count of what retention deleted and no receipt states yet. It changes in the transaction that
//! deletes, so that a crash between a deletion and its receipt loses no count. It is signed: one that
//! somebody else wrote excuses no deletion.

use std::path::Path;

use receipt::{PublicKey, statement};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::deletion::ExpiringRow;
use crate::database::settings;
use crate::error::StoreError;
use crate::keys;
use crate::limits::STATED_HOLDERS_MAX;

/// The name of the setting.
const SETTING: &str = "expired_records";

/// Says that somebody else wrote the count.
pub(crate) const UNSIGNED: &str = "the count of deletions that no receipt states yet is not signed \
    by this home, and excuses none";

/// The purpose that the signature names.
const PURPOSE: &str = "deletions";

/// The count as it is stored.
#[derive(Serialize, Deserialize)]
struct SignedTally<'a> {
    signature: String,
    #[serde(borrow)]
    deleted: &'a RawValue,
}

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

/// Deleted data of one kind, deleted for one reason, of one holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExpiredData {
    pub(crate) kind: ExpiredKind,
    pub(crate) reason: ExpiryReason,
    /// The token, or the workflow of outputs, that had more than its share; none if it left for
    /// another reason, or if there are too many to name.
    pub(crate) holder: Option<String>,
    pub(crate) count: u64,
    /// The bytes of the deleted texts that were measured.
    pub(crate) bytes: u64,
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
    pub(crate) fn of_row(
        kind: ExpiredKind,
        reason: ExpiryReason,
        row: &ExpiringRow,
    ) -> ExpiredData {
        let span_us = row.at_us.map(|at_us| (at_us, at_us));
        let holder = row.holder.as_deref().map(str::to_owned);
        ExpiredData { kind, reason, holder, count: 1, bytes: row.bytes, span_us }
    }

    fn is_like(&self, other: &ExpiredData) -> bool {
        (self.kind, self.reason) == (other.kind, other.reason)
    }
}

/// Returns what no receipt states yet, as one of these keys signed it.
pub(crate) fn unstated(
    db: &Connection,
    keys: &[PublicKey],
) -> Result<Vec<ExpiredData>, StoreError> {
    Ok(settings::get(db, SETTING)?.and_then(|text| signed(&text, keys)).unwrap_or_default())
}

/// Returns the count that somebody else wrote, if there is one.
pub(crate) fn unsigned(db: &Connection, keys: &[PublicKey]) -> Result<Option<String>, StoreError> {
    Ok(settings::get(db, SETTING)?.filter(|text| signed(text, keys).is_none()))
}

fn signed(text: &str, keys: &[PublicKey]) -> Option<Vec<ExpiredData>> {
    let tally: SignedTally<'_> = serde_json::from_str(text).ok()?;
    let content = tally.deleted.get();
    let is_signed = |key| statement::is_signed(key, PURPOSE, content, &tally.signature);
    keys.iter().any(is_signed).then(|| serde_json::from_str(content).ok())?
}

/// Adds to the count, in the transaction that deletes.
pub(crate) fn add(
    db: &Connection,
    more: impl Iterator<Item = ExpiredData>,
) -> Result<(), StoreError> {
    let mut more = more.peekable();
    if more.peek().is_none() {
        return Ok(());
    }
    let home = db.path().and_then(|file| Path::new(file).parent());
    let folder = home.unwrap_or(Path::new("")).join(keys::FOLDER);
    let key = keys::current(&folder, db)?;
    let all = more.fold(unstated(db, &keys::all_public(&folder))?, joined);
    let cannot = |error: serde_json::Error| StoreError::Write(error.to_string());
    let deleted = &*serde_json::value::to_raw_value(&all).map_err(cannot)?;
    let signature = statement::sign(&key, PURPOSE, deleted.get());
    let text = serde_json::to_string(&SignedTally { signature, deleted }).map_err(cannot)?;
    settings::set(db, SETTING, &text)
}

/// Begins a new count, in the transaction that files the receipt of the last one.
pub(crate) fn clear(db: &Connection) -> Result<(), StoreError> {
    settings::remove(db, SETTING)
}

fn joined(mut all: Vec<ExpiredData>, mut more: ExpiredData) -> Vec<ExpiredData> {
    let is_same =
        |one: &ExpiredData, more: &ExpiredData| one.is_like(more) && one.holder == more.holder;
    if !all.iter().any(|one| is_same(one, &more))
        && all.iter().filter(|one| one.is_like(&more)).count() >= STATED_HOLDERS_MAX
    {
        more.holder = None;
    }
    match all.iter_mut().find(|one| is_same(one, &more)) {
        Some(one) => {
            one.count += more.count;
            one.bytes += more.bytes;
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

    fn data(kind: ExpiredKind, reason: ExpiryReason, holder: &str, at_us: i64) -> ExpiredData {
        let holder = (!holder.is_empty()).then(|| holder.into());
        let row = ExpiringRow { number: 1, at_us: Some(at_us), bytes: 10, holder };
        ExpiredData::of_row(kind, reason, &row)
    }

    #[test]
    fn counts_of_one_kind_reason_and_holder_are_joined() {
        use ExpiredKind::{Payloads, Records};
        use ExpiryReason::{Age, Size};
        let all = [
            data(Records, Age, "", 5),
            data(Payloads, Age, "", 4),
            data(Records, Age, "", 9),
            data(Records, Age, "", 3),
            data(Records, Size, "one", 7),
            data(Records, Size, "two", 8),
            data(Records, Size, "one", 1),
        ];
        let all = all.into_iter().fold(Vec::new(), joined);
        let facts: Vec<_> = all
            .iter()
            .map(|one| (one.kind, one.holder.as_deref(), one.count, one.bytes, one.span_us))
            .collect();
        assert_eq!(
            facts,
            [
                (Records, None, 3, 30, Some((3, 9))),
                (Payloads, None, 1, 10, Some((4, 4))),
                (Records, Some("one"), 2, 20, Some((1, 7))),
                (Records, Some("two"), 1, 10, Some((8, 8))),
            ]
        );
    }

    #[test]
    fn only_so_many_holders_are_named() {
        let more = STATED_HOLDERS_MAX + 20;
        let all = (0..more)
            .map(|holder| data(ExpiredKind::Payloads, ExpiryReason::Size, &holder.to_string(), 1));
        let all = all.fold(Vec::new(), joined);
        assert_eq!(all.len(), STATED_HOLDERS_MAX + 1);
        let (last, named) = all.split_last().unwrap();
        assert!(named.iter().all(|one| one.holder.is_some()));
        assert_eq!((last.holder.as_deref(), last.count), (None, 20));
    }
}
