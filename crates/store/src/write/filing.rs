//! Files rows of the journal as activity, payloads and receipts, many in one transaction.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use domain::sighting::{Observer, Sighting};
use receipt::content::Termination;
use receipt::packed;
use rusqlite::{Connection, OptionalExtension, params};
use touch::targets::{Access, Target, Touched};

use crate::database::{change, transaction};
use crate::error::StoreError;
use crate::keys;
use crate::limits::NAMES_MAX;
use crate::record::{CallEnd, CallStart, RecordAgent, RecordStatus};
use crate::upkeep::{names, tally};
use crate::write::compose;
use crate::write::inserting::{Inserts, Values};
use crate::write::joining::{self, Joined, OtherSightings};
use crate::write::link::{ChainRef, Link, receipt_id};
use crate::write::meeting_log::{MeetingLog, MeetingWords};
use crate::write::row::JournalRow;
use crate::write::touching::{self, MetTouch, TargetTouch, TouchingRecord};

/// Files rows, and caches the numbers of recent agents and targets.
#[derive(Default)]
pub(crate) struct Filer {
    agents: HashMap<RecordAgent, i64>,
    targets: HashMap<Target, i64>,
    /// The number of prunings of names that the cache has seen.
    prunings: u64,
    log: MeetingLog,
}

/// A further change in the transaction that files rows.
#[derive(Clone, Copy)]
pub(crate) enum Consequence<'a> {
    Nothing,
    Closed(Termination),
    /// The chain ends as interrupted, and takes the rest of this one, which cannot be signed.
    ClosedInstead(i64),
    /// Another key signs from here on; its fingerprint.
    Key(&'a str),
    /// The receipts of a chain expire.
    Expired(&'a str),
    /// The deletions so far are stated.
    DeletionsStated,
}

/// A change to a record: its chain, and its number among all changes.
#[derive(Clone, Copy)]
struct RecordChange {
    chain: i64,
    number: i64,
}

/// Rows that are filed together, in one transaction.
pub(crate) struct Filing<'a> {
    chain: ChainRef<'a>,
    rows: &'a [JournalRow],
    /// The entries whose ends are among the rows.
    ended: HashSet<i64>,
    changed: i64,
    /// The number of the last record.
    number: i64,
    /// Meetings of agents among the rows, which are logged once they are committed.
    met: Vec<MeetingWords>,
}

/// A call to insert, with its number and those of its names.
struct NewRecord<'a> {
    number: i64,
    change: RecordChange,
    call: &'a CallStart,
    row: &'a JournalRow,
    agent: i64,
    touched: Vec<TargetTouch>,
    joined: Joined,
}

impl NewRecord<'_> {
    /// Reports whether the touches of the call count: it was not refused, and no other record has
    /// them.
    fn counts(&self) -> bool {
        let is_refused =
            self.row.ended.as_ref().is_some_and(|ended| ended.status == RecordStatus::Blocked);
        self.joined.to.is_none() && !is_refused
    }

    fn touching(&self) -> TouchingRecord<'_> {
        let at_us = self.call.at.as_microsecond();
        TouchingRecord { agent: self.agent, name: &self.call.agent.name, at_us }
    }
}

/// Calls that are inserted together.
#[derive(Default)]
struct NewRecords<'a> {
    records: Vec<NewRecord<'a>>,
}

impl<'a> NewRecords<'a> {
    /// Inserts them if the filing of a call has to find one of them in the tables: its start,
    /// another record with its tool-use id, or a touch of what it writes.
    fn make_findable(
        &mut self,
        db: &Connection,
        (call, row): (&CallStart, &JournalRow),
        touched: &[TargetTouch],
    ) -> Result<(), StoreError> {
        let id = call.action.correlation_id.as_ref();
        let writes = touched.iter().filter(|touch| touch.access == Access::Write);
        let written: Vec<i64> = writes.map(|touch| touch.target).collect();
        let is_wanted = |new: &NewRecord<'_>| {
            (row.start.is_some() && new.call.id == call.id)
                || (id.is_some() && new.call.action.correlation_id.as_ref() == id)
                || new.touched.iter().any(|touch| written.contains(&touch.target))
        };
        if self.records.iter().any(is_wanted) { self.insert(db) } else { Ok(()) }
    }

    /// Inserts them with their payloads and touches.
    fn insert(&mut self, db: &Connection) -> Result<(), StoreError> {
        let records = std::mem::take(&mut self.records);
        ACTIVITY.insert(db, &records, add_record)?;
        let payloads: Vec<_> = records.iter().filter_map(NewPayload::of).collect();
        PAYLOADS.insert(db, &payloads, NewPayload::add)?;
        touching::insert(db, records.iter().map(|new| (new.number, new.touching(), &*new.touched)))
    }
}

