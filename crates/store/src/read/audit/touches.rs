//! Compares the touches of a record, and its join with another record of the same call, with what
//! is signed.

use receipt::audit::Audit;
use rusqlite::{Connection, OptionalExtension, Row};
use serde_json::Value;
use touch::contention::ContentionKind;
use touch::targets::Access;

use super::columns::{member, text};
use super::records::{EVENTS, FIRST, STATUS};
use crate::error::StoreError;
use crate::limits::SEARCH_STEP;
use crate::read::reader::Reader;
use crate::touches::who_of;
use crate::write::link::receipt_id;

const NUMBER: usize = FIRST + 23;
const CORRELATION: usize = FIRST + 24;
const BASIS: usize = FIRST + 25;
const JOINED: usize = FIRST + 26;

/// A system, a resource and an access, as signed or as stored.
pub(crate) type NamedTouch = (String, String, Access);

/// Returns the names of what differs from the signed text; nothing if the record is gone.
pub(super) fn differing(
    db: &Connection,
    row: &Row<'_>,
    receipt: &Value,
) -> Result<Vec<&'static str>, StoreError> {
    let subject = &receipt["credentialSubject"];
    let token = member(&subject["principal"], "id").strip_prefix("token:");
    let (Some(token), Some(_)) = (token, text(row, STATUS)?) else {
        return Ok(Vec::new());
    };
    let runtime = &receipt["issuer"]["runtime"];
    let mut found = Vec::new();
    if text(row, BASIS)?.unwrap_or_default() != member(runtime, "target_basis") {
        found.push("target_basis");
    }
    let correlation = member(subject, "correlation_id");
    if text(row, CORRELATION)?.unwrap_or_default() != correlation {
        found.push("correlation_id");
    }
    if !has_same_touches(db, row.get(NUMBER)?, &signed(receipt))? {
        found.push("touches");
    }
    if let Some(joined) = text(row, JOINED)?
        && !(token == EVENTS && is_joined(db, joined, correlation)?)
    {
        found.push("joined");
    }
    Ok(found)
}

/// Returns the touches that a receipt states.
pub(crate) fn signed(receipt: &Value) -> Vec<NamedTouch> {
    let (runtime, subject) = (&receipt["issuer"]["runtime"], &receipt["credentialSubject"]);
    let target = &subject["action"]["target"];
    let mut touches = Vec::new();
    if let (Some(system), Some(resource)) = (target["system"].as_str(), target["resource"].as_str())
    {
        let access = Access::parse(member(runtime, "target_access")).unwrap_or_default();
        touches.push((system.to_owned(), resource.to_owned(), access));
    }
    for more in runtime["targets"].as_array().into_iter().flatten() {
        let access = Access::parse(member(more, "access")).unwrap_or_default();
        let (system, resource) = (member(more, "system"), member(more, "resource"));
        touches.push((system.to_owned(), resource.to_owned(), access));
    }
    touches.sort_unstable();
    touches
}

/// Compares the touches of a record with what is signed. Each repeats the agent and the time of its
/// record.
fn has_same_touches(
    db: &Connection,
    number: i64,
    signed: &[NamedTouch],
) -> Result<bool, StoreError> {
    let mut statement = db.prepare_cached(
        "SELECT system, resource, who, touches.started_us = activity.started_us, activity.agent
         FROM touches INDEXED BY touches_number JOIN activity USING (number)
           LEFT JOIN targets ON targets.target = touches.target WHERE touches.number = ?1",
    )?;
    let mut rows = statement.query([number])?;
    let mut stored: Vec<NamedTouch> = Vec::new();
    while let Some(row) = rows.next()? {
        let (agent, access) = who_of(row.get(2)?);
        if agent != row.get::<_, i64>(4)? || !row.get::<_, bool>(3)? {
            return Ok(false);
        }
        let name = |at| row.get::<_, Option<String>>(at).map(Option::unwrap_or_default);
        stored.push((name(0)?, name(1)?, access));
    }
    stored.sort_unstable();
    Ok(stored == signed)
}

/// Reports whether another record, if it still exists, has the tool-use id.
fn is_joined(db: &Connection, other: &str, correlation: &str) -> Result<bool, StoreError> {
    if correlation.is_empty() {
        return Ok(false);
    }
    let receipt: Option<String> = db
        .prepare_cached("SELECT receipt_json FROM receipts WHERE id = ?1")?
        .query_row([receipt_id(other)], |row| row.get(0))
        .optional()?;
    if let Some(receipt) = receipt {
        let receipt: Value = serde_json::from_str(&receipt).unwrap_or_default();
        return Ok(member(&receipt["credentialSubject"], "correlation_id") == correlation);
    }
    let record: Option<Option<String>> = db
        .prepare_cached("SELECT correlation_id FROM activity WHERE id = ?1")?
        .query_row([other], |row| row.get(0))
        .optional()?;
    Ok(record.is_none_or(|stored| stored.as_deref() == Some(correlation)))
}

