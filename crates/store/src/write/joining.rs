//! Joins the records of one call as they are filed, in whichever order they arrive. The rules are
//! those of `sighting` in the domain.

use domain::sighting::{Observer, Sighting, Stage, is_contested};
use rusqlite::{Connection, Row, params};

use crate::error::StoreError;
use crate::limits::SIGHTINGS_MAX;
use crate::record::{CallEnd, CallStart, RecordStatus};
use crate::touches::who_of;
use crate::write::compose;
use crate::write::touching::TargetTouch;

/// The surface of records of events.
pub(crate) const EVENTS: &str = "events";

/// The other records with the tool-use id of one that is being filed.
pub(crate) struct OtherSightings {
    others: Vec<FiledSighting>,
}

/// A record in the tables.
struct FiledSighting {
    number: i64,
    status: RecordStatus,
    joined: Option<String>,
    sighting: Sighting,
}

/// The record that has the touches of another, and the end of the call, if it is known.
#[derive(Debug, Default)]
pub(crate) struct Joined {
    pub(crate) to: Option<String>,
    pub(crate) end: Option<JoinedEnd>,
}

/// The end of an announced call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JoinedEnd {
    pub(crate) status: RecordStatus,
    pub(crate) at_us: i64,
}

/// Returns the record as a sighting, if it has a tool-use id.
pub(crate) fn sighting(
    call: &CallStart,
    ended: Option<&CallEnd>,
    touched: &[TargetTouch],
) -> Option<Sighting> {
    call.action.correlation_id.as_ref()?;
    let at_us = call.at.as_microsecond();
    let is_event = call.outside.is_some() && call.surface == EVENTS;
    let status = ended.map_or(RecordStatus::Pending, |ended| ended.status);
    let duration_us = ended.map_or(0, compose::duration_us);
    Some(Sighting {
        id: call.id.clone(),
        observer: if is_event { Observer::Program } else { Observer::Gate },
        stage: stage(is_event, status, at_us.saturating_add(duration_us)),
        agent: call.agent.name.clone(),
        client: call.agent.client.clone(),
        session: call.session.clone(),
        server: call.server.clone(),
        tool: call.tool.clone(),
        variant: call.variant.as_deref().map(str::to_owned),
        at_us,
        touched: touched.iter().map(|touch| (touch.target, touch.access)).collect(),
    })
}

/// Returns the stage of a call. An announced one without an end counts as announced.
fn stage(is_event: bool, status: RecordStatus, end_us: i64) -> Stage {
    match (is_event, status) {
        (true, RecordStatus::Pending | RecordStatus::Interrupted) => Stage::Announced,
        (false, RecordStatus::Pending) => Stage::Running,
        _ => Stage::Ended(end_us),
    }
}

impl OtherSightings {
    /// Finds them. If there are more than a call can have, the id joins nothing.
    pub(crate) fn of(
        db: &Connection,
        correlation_id: &str,
        new: &Sighting,
    ) -> Result<OtherSightings, StoreError> {
        let mut statement = db.prepare_cached(
            "SELECT number, id, status, joined, surface, agents.name, client, session_id, server,
               tool, tool_variant, started_us, duration_us
             FROM activity INDEXED BY activity_correlation JOIN agents USING (agent)
             WHERE correlation_id = ?1 LIMIT ?2",
        )?;
        let rows = statement.query_map(params![correlation_id, SIGHTINGS_MAX + 1], read)?;
        let mut others: Vec<FiledSighting> = rows.collect::<Result<_, _>>()?;
        if others.len() > SIGHTINGS_MAX {
            others.clear();
        }
        others.retain(|other| other.sighting.id != new.id);
        let is_event = |it: &Sighting| it.observer == Observer::Program;
        if is_event(new) || others.iter().any(|other| is_event(&other.sighting)) {
            for other in &mut others {
                other.sighting.touched = touched(db, other.number)?;
            }
        }
        Ok(OtherSightings { others })
    }

    /// Returns the record that has the touches of this event, and the end of the call, if the event
    /// announced it.
    pub(crate) fn of_event(&self, event: &Sighting) -> Joined {
        let own = event.own_call(self.others.iter().map(|other| &other.sighting));
        let own = self.others.iter().find(|other| own.is_some_and(|it| it.id == other.sighting.id));
        let after = self.others.iter().find(|other| other.sighting.ends(event));
        let stand_in = after.filter(|other| other.sighting.stands_for(event));
        let end = own.and_then(FiledSighting::end).or_else(|| after.and_then(FiledSighting::end));
        Joined {
            to: own.or(stand_in).map(|other| other.sighting.id.clone()),
            end: end.filter(|_| event.stage == Stage::Announced),
        }
    }