/// The kept texts of a call to insert.
struct NewPayload<'a> {
    number: i64,
    arguments: Option<&'a str>,
    response: Option<&'a str>,
    response_truncated: bool,
}

impl<'a> NewPayload<'a> {
    fn of(new: &NewRecord<'a>) -> Option<NewPayload<'a>> {
        let response = new.row.ended.as_ref().map(|ended| &ended.response);
        let payload = NewPayload {
            number: new.number,
            arguments: new.call.arguments.kept.as_deref(),
            response: response.and_then(|response| response.kept.as_deref()),
            response_truncated: response.is_some_and(|response| response.truncated),
        };
        (payload.arguments.is_some() || payload.response.is_some()).then_some(payload)
    }

    fn add(&self, values: &mut Values<'_, '_>) -> rusqlite::Result<()> {
        values.add(self.number)?;
        values.add(self.response_truncated)?;
        values.add(self.arguments)?;
        values.add(self.response)
    }
}

static ACTIVITY: LazyLock<Inserts> = LazyLock::new(|| {
    let columns = "number, id, changed, chain, type, source, surface, server, tool, agent, \
        session_id, request_id, started_us, duration_us, status, error_code, error_message, \
        tool_variant, intent_type, data_sensitivity, reason, effective_class, unverified, target, \
        target_basis, correlation_id, joined, receipt_id, trace_id, warnings, arguments_bytes, \
        response_bytes";
    Inserts::new("INSERT OR FAIL INTO", "activity", columns)
});

static PAYLOADS: LazyLock<Inserts> = LazyLock::new(|| {
    let columns = "number, response_truncated, arguments, response";
    Inserts::new("INSERT OR FAIL INTO", "payloads", columns)
});

static RECEIPTS: LazyLock<Inserts> = LazyLock::new(|| {
    let columns = "id, chain_id, sequence, own, hash, packed";
    Inserts::new("INSERT OR FAIL INTO", "signed_receipts", columns)
});

impl Filer {
    /// Files adjacent rows of the journal, whose receipts are signed. Returns the number of the
    /// last change.
    pub(crate) fn file(
        &mut self,
        db: &Connection,
        chain: ChainRef<'_>,
        rows: &[JournalRow],
        consequence: Consequence<'_>,
    ) -> Result<i64, StoreError> {
        let mut filing = Filing::begin(db, chain, rows)?;
        let filed = self.add(db, &mut filing, rows);
        self.finish(db, filing, filed, consequence)
    }

    /// Files some of the rows.
    pub(crate) fn add(
        &mut self,
        db: &Connection,
        filing: &mut Filing<'_>,
        rows: &[JournalRow],
    ) -> Result<(), StoreError> {
        self.forget_pruned(db)?;
        let mut new = NewRecords::default();
        for row in rows {
            // A start whose end is among the same rows is filed with it.
            let ends_here = row.ended.is_none() && filing.ended.contains(&row.entry);
            let is_filed = row.promise.as_ref().is_some_and(|promise| promise.is_recorded);
            if let Some(call) = row.call.as_deref().filter(|_| !ends_here && !is_filed) {
                self.file_call(db, (&mut *filing, &mut new), call, row)?;
            }
        }
        new.insert(db)?;
        insert_receipts(db, filing.chain, rows)
    }

