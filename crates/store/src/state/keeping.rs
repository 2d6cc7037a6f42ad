//! Compares the tables, the signed log and its second copy when the ledger is opened and when it is
//! repaired.

use std::path::Path;

use rusqlite::Connection;

use super::decision::{Decisions, Scope};
use super::signed_log::{self, DecisionLog, DecisionsFile};
use crate::database::aside::{keep_lines, set_aside};
use crate::database::transaction;
use crate::error::StoreError;

/// The subjects that a message names.
const NAMED_MAX: usize = 10;

/// The decisions in the ledger's file: the signed log, compared with the tables.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    /// The number of decisions in the signed log; 0 if it is damaged.
    pub(crate) number: i64,
    pub(crate) lost_at: Option<String>,
    /// The reason not to trust the log.
    pub(crate) damage: Option<String>,
    /// The subjects on which the tables differ from the log.
    pub(crate) differing: Vec<String>,
}

impl Decided {
    pub(crate) fn read(db: &Connection, home: &Path) -> Result<Decided, StoreError> {
        // Of one moment: another process may be deciding.
        let moment = db.unchecked_transaction()?;
        let tables = Decisions::of_tables(&moment, Scope::ALL)?;
        let log = DecisionLog::of_tables(&moment, home)?;
        moment.finish()?;
        let lost_at = tables.lost_at().map(str::to_owned);
        Ok(match log {
            Err(why) => Decided { lost_at, damage: Some(why), ..Decided::default() },
            Ok(log) => Decided {
                number: log.number,
                lost_at: log.decisions.lost_at().map(str::to_owned).or(lost_at),
                damage: None,
                differing: log.decisions.differing(&tables),
            },
        })
    }

    /// Says what is wrong; none if the tables hold what was decided.
    pub(crate) fn fault(&self) -> Option<String> {
        let repair = "'countersign ledger repair'";
        if let Some(why) = &self.damage {
            return Some(format!(
                "the signed log of decisions is damaged ({why}): no approval and no token counts, \
                 and nothing can be decided, until {repair} restores it from its copy or begins it \
                 anew"
            ));
        }
        let shown = named(&self.differing)?;
        Some(format!(
            "the database differs from the signed decisions on {shown}: the stricter counts until \
             {repair} restores what was decided"
        ))
    }
}

/// Says to an operator that decisions were lost.
pub(crate) fn lost_words(at: &str) -> String {
    format!(
        "the operators' decisions were lost on {at}: servers that are not in the config, and all \
         tools that it does not approve, wait for a review, and tokens are gone; review them with \
         'countersign upstream review NAME', then end this notice with 'countersign ledger repair'"
    )
}

/// Names some subjects, and the number of the others.
fn named(subjects: &[String]) -> Option<String> {
    let shown = subjects.get(..NAMED_MAX).unwrap_or(subjects).join(", ");
    match subjects.len() {
        0 => None,
        all if all > NAMED_MAX => Some(format!("{shown} and {} more", all - NAMED_MAX)),
        _ => Some(shown),
    }
}

/// Compares the copies of the log, and returns what an operator must know. The caller holds the
/// maintenance lock and has read the file before.
pub(crate) fn reconcile(
    db: &Connection,
    (home, file): (&Path, &DecisionsFile),
) -> Result<Vec<String>, StoreError> {
    // After the file: a process that decides now commits first, and writes the file afterwards.
    let decided = Decided::read(db, home)?;
    let mut notices = Vec::new();
    match file {
        DecisionsFile::Valid(kept, text) if kept.number > decided.number => {
            let aside = keep_damaged(db, home, &decided)?;
            transaction::whole(db, |db| signed_log::restore(db, (kept, text)))?;
            let (file, time) = (signed_log::FILE, &kept.written_at);
            let words = format!("operator decisions were restored from {file}, written {time}");
            return Ok(vec![aside.map_or(words.clone(), |aside| format!("{words}; {aside}"))]);
        }
        DecisionsFile::Invalid(why) => {
            let file = signed_log::FILE;
            notices.push(format!("'{file}' is not trusted: {why}; it is written anew"));
            notices.push(set_aside(home, file)?);
        }
        DecisionsFile::Missing | DecisionsFile::Valid(..) => {}
    }
    if decided.damage.is_none() && decided.number > 0 {
        signed_log::write_copy(db, home)?;
    }
    Ok(notices)
}

/// Keeps the lines of a damaged log, before others take their place; says where.
fn keep_damaged(
    db: &Connection,
    home: &Path,
    decided: &Decided,
) -> Result<Option<String>, StoreError> {
    let lines = signed_log::lines(db)?;
    if decided.damage.is_none() || lines.is_empty() {
        return Ok(None);
    }
    let (name, hash) = keep_lines(home, "decisions", &lines)?;
    Ok(Some(format!("kept the damaged log of decisions as '{name}' ({hash})")))
}

/// Repairs the decisions, and returns each step in words. `named` is the number of decisions that
/// checkpoints name; the caller says whether the tables may be older than what was decided.
pub(crate) fn repair(
    db: &Connection,
    (home, file): (&Path, &DecisionsFile),
    (named, is_doubtful): (i64, bool),
) -> Result<Vec<String>, StoreError> {
    let mut done = reconcile(db, (home, file))?;
    let decided = Decided::read(db, home)?;
    let in_copy = match file {
        DecisionsFile::Valid(kept, _) => Some(kept.number),
        DecisionsFile::Missing | DecisionsFile::Invalid(_) => None,
    };
    let is_confirmed = in_copy.is_some_and(|number| number >= decided.number);
    if decided.damage.is_some() || named > decided.number || (is_doubtful && !is_confirmed) {
        done.extend(keep_damaged(db, home, &decided)?);
        done.extend(
            decided.damage.map(|why| format!("the signed log of decisions was damaged ({why})")),
        );
        let last = named.max(decided.number).max(in_copy.unwrap_or_default());
        transaction::whole(db, |db| signed_log::fail_closed(db, home, last.saturating_add(1)))?;
        signed_log::write_copy(db, home)?;
    } else if !decided.differing.is_empty() {
        transaction::whole(db, |db| {
            let log = DecisionLog::of_tables(db, home)?.map_err(signed_log::damaged)?;
            Decisions::of_tables(db, Scope::ALL)?.replace(db, &log.decisions)?;
            signed_log::count(db)
        })?;
        let differed = decided.differing.iter();
        done.extend(differed.map(|subject| {
            format!("{subject} differed from what was decided: restored the decision")
        }));
    }
    Ok(done)
}