    /// Joins earlier records with a new one: events with the gate's record of their call, and an
    /// announced call with the event that ends it. Returns the number of the last change.
    pub(crate) fn join_to(
        &self,
        db: &Connection,
        new: &Sighting,
        status: RecordStatus,
        mut changed: i64,
    ) -> Result<i64, StoreError> {
        let all = || self.others.iter().map(|other| &other.sighting).chain([new]);
        if new.observer == Observer::Gate && is_contested(all()) {
            return self.part(db, changed);
        }
        let end = match new.stage {
            Stage::Ended(at_us) => Some(JoinedEnd { status, at_us }),
            Stage::Announced | Stage::Running => None,
        };
        for other in &self.others {
            let is_own = other.sighting.own_call([new].into_iter()).is_some();
            let is_taken = other.joined.as_ref().is_some_and(|id| self.is_own(id) || *id == new.id);
            let joins = (is_own && !is_taken)
                || (new.stands_for(&other.sighting) && other.joined.is_none());
            let ends =
                (is_own || new.ends(&other.sighting)) && other.sighting.stage == Stage::Announced;
            let end = end.filter(|_| ends);
            if joins || end.is_some() {
                changed += 1;
                let to = if joins { Some(new.id.as_str()) } else { other.joined.as_deref() };
                other.update(db, changed, to, end)?;
            }
            // An announcement moves with the report that represents it.
            let is_follower =
                |one: &&FiledSighting| joins && one.joined.as_ref() == Some(&other.sighting.id);
            for follower in self.others.iter().filter(is_follower) {
                changed += 1;
                follower.update(db, changed, Some(&new.id), None)?;
            }
        }
        Ok(changed)
    }

    /// Reports whether an id is that of a record of the gate.
    fn is_own(&self, id: &str) -> bool {
        let mut all = self.others.iter().map(|other| &other.sighting);
        all.any(|other| other.observer == Observer::Gate && other.id == id)
    }

    /// Parts events from records of the gate: several agents use the id there.
    fn part(&self, db: &Connection, mut changed: i64) -> Result<i64, StoreError> {
        let is_own = |id: &String| self.is_own(id);
        for other in self.others.iter().filter(|other| other.joined.as_ref().is_some_and(is_own)) {
            changed += 1;
            other.update(db, changed, None, None)?;
        }
        Ok(changed)
    }
}

impl FiledSighting {
    fn end(&self) -> Option<JoinedEnd> {
        match self.sighting.stage {
            Stage::Ended(at_us) => Some(JoinedEnd { status: self.status, at_us }),
            Stage::Announced | Stage::Running => None,
        }
    }

    fn update(
        &self,
        db: &Connection,
        changed: i64,
        joined: Option<&str>,
        end: Option<JoinedEnd>,
    ) -> Result<(), StoreError> {
        let words = "UPDATE activity SET changed = ?2, joined = ?3 WHERE number = ?1";
        db.prepare_cached(words)?.execute(params![self.number, changed, joined])?;
        if let Some(end) = end {
            let duration_us = end.at_us.saturating_sub(self.sighting.at_us).max(0);
            let words = "UPDATE activity SET status = ?2, duration_us = ?3 WHERE number = ?1";
            let values = params![self.number, end.status.as_str(), duration_us];
            db.prepare_cached(words)?.execute(values)?;
        }
        Ok(())
    }
}

/// Ends announced calls that began before a time and were never reported as made: the person or a
/// rule denied them, or the program ended.
pub(crate) fn end_unmade(
    db: &Connection,
    before_us: i64,
    most: usize,
) -> Result<usize, StoreError> {
    crate::database::transaction::whole(db, |db| {
        let mut statement = db.prepare_cached(
            "SELECT number FROM activity INDEXED BY activity_unsuccessful
             WHERE status = 'pending' AND status <> 'success' AND surface = ?1
               AND receipt_id IS NOT NULL AND started_us < ?2 ORDER BY number LIMIT ?3",
        )?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let numbers: Vec<i64> = statement
            .query_map(params![EVENTS, before_us, most], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut changed = crate::database::change::latest(db)?;
        let words = "UPDATE activity SET status = 'interrupted', changed = ?2 WHERE number = ?1";
        let mut update = db.prepare_cached(words)?;
        for number in &numbers {
            changed += 1;
            update.execute([*number, changed])?;
        }
        Ok(numbers.len())
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<FiledSighting> {
    let status: String = row.get(2)?;
    let status = RecordStatus::parse(&status).unwrap_or(RecordStatus::Error);
    let is_event = row.get::<_, String>(4)? == EVENTS;
    let at_us: i64 = row.get(11)?;
    let duration_us: i64 = row.get::<_, Option<i64>>(12)?.unwrap_or(0);
    Ok(FiledSighting {
        number: row.get(0)?,
        status,
        joined: row.get(3)?,
        sighting: Sighting {
            id: row.get(1)?,
            observer: if is_event { Observer::Program } else { Observer::Gate },
            stage: stage(is_event, status, at_us.saturating_add(duration_us)),
            agent: row.get(5)?,
            client: row.get(6)?,
            session: row.get(7)?,
            server: row.get(8)?,
            tool: row.get(9)?,
            variant: row.get(10)?,
            at_us,
            touched: Vec::new(),
        },
    })
}

fn touched(db: &Connection, number: i64) -> Result<Vec<(i64, touch::targets::Access)>, StoreError> {
    let words = "SELECT target, who FROM touches WHERE number = ?1";
    let mut statement = db.prepare_cached(words)?;
    let rows = statement.query_map([number], |row| Ok((row.get(0)?, who_of(row.get(1)?).1)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