    /// Commits all the rows, or none if one could not be filed.
    pub(crate) fn finish(
        &mut self,
        db: &Connection,
        filing: Filing<'_>,
        filed: Result<(), StoreError>,
        consequence: Consequence<'_>,
    ) -> Result<i64, StoreError> {
        let met = filing.met;
        let filed = transaction::finish(db, |db| {
            filed?;
            mark_filed(db, filing.chain.number, filing.rows)?;
            apply_consequence(db, filing.chain, consequence)?;
            Ok(filing.changed)
        });
        match &filed {
            Ok(_) => self.log.tell(met),
            // Numbers assigned in a failed transaction are void.
            Err(_) => self.forget(),
        }
        filed
    }

    /// Forgets the numbers of names if any process has pruned some since.
    fn forget_pruned(&mut self, db: &Connection) -> Result<(), StoreError> {
        let prunings = names::prunings(db)?;
        if prunings != self.prunings {
            self.forget();
            self.prunings = prunings;
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.agents.clear();
        self.targets.clear();
    }

    /// Ends a call that was filed when it started, or inserts the whole call. An upsert would do
    /// both, but cost every call a statement journal in SQLite.
    fn file_call<'r>(
        &mut self,
        db: &Connection,
        (filing, all): (&mut Filing<'_>, &mut NewRecords<'r>),
        call: &'r CallStart,
        row: &'r JournalRow,
    ) -> Result<(), StoreError> {
        let touched = self.touched(db, call)?;
        all.make_findable(db, (call, row), &touched)?;
        filing.changed += 1;
        let change = RecordChange { chain: filing.chain.number, number: filing.changed };
        if let (Some(_), Some(ended)) = (row.start, &row.ended)
            && let Some(number) = end(db, change, ended, row)?
        {
            if ended.has_touches() {
                self.rename(db, number, call, &touched)?;
            }
            return join_ended(db, filing, (call, row), &touched);
        }
        let agent = self.agent(db, &call.agent)?;
        filing.number = filing.number.saturating_add(1);
        let number = filing.number;
        let joined = Joined::default();
        let mut new = NewRecord { number, change, call, row, agent, touched, joined };
        let sighting = joining::sighting(call, row.ended.as_deref(), &new.touched);
        if let Some(sighting) = &sighting {
            new.joined = join(db, filing, (call, row), sighting)?;
        }
        let met =
            if new.counts() { touching::met(db, new.touching(), &new.touched)? } else { None };
        if let Some(met) = met {
            filing.changed += 1;
            insert_meeting(db, (filing.changed, number), &met)?;
            let is_it = |touch: &TargetTouch| touch.target == met.target;
            let position = new.touched.iter().position(is_it).unwrap_or(0);
            filing.met.push(MeetingWords::new(call, position, &met));
        }
        all.records.push(new);
        Ok(())
    }

    /// Replaces the resources of a filed call by those that its end named.
    fn rename(
        &mut self,
        db: &Connection,
        number: i64,
        call: &CallStart,
        touched: &[TargetTouch],
    ) -> Result<(), StoreError> {
        let words = "UPDATE activity SET target = ?2, target_basis = ?3 WHERE number = ?1";
        let target = touched.first().map(|touch| touch.target);
        let basis = call.touches.basis().map(touch::targets::TargetBasis::as_str);
        db.prepare_cached(words)?.execute(params![number, target, basis])?;
        db.prepare_cached("DELETE FROM touches WHERE number = ?1")?.execute([number])?;
        let (agent, name) = (self.agent(db, &call.agent)?, &call.agent.name);
        let record = TouchingRecord { agent, name, at_us: call.at.as_microsecond() };
        touching::insert(db, std::iter::once((number, record, touched)))
    }

    /// Returns the touched resources by their numbers.
    fn touched(
        &mut self,
        db: &Connection,
        call: &CallStart,
    ) -> Result<Vec<TargetTouch>, StoreError> {
        let mut touched = Vec::new();
        for Touched { target, access } in call.touches.all() {
            touched.push(TargetTouch { target: self.target(db, target)?, access: *access });
        }
        Ok(touched)
    }