impl Reader {
    /// Finds touches that belong to no record.
    pub(super) fn audit_lone_touches(&self, audit: &mut Audit) -> Result<(), StoreError> {
        let sql = "SELECT (SELECT MIN(number) FROM touches), (SELECT MAX(number) FROM touches)";
        let ends: (Option<i64>, Option<i64>) =
            self.pool.ask(|db| Ok(db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?))?;
        let (Some(mut from), Some(last)) = ends else {
            return Ok(());
        };
        let mut strangers: i64 = 0;
        while from <= last {
            let upto = from.saturating_add(SEARCH_STEP);
            strangers += self.pool.ask_in_passing(|db| {
                let mut statement = db.prepare_cached(
                    "SELECT COUNT(*) FROM touches INDEXED BY touches_number
                     WHERE touches.number >= ?1 AND touches.number < ?2 AND NOT EXISTS
                       (SELECT 1 FROM activity WHERE activity.number = touches.number)",
                )?;
                Ok(statement.query_row([from, upto], |row| row.get::<_, i64>(0))?)
            })?;
            from = upto;
        }
        if strangers > 0 {
            audit.fault_of_ledger(format!("{strangers} touches belong to no record"));
        }
        Ok(())
    }
}

/// A meeting whose two records still exist, with their touches of its target.
struct KeptMeeting {
    kind: String,
    is_as_far: bool,
    is_same_agent: bool,
    mine: Option<i64>,
    theirs: Option<i64>,
}

const MEETINGS: &str = "SELECT kind, gap_us = ABS(mine.started_us - theirs.started_us),
    my_agent.name = their_agent.name,
    (SELECT who FROM touches INDEXED BY touches_number
      WHERE touches.number = mine.number AND touches.target = meetings.target),
    (SELECT who FROM touches INDEXED BY touches_number
      WHERE touches.number = theirs.number AND touches.target = meetings.target)
  FROM meetings JOIN activity AS mine ON mine.number = meetings.number
    JOIN agents AS my_agent ON my_agent.agent = mine.agent
    JOIN activity AS theirs ON theirs.number = meetings.other
    JOIN agents AS their_agent ON their_agent.agent = theirs.agent
  WHERE meetings.changed >= ?1 AND meetings.changed < ?2";

impl KeptMeeting {
    /// Reports whether the meeting follows from its records. The end of a call may have renamed what
    /// its start touched.
    fn follows(&self) -> bool {
        let access = |who: Option<i64>| who.map(|who| who_of(who).1);
        let (mine, theirs) = (access(self.mine), access(self.theirs));
        let is_stale = self.kind == ContentionKind::StaleRead.as_str();
        let fits = match (mine, theirs) {
            (Some(Access::Write), Some(Access::Write)) if is_stale => true,
            (Some(mine), Some(theirs)) => {
                mine == Access::Write && self.kind == ContentionKind::of(theirs, mine).as_str()
            }
            (None, _) | (_, None) => ContentionKind::ALL.iter().any(|it| it.as_str() == self.kind),
        };
        self.is_as_far && !self.is_same_agent && fits
    }
}

impl Reader {
    /// Finds meetings that do not follow from the records of both agents.
    pub(super) fn audit_meetings(&self, audit: &mut Audit) -> Result<(), StoreError> {
        let sql = "SELECT MIN(changed), MAX(changed) FROM meetings";
        let ends: (Option<i64>, Option<i64>) =
            self.pool.ask(|db| Ok(db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?))?;
        let (Some(mut from), Some(last)) = ends else {
            return Ok(());
        };
        let mut wrong = 0;
        while from <= last {
            let upto = from.saturating_add(SEARCH_STEP);
            wrong += self.pool.ask_in_passing(|db| {
                let mut statement = db.prepare_cached(MEETINGS)?;
                let meetings = statement.query_map([from, upto], |row| {
                    Ok(KeptMeeting {
                        kind: row.get(0)?,
                        is_as_far: row.get(1)?,
                        is_same_agent: row.get(2)?,
                        mine: row.get(3)?,
                        theirs: row.get(4)?,
                    })
                })?;
                let meetings: Vec<KeptMeeting> = meetings.collect::<Result<_, _>>()?;
                Ok(meetings.iter().filter(|meeting| !meeting.follows()).count())
            })?;
            from = upto;
        }
        if wrong > 0 {
            audit.fault_of_ledger(format!("{wrong} meetings do not follow from their records"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_touches_of_a_receipt_are_its_target_and_the_others() {
        let receipt = |runtime: Value| {
            json!({"issuer": {"runtime": runtime}, "credentialSubject":
                {"action": {"target": {"system": "fs", "resource": "/a"}}}})
        };
        let touch = |resource: &str, access| ("fs".to_owned(), resource.to_owned(), access);
        for (runtime, expected) in [
            (json!({"target_access": "read"}), vec![touch("/a", Access::Read)]),
            (
                json!({"target_access": "write",
                    "targets": [{"system": "fs", "resource": "/0", "access": "unknown"}]}),
                vec![touch("/0", Access::Unknown), touch("/a", Access::Write)],
            ),
            (json!({}), vec![touch("/a", Access::Unknown)]),
        ] {
            assert_eq!(signed(&receipt(runtime.clone())), expected, "{runtime}");
        }
        let mut without = receipt(json!({}));
        without["credentialSubject"]["action"]["target"] = json!({"system": "fs"});
        assert_eq!(signed(&without), []);
    }
}
