//! The items that servers offer, approved and pending. Texts and fingerprints are precomputed:
//! other code decides when two definitions are the same.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row};

use super::decision::Scope;
use super::{OperatorState, servers};
use crate::database::timestamp;
use crate::error::StoreError;

/// An item that a server offers or has offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerItem {
    /// `tool`, `instructions`, `prompt` or `template`.
    pub kind: String,
    pub name: String,
    pub approved: Option<Definition>,
    /// New, or different from the approved definition.
    pub pending: Option<Definition>,
    /// Present in the last list seen.
    pub listed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub text: String,
    pub fingerprint: String,
    /// The time of approval, or of the first sight of this version.
    pub at: Timestamp,
}

/// A change that a new list of a server makes to one of its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemChange<'a> {
    /// Part of the baseline, or accepted: now approved, with nothing pending.
    Approved { kind: &'a str, name: &'a str, text: &'a str, fingerprint: &'a str },
    /// Pending review; an earlier approval stays.
    Pending { kind: &'a str, name: &'a str, text: &'a str, fingerprint: &'a str },
    /// No longer listed. An approval stays; an item that never had one is forgotten, so that a
    /// server cannot fill the file with short-lived names.
    Gone { kind: &'a str, name: &'a str },
    /// Listed again as it was approved: nothing is pending any more.
    Back { kind: &'a str, name: &'a str },
}

/// An item in the version that a person has reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemVersion<'a> {
    pub kind: &'a str,
    pub name: &'a str,
    pub fingerprint: &'a str,
}

impl<'a> ItemVersion<'a> {
    fn key(self, server: &'a str) -> ItemKey<'a> {
        ItemKey { server, kind: self.kind, name: self.name }
    }
}

/// The columns by which an item is found.
#[derive(Clone, Copy)]
struct ItemKey<'a> {
    server: &'a str,
    kind: &'a str,
    name: &'a str,
}

impl<'a> ItemKey<'a> {
    fn values(self) -> [&'a str; 3] {
        [self.server, self.kind, self.name]
    }
}

/// The outcome for one of the items to approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalResult {
    Approved,
    /// Still pending as it was reviewed: another item prevented the approval.
    Held,
    NotPending,
    /// The pending version is not the reviewed one.
    Changed,
}

impl OperatorState {
    /// Returns the items of a server, sorted by kind and name.
    pub fn items(&self, server: &str) -> Result<Vec<ServerItem>, StoreError> {
        self.ask_decided(|db, signed| {
            let mut statement = db.prepare_cached(
                "SELECT kind, name, listed, approved_text, approved_fingerprint, approved_us,
                   pending_text, pending_fingerprint, pending_us
                 FROM items WHERE server = ?1 ORDER BY kind, name",
            )?;
            let mut rows = statement.query([server])?;
            let mut items = Vec::new();
            while let Some(row) = rows.next()? {
                let mut item = read(row)?;
                if let Some(signed) = signed {
                    item.withdraw_unless(signed.approved(server, &item.kind, &item.name));
                }
                items.push(item);
            }
            Ok(items)
        })
    }