    fn agent(&mut self, db: &Connection, agent: &RecordAgent) -> Result<i64, StoreError> {
        if let Some(number) = self.agents.get(agent) {
            return Ok(*number);
        }
        let found = db
            .prepare_cached(
                "SELECT agent FROM agents WHERE name = ?1 AND client = ?2 AND token = ?3",
            )?
            .query_row(params![agent.name, agent.client, agent.token], |row| row.get(0))
            .optional()?;
        let number = match found {
            Some(number) => number,
            None => db
                .prepare_cached("INSERT INTO agents (name, client, token) VALUES (?1, ?2, ?3)")?
                .insert(params![agent.name, agent.client, agent.token])?,
        };
        if self.agents.len() == NAMES_MAX {
            self.agents.clear();
        }
        self.agents.insert(agent.clone(), number);
        Ok(number)
    }

    fn target(&mut self, db: &Connection, target: &Target) -> Result<i64, StoreError> {
        if let Some(number) = self.targets.get(target) {
            return Ok(*number);
        }
        let found = db
            .prepare_cached("SELECT target FROM targets WHERE system = ?1 AND resource = ?2")?
            .query_row(params![target.system(), target.resource()], |row| row.get(0))
            .optional()?;
        let number = match found {
            Some(number) => number,
            None => db
                .prepare_cached("INSERT INTO targets (system, resource) VALUES (?1, ?2)")?
                .insert(params![target.system(), target.resource()])?,
        };
        if self.targets.len() == NAMES_MAX {
            self.targets.clear();
        }
        self.targets.insert(target.clone(), number);
        Ok(number)
    }
}

impl<'a> Filing<'a> {
    pub(crate) fn begin(
        db: &Connection,
        chain: ChainRef<'a>,
        rows: &'a [JournalRow],
    ) -> Result<Filing<'a>, StoreError> {
        transaction::begin(db)?;
        let changed = change::latest(db).inspect_err(|_| transaction::give_up(db))?;
        let number = last_record(db).inspect_err(|_| transaction::give_up(db))?;
        let ended = rows.iter().filter_map(|row| row.start).collect();
        Ok(Filing { chain, rows, ended, changed, number, met: Vec::new() })
    }
}

/// Files a receipt of the ledger's own, which is composed within the transaction. Returns the
/// number of the last change, and the row.
pub(crate) fn file_own(
    db: &Connection,
    chain: ChainRef<'_>,
    consequence: Consequence<'_>,
    compose: impl FnOnce(&Connection) -> Result<JournalRow, StoreError>,
) -> Result<(i64, JournalRow), StoreError> {
    transaction::whole(db, |db| {
        let row = compose(db)?;
        insert_receipts(db, chain, std::slice::from_ref(&row))?;
        mark_filed(db, chain.number, std::slice::from_ref(&row))?;
        apply_consequence(db, chain, consequence)?;
        Ok((change::latest(db)?, row))
    })
}

fn last_record(db: &Connection) -> Result<i64, StoreError> {
    let words = "SELECT COALESCE(MAX(number), 0) FROM activity";
    Ok(db.prepare_cached(words)?.query_row([], |row| row.get(0))?)
}

/// Joins the events about a call that has ended with it.
fn join_ended(
    db: &Connection,
    filing: &mut Filing<'_>,
    (call, row): (&CallStart, &JournalRow),
    touched: &[TargetTouch],
) -> Result<(), StoreError> {
    if let Some(sighting) = joining::sighting(call, row.ended.as_deref(), touched) {
        join(db, filing, (call, row), &sighting)?;
    }
    Ok(())
}

/// Joins a record with others of the same call; returns the one that has its touches, if another has.
fn join(
    db: &Connection,
    filing: &mut Filing<'_>,
    (call, row): (&CallStart, &JournalRow),
    sighting: &Sighting,
) -> Result<Joined, StoreError> {
    let status = row.ended.as_ref().map_or(RecordStatus::Pending, |ended| ended.status);
    let id = call.action.correlation_id.as_deref().unwrap_or_default();
    let others = OtherSightings::of(db, id, sighting)?;
    let joined = match sighting.observer {
        Observer::Program => others.of_event(sighting),
        Observer::Gate => Joined::default(),
    };
    filing.changed = others.join_to(db, sighting, status, filing.changed)?;
    Ok(joined)
}

fn add_record(new: &NewRecord<'_>, values: &mut Values<'_, '_>) -> rusqlite::Result<()> {
    let NewRecord { number, change, call, row, agent, touched, joined } = new;
    let ended = row.ended.as_deref();
    let warnings = call.warnings.iter().chain(ended.iter().flat_map(|ended| &ended.warnings));
    let warnings: Vec<&String> = warnings.collect();
    let warnings = (!warnings.is_empty()).then(|| serde_json::to_string(&warnings).ok()).flatten();
    let status = ended.map_or(RecordStatus::Pending, |ended| ended.status);
    let end_us = joined.end.map(|end| end.at_us.saturating_sub(call.at.as_microsecond()).max(0));
    values.add(number)?;
    values.add(&call.id)?;
    values.add(change.number)?;
    values.add(change.chain)?;
    values.add(call.kind.as_str())?;
    values.add(&*call.source)?;
    values.add(&*call.surface)?;
    values.add(&call.server)?;
    values.add(&call.tool)?;
    values.add(agent)?;
    values.add(&call.session)?;
    values.add(&call.request_id)?;
    values.add(call.at.as_microsecond())?;
    values.add(end_us.or(ended.map(compose::duration_us)))?;
    values.add(joined.end.map_or(status, |end| end.status).as_str())?;
    values.add(ended.and_then(|ended| ended.error_code.as_deref()))?;
    values.add(ended.and_then(|ended| ended.error_message.as_deref()))?;
    values.add(call.variant.as_deref())?;
    values.add(call.declared.as_deref())?;
    values.add(call.sensitivity.as_deref())?;
    values.add(&call.reason)?;
    values.add(call.effective.map(domain::tool::Class::as_str))?;
    values.add(call.unverified)?;
    values.add(touched.first().map(|touch| touch.target))?;
    values.add(call.touches.basis().map(touch::targets::TargetBasis::as_str))?;
    values.add(&call.action.correlation_id)?;
    values.add(&joined.to)?;
    values.add(row.link.as_ref().map(|_| receipt_id(&call.id)))?;
    values.add(&call.trace_id)?;
    values.add(warnings)?;
    values.add(call.arguments.bytes)?;
    values.add(ended.map_or(0, |ended| ended.response.bytes))
}

fn insert_meeting(
    db: &Connection,
    (changed, number): (i64, i64),
    met: &MetTouch,
) -> Result<(), StoreError> {
    let MetTouch { target, meeting } = met;
    let words = "INSERT INTO meetings (changed, number, other, target, kind, gap_us)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let (other, kind) = (meeting.other.record, meeting.kind.as_str());
    let values = params![changed, number, other, target, kind, meeting.gap_us];
    db.prepare_cached(words)?.execute(values)?;
    Ok(())
}

/// Reports whether a call was filed when it started and has not been ended.
pub(crate) fn is_pending(db: &Connection, id: &str) -> Result<bool, StoreError> {
    let words =
        "SELECT 1 FROM activity WHERE id = ?1 AND status = 'pending' AND receipt_id IS NULL";
    Ok(db.prepare_cached(words)?.exists([id])?)
}

/// Reports whether the receipt of a call has been filed.
pub(crate) fn has_receipt(db: &Connection, call: &str) -> Result<bool, StoreError> {
    let words = "SELECT 1 FROM receipts WHERE id = ?1";
    Ok(db.prepare_cached(words)?.exists([receipt_id(call)])?)
}

/// Adds to the records of calls the names of their receipts, which were in the tables before them.
pub(crate) fn name_receipts(db: &Connection, calls: &[String]) -> Result<(), StoreError> {
    for call in calls {
        let words = "UPDATE activity SET receipt_id = ?2 WHERE id = ?1 AND receipt_id IS NULL";
        db.prepare_cached(words)?.execute([call, &receipt_id(call)])?;
    }
    Ok(())
}