    /// Records the changes of a list in one transaction. With `baseline` the server has one from
    /// here on.
    pub fn record_items(
        &self,
        server: &str,
        changes: &[ItemChange<'_>],
        baseline: bool,
    ) -> Result<(), StoreError> {
        if changes.is_empty() && !baseline {
            return Ok(());
        }
        let now = Timestamp::now().as_microsecond();
        let record = |db: &Connection| {
            changes.iter().try_for_each(|change| change.apply(db, server, now))?;
            if baseline {
                servers::set_baseline(db, server)?;
            }
            Ok(())
        };
        // What waits for a review is no decision.
        let approves = changes.iter().any(|change| matches!(change, ItemChange::Approved { .. }));
        if approves || baseline {
            self.sign(Scope::items(server), record)
        } else {
            self.change(record)
        }
    }

    /// Approves the reviewed versions if exactly those are still pending, all or none. The results
    /// are in the order of the arguments.
    pub fn approve_items(
        &self,
        server: &str,
        reviewed: &[ItemVersion<'_>],
    ) -> Result<Vec<ApprovalResult>, StoreError> {
        let now = Timestamp::now().as_microsecond();
        self.decide(Scope::items(server), |db| {
            let mut answers = Vec::with_capacity(reviewed.len());
            for item in reviewed {
                answers.push(match pending_fingerprint(db, item.key(server))? {
                    Some(found) if found == item.fingerprint => ApprovalResult::Approved,
                    Some(_) => ApprovalResult::Changed,
                    None => ApprovalResult::NotPending,
                });
            }
            if answers.iter().all(|answer| *answer == ApprovalResult::Approved) {
                for item in reviewed {
                    approve(db, item.key(server), now)?;
                }
            } else {
                hold(&mut answers);
            }
            Ok(answers)
        })
    }
}

impl ServerItem {
    /// Lets an approved version wait for a review if it is not the one that was decided.
    fn withdraw_unless(&mut self, decided: Option<&str>) {
        let withdrawn = self.approved.take_if(|it| Some(&*it.fingerprint) != decided);
        self.pending = self.pending.take().or(withdrawn);
    }
}

impl ItemChange<'_> {
    fn apply(&self, db: &Connection, server: &str, now: i64) -> Result<(), StoreError> {
        match *self {
            ItemChange::Approved { kind, name, text, fingerprint } => db
                .prepare_cached(
                    "INSERT INTO items
                       (server, kind, name, approved_text, approved_fingerprint, approved_us)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                     ON CONFLICT (server, kind, name) DO UPDATE SET
                       listed = 1,
                       approved_us = iif(approved_fingerprint IS excluded.approved_fingerprint,
                         approved_us, excluded.approved_us),
                       approved_text = excluded.approved_text,
                       approved_fingerprint = excluded.approved_fingerprint,
                       pending_text = NULL, pending_fingerprint = NULL, pending_us = NULL
                     WHERE NOT listed OR pending_fingerprint IS NOT NULL
                       OR approved_fingerprint IS NOT excluded.approved_fingerprint
                       OR approved_text IS NOT excluded.approved_text",
                )?
                .execute((server, kind, name, text, fingerprint, now)),
            ItemChange::Pending { kind, name, text, fingerprint } => db
                .prepare_cached(
                    "INSERT INTO items
                       (server, kind, name, pending_text, pending_fingerprint, pending_us)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                     ON CONFLICT (server, kind, name) DO UPDATE SET
                       listed = 1,
                       pending_us = iif(pending_fingerprint IS excluded.pending_fingerprint,
                         pending_us, excluded.pending_us),
                       pending_text = excluded.pending_text,
                       pending_fingerprint = excluded.pending_fingerprint
                     WHERE NOT listed
                       OR pending_fingerprint IS NOT excluded.pending_fingerprint
                       OR pending_text IS NOT excluded.pending_text",
                )?
                .execute((server, kind, name, text, fingerprint, now)),
            ItemChange::Gone { kind, name } => {
                return gone(db, ItemKey { server, kind, name });
            }
            ItemChange::Back { kind, name } => db
                .prepare_cached(
                    "UPDATE items SET listed = 1,
                       pending_text = NULL, pending_fingerprint = NULL, pending_us = NULL
                     WHERE server = ?1 AND kind = ?2 AND name = ?3
                       AND approved_fingerprint IS NOT NULL
                       AND (NOT listed OR pending_fingerprint IS NOT NULL)",
                )?
                .execute([server, kind, name]),
        }?;
        Ok(())
    }
}

fn gone(db: &Connection, item: ItemKey<'_>) -> Result<(), StoreError> {
    let forgotten = db
        .prepare_cached(
            "DELETE FROM items WHERE server = ?1 AND kind = ?2 AND name = ?3
               AND approved_fingerprint IS NULL",
        )?
        .execute(item.values())?;
    if forgotten == 0 {
        db.prepare_cached(
            "UPDATE items SET listed = 0
             WHERE server = ?1 AND kind = ?2 AND name = ?3 AND listed",
        )?
        .execute(item.values())?;
    }
    Ok(())
}

fn pending_fingerprint(db: &Connection, item: ItemKey<'_>) -> Result<Option<String>, StoreError> {
    let mut statement = db.prepare_cached(
        "SELECT pending_fingerprint FROM items WHERE server = ?1 AND kind = ?2 AND name = ?3",
    )?;
    let found: Option<Option<String>> =
        statement.query_row(item.values(), |row| row.get(0)).optional()?;
    Ok(found.flatten())
}

/// Makes the pending version the approved one. An item named twice is approved once.
fn approve(db: &Connection, item: ItemKey<'_>, now: i64) -> Result<(), StoreError> {
    db.prepare_cached(
        "UPDATE items SET
           approved_text = pending_text, approved_fingerprint = pending_fingerprint,
           approved_us = ?4,
           pending_text = NULL, pending_fingerprint = NULL, pending_us = NULL
         WHERE server = ?1 AND kind = ?2 AND name = ?3 AND pending_fingerprint IS NOT NULL",
    )?
    .execute((item.server, item.kind, item.name, now))?;
    Ok(())
}

/// Marks the approvable items as held, since another one could not be approved.
fn hold(answers: &mut [ApprovalResult]) {
    for answer in answers {
        *answer = match answer {
            ApprovalResult::Approved | ApprovalResult::Held => ApprovalResult::Held,
            ApprovalResult::NotPending => ApprovalResult::NotPending,
            ApprovalResult::Changed => ApprovalResult::Changed,
        };
    }
}

fn read(row: &Row<'_>) -> Result<ServerItem, StoreError> {
    Ok(ServerItem {
        kind: row.get(0)?,
        name: row.get(1)?,
        listed: row.get(2)?,
        approved: definition(row, 3)?,
        pending: definition(row, 6)?,
    })
}

/// Reads text, fingerprint and time from this column on: all of them or none.
fn definition(row: &Row<'_>, first: usize) -> Result<Option<Definition>, StoreError> {
    let Some(fingerprint) = row.get(first + 1)? else {
        return Ok(None);
    };
    Ok(Some(Definition {
        text: row.get(first)?,
        fingerprint,
        at: timestamp::read(row.get(first + 2)?)?,
    }))
}