/// Ends a call that was filed when it started, and returns its number; none if it was not.
fn end(
    db: &Connection,
    change: RecordChange,
    ended: &CallEnd,
    row: &JournalRow,
) -> Result<Option<i64>, StoreError> {
    let filed: Option<i64> = db
        .prepare_cached("SELECT number FROM activity WHERE id = ?1")?
        .query_row([&ended.id], |row| row.get(0))
        .optional()?;
    let Some(number) = filed else {
        return Ok(None);
    };
    db.prepare_cached(
        "UPDATE activity SET changed = ?2, status = ?3, error_code = ?4, error_message = ?5,
               duration_us = ?6, response_bytes = ?7, receipt_id = ?8 WHERE number = ?1",
    )?
    .execute(params![
        number,
        change.number,
        ended.status.as_str(),
        ended.error_code,
        ended.error_message,
        compose::duration_us(ended),
        ended.response.bytes,
        row.link.as_ref().map(|_| receipt_id(&ended.id)),
    ])?;
    for warning in &ended.warnings {
        let words =
            "UPDATE activity SET warnings = json_insert(COALESCE(warnings, '[]'), '$[#]', ?2)
                     WHERE number = ?1";
        db.prepare_cached(words)?.execute(params![number, warning])?;
    }
    if let Some(response) = &ended.response.kept {
        db.prepare_cached(
            "INSERT INTO payloads (number, response, response_truncated) VALUES (?1, ?2, ?3)
                 ON CONFLICT (number) DO UPDATE SET response = excluded.response,
                   response_truncated = excluded.response_truncated",
        )?
        .execute(params![number, response, ended.response.truncated])?;
    }
    Ok(Some(number))
}

fn insert_receipts(
    db: &Connection,
    chain: ChainRef<'_>,
    rows: &[JournalRow],
) -> Result<(), StoreError> {
    let receipts: Vec<&Link> = rows.iter().filter_map(|row| row.link.as_ref()).collect();
    RECEIPTS.insert(db, &receipts, |link, values| {
        let signed = link.signed.as_deref().expect("a receipt is filed when it has been signed");
        values.add(&link.id)?;
        values.add(chain.id)?;
        values.add(link.sequence)?;
        values.add(&link.own)?;
        values.add(link.body.hash().as_bytes())?;
        values.add(packed::pack(signed))
    })
}

/// Marks the journal of a chain as filed up to the last of these rows, and its head as that of the
/// last receipt.
fn mark_filed(db: &Connection, chain: i64, rows: &[JournalRow]) -> Result<(), StoreError> {
    // Receipts of the ledger's own, which may be the last rows, have no entry.
    let entry = rows.iter().map(|row| row.entry).max().filter(|entry| *entry > 0);
    let link = rows.iter().rev().find_map(|row| row.link.as_ref());
    db.prepare_cached(
        "UPDATE chains SET filed = COALESCE(?2, filed), length = COALESCE(?3, length),
           last_hash = COALESCE(?4, last_hash) WHERE chain = ?1",
    )?
    .execute(params![
        chain,
        entry,
        link.map(|link| link.sequence),
        link.map(|link| link.body.hash().to_string()),
    ])?;
    Ok(())
}

/// Makes the further change.
fn apply_consequence(
    db: &Connection,
    chain: ChainRef<'_>,
    consequence: Consequence<'_>,
) -> Result<(), StoreError> {
    match consequence {
        Consequence::Nothing => {}
        Consequence::Closed(termination) => {
            db.execute(
                "UPDATE chains SET status = ?2 WHERE chain = ?1",
                params![chain.number, termination.as_str()],
            )?;
        }
        Consequence::ClosedInstead(other) => {
            apply_consequence(db, chain, Consequence::Closed(Termination::Interrupted))?;
            // Its journal has nothing more to file, should it outlast this.
            let words = "UPDATE chains SET status = 'unclosed', filed = ?2 WHERE chain = ?1";
            db.execute(words, [other, i64::MAX])?;
        }
        Consequence::Key(fingerprint) => {
            db.execute(
                "UPDATE chains SET key = ?2 WHERE chain = ?1",
                params![chain.number, fingerprint],
            )?;
            keys::remember(db, fingerprint)?;
        }
        Consequence::Expired(chain_id) => {
            db.execute("DELETE FROM signed_receipts WHERE chain_id = ?1", [chain_id])?;
            db.execute("UPDATE chains SET status = 'expired' WHERE chain_id = ?1", [chain_id])?;
        }
        Consequence::DeletionsStated => tally::clear(db)?,
    }
    Ok(())
}
