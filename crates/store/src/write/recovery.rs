//! Recovery after a process that did not end properly: entries in the journal, calls without an
//! end, a chain without its terminal receipt. What cannot be recovered is counted, set aside, and
//! named in a signed receipt.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use receipt::PublicKey;
use receipt::content::Termination;
use receipt::key::SigningKey;
use rusqlite::Connection;

use crate::database::WRITERS;
use crate::database::lock::Lock;
use crate::database::timestamp;
use crate::error::StoreError;
use crate::keys::Keys;
use crate::limits::FILE_MAX;
use crate::record::CallEnd;
use crate::write::adoption::{self, Adoption};
use crate::write::chain::{LeftChain, OpenChain, filed_end_of};
use crate::write::chain_row;
use crate::write::compose;
use crate::write::filing::{self, Consequence, Filer};
use crate::write::heads;
use crate::write::journal::{self, Journal, OpenStart, Remnant};
use crate::write::journal_state::rewritten_words;
use crate::write::link::{ChainEnd, ChainRef};
use crate::write::missing;
use crate::write::pending;
use crate::write::repair::{self, JournalRepair};
use crate::write::row::JournalRow;

/// The results of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// The number of chains that were closed.
    pub(crate) closed: usize,
    /// Chains that the tables did not know.
    pub(crate) adopted: Vec<String>,
    /// Damage and losses, in words.
    pub(crate) faults: Vec<String>,
    /// Committed entries that could not be recovered.
    pub(crate) lost: u64,
    /// Chains onto which nothing was signed, because what is known of them does not agree, in words.
    pub(crate) doubtful: Vec<String>,
    /// Everything that an ordered recovery brought back or kept, in words.
    pub(crate) notes: Vec<String>,
}

/// Closes every chain whose writer is gone. The caller holds the maintenance lock.
pub(crate) fn recover(
    db: &mut Connection,
    home: &Path,
    keys: &Keys,
    adoption: Adoption,
) -> Result<Recovered, StoreError> {
    let writers = &home.join(WRITERS);
    let adopted = adoption::adopt(db, writers, adoption)?;
    let mut recovered = Recovered { adopted, ..Recovered::default() };
    let known = keys.known();
    for left in abandoned(db, writers, adoption)? {
        let is_gone = left.is_open && !journal::has_traces(writers, &left.chain_id);
        let Some(lock) = Lock::take(writers, &left.chain_id)? else {
            continue;
        };
        // Its writer may have ended it properly just before its lock was taken.
        let is_left =
            abandoned(db, writers, adoption)?.iter().any(|chain| chain.number == left.number);
        if !is_left {
            continue;
        }
        if may_close(db, (home, &known), &left, adoption, &mut recovered)? {
            let left = AbandonedChain { is_gone, ..left };
            close(db, writers, keys, (left, lock, adoption), &mut recovered)?;
        } else if is_gone && adoption == Adoption::All {
            let words = "UPDATE chains SET status = 'unclosed' WHERE chain = ?1";
            db.execute(words, [left.number])?;
            recovered.notes.push(repair::gone_words(&left.chain_id));
        }
    }
    recovered.faults.iter().for_each(|fault| tracing::error!("{fault}"));
    Ok(recovered)
}

struct AbandonedChain {
    number: i64,
    chain_id: String,
    key: String,
    is_open: bool,
    /// Neither its journal nor its lock file is there.
    is_gone: bool,
}

/// Reports whether a chain may be continued. It is left as it is if its end is missing, or if its row,
/// its receipts and what others say of it do not agree. A person may order that the entries in its
/// journal are filed all the same.
fn may_close(
    db: &Connection,
    (home, keys): (&Path, &[PublicKey]),
    left: &AbandonedChain,
    adoption: Adoption,
    recovered: &mut Recovered,
) -> Result<bool, StoreError> {
    let is_ordered = adoption == Adoption::All
        && journal::scan(&home.join(WRITERS), &left.chain_id)
            .is_some_and(|scan| !scan.rows.is_empty());
    if is_ordered || recovered.adopted.contains(&left.chain_id) {
        return Ok(true);
    }
    if heads::set_damaged_aside(db, (home, keys), &left.chain_id)? {
        recovered.doubtful.push(heads::damaged_words(&left.chain_id));
        return Ok(false);
    }
    let Some(words) = chain_row::contradiction(db, (home, keys), &left.chain_id)? else {
        return Ok(true);
    };
    let words = format!("nothing is signed onto chain {}: {words}", left.chain_id);
    tracing::error!("{words}");
    recovered.doubtful.push(words);
    Ok(false)
}

/// Returns chains that were not closed, and those with a leftover journal. One whose end is missing
/// is left alone unless a person orders a repair.
fn abandoned(
    db: &Connection,
    writers: &Path,
    adoption: Adoption,
) -> Result<Vec<AbandonedChain>, StoreError> {
    let mut statement = db.prepare(
        "SELECT chain, chain_id, key, status IN ('open', 'damaged') FROM chains
         WHERE (status <> 'damaged' OR ?2) AND (status = 'open'
           OR chain_id IN (SELECT value FROM json_each(?1)))
         ORDER BY chain",
    )?;
    let journals = serde_json::to_string(&journal::chains(writers)).unwrap_or_default();
    let is_ordered = adoption == Adoption::All;
    let rows = statement.query_map((journals, is_ordered), |row| {
        let (number, chain_id) = (row.get(0)?, row.get(1)?);
        let (key, is_open) = (row.get(2)?, row.get(3)?);
        Ok(AbandonedChain { number, chain_id, key, is_open, is_gone: false })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The key that signs what is recovered of a chain.
enum Signing {
    /// The chain continues.
    Continued(Arc<SigningKey>),
    /// The chain's own secret key is gone, so another chain takes what is left of it.
    Elsewhere(Arc<SigningKey>, ChainEnd),
}

fn signing(db: &Connection, keys: &Keys, left: &AbandonedChain) -> Result<Signing, StoreError> {
    let Err(reason) = keys.of(&left.key) else {
        return keys.of(&left.key).map(Signing::Continued);
    };
    let (current, end) = (keys.current(), filed_end_of(db, &left.chain_id)?);
    if end.sequence > 0 && left.is_open {
        tracing::warn!(chain = %left.chain_id, "the chain cannot be continued: {reason}");
        return Ok(Signing::Elsewhere(current, end));
    }
    if end.sequence == 0 {
        let key = current.public().fingerprint().to_string();
        db.execute("UPDATE chains SET key = ?2 WHERE chain = ?1", (left.number, key))?;
    }
    Ok(Signing::Continued(current))
}

/// Files what is left of a chain, and ends it. If a person ordered it, every row of the journal is
/// looked up in the tables, and the journal is kept.
fn close(
    db: &Connection,
    writers: &Path,
    keys: &Keys,
    (left, lock, adoption): (AbandonedChain, Lock, Adoption),
    recovered: &mut Recovered,
) -> Result<(), StoreError> {
    let Some(mut journal) = Journal::left(writers, &left.chain_id)? else {
        tracing::warn!(chain = %left.chain_id, "the lock file of a living writer was deleted");
        return Ok(());
    };
    let mut remnant = match adoption {
        Adoption::Intact => Remnant::read(db, left.number, &mut journal)?,
        Adoption::All => Remnant::read_by_row(db, left.number, &mut journal)?,
    };
    let mut repair = examine(&left, &remnant, &journal)?;
    repair.is_by_row = adoption == Adoption::All;
    if remnant.is_rewritten {
        let (chain, words) = (&left.chain_id, rewritten_words());
        recovered.faults.push(format!("chain {chain}: {words}"));
    }
    let brought_back = remnant.unfiled.iter().filter(|row| row.ended.is_some()).count();
    let receipted = forget_receipts(db, &left, &mut remnant)?;
    match signing(db, keys, &left)? {
        Signing::Continued(key) => {
            let number = ChainRef { number: left.number, id: &left.chain_id };
            let header = journal::header(writers, &left.chain_id);
            let taken = LeftChain { chain: number, key, journal, lock, header };
            let chain = OpenChain::adopt(db, taken)?;
            let consequence = left.is_open.then_some(Termination::Interrupted);
            let late =
                file(db, &chain, remnant, &mut repair, consequence.map(Consequence::Closed))?;
            if !late.is_empty() {
                let words = file_late(db, (writers, keys.current()), late, &mut repair)?;
                recovered.notes.push(words);
            }
            recovered.notes.extend(put_away(&chain.journal, &repair, brought_back)?);
        }
        Signing::Elsewhere(key, end) => {
            repair.ended_at = Some(end.sequence);
            repair.missing_key = Some(left.key.clone());
            let place = (writers, domain::config::Durability::Process);
            let chain = OpenChain::open_instead(db, place, key, Some(&left.chain_id))?;
            let instead = Consequence::ClosedInstead(left.number);
            file(db, &chain, remnant, &mut repair, Some(instead))?;
            chain.journal.remove();
            recovered.notes.extend(put_away(&journal, &repair, brought_back)?);
            drop(lock);
        }
    }
    filing::name_receipts(db, &receipted)?;
    recovered.closed += 1;
    recovered.lost += repair.lost.count();
    recovered.faults.extend(repair.words());
    recovered.doubtful.extend(repair.strange_starts.iter().map(|id| {
        let chain = &repair.chain_id;
        format!(
            "record {id} says that a call of chain {chain} began, which its journal lacks: it \
                 gets no receipt"
        )
    }));
    Ok(())
}

/// Removes a journal of which everything is in the tables; an ordered recovery keeps it, and says so.
fn put_away(
    journal: &Journal,
    repair: &JournalRepair,
    brought_back: usize,
) -> Result<Option<String>, StoreError> {
    if !repair.is_by_row {
        journal.remove();
        return Ok(None);
    }
    let kept = journal.set_whole_aside()?;
    Ok(kept.map(|(name, hash)| {
        let chain = &repair.chain_id;
        format!(
            "filed {brought_back} ended calls of chain {chain} from its journal, which is kept as \
             '{WRITERS}/{name}' ({hash})"
        )
    }))
}

/// Reports what is damaged in a journal, and sets aside what was not filed.
fn examine(
    left: &AbandonedChain,
    remnant: &Remnant,
    journal: &Journal,
) -> Result<JournalRepair, StoreError> {
    let mut repair = JournalRepair {
        chain_id: left.chain_id.clone(),
        number: left.number,
        lost: remnant.lost.clone(),
        is_gone: left.is_gone,
        ..JournalRepair::default()
    };
    let damaged = &remnant.damaged;
    if let Some(first) = damaged.first() {
        let (chain, lines, why) = (&left.chain_id, damaged.len(), &first.why);
        if remnant.lost.is_empty() {
            let words = "a journal has damaged lines, all of them filed before";
            tracing::warn!(%chain, lines, "{words}; the first: {why}");
        } else {
            repair.set_aside = Some(journal.set_aside(damaged)?);
        }
    }
    Ok(repair)
}

/// Drops receipts that are in the tables already, from a copy of the chain; returns their calls.
fn forget_receipts(
    db: &Connection,
    left: &AbandonedChain,
    remnant: &mut Remnant,
) -> Result<Vec<String>, StoreError> {
    let mut receipted = Vec::new();
    if filed_end_of(db, &left.chain_id)?.sequence > 0 {
        for row in &mut remnant.unfiled {
            if let Some(ended) = &row.ended
                && filing::has_receipt(db, &ended.id)?
            {
                receipted.push(ended.id.clone());
                row.promise = None;
            }
        }
    }
    Ok(receipted)
}

/// Files calls of a chain that ended without them, in another chain: nothing follows the receipt that
/// ended theirs. Each receipt names the hash that was promised.
fn file_late(
    db: &Connection,
    (writers, key): (&Path, Arc<SigningKey>),
    mut rows: Vec<JournalRow>,
    repair: &mut JournalRepair,
) -> Result<String, StoreError> {
    let chain = OpenChain::open(db, writers, key, domain::config::Durability::Process)?;
    let mut end = chain.end;
    for row in &mut rows {
        if let (Some(call), Some(ended), Some(promise)) = (&row.call, &row.ended, &row.promise) {
            let issuance = chain.issuance(&mut end);
            row.link = Some(compose::reissued(issuance, call, ended, &promise.hash));
            repair.reissued += 1;
        }
    }
    let (count, late) = (rows.len(), &repair.chain_id);
    let words = format!(
        "signed {count} calls of chain {late}, which had ended without them, in chain {}",
        chain.id
    );
    rows.push(JournalRow::of_link(repair::repaired_journal(chain.issuance(&mut end), repair)));
    let last = compose::closing(chain.issuance(&mut end), Termination::Interrupted, None);
    rows.push(JournalRow::of_link(last));
    rows.iter_mut().for_each(|row| row.sign(&chain.key));
    let ended = Consequence::Closed(Termination::Interrupted);
    Filer::default().file(db, chain.by_ref(), &rows, ended)?;
    chain.journal.remove();
    Ok(words)
}

/// Files the rows of a remnant, and the receipts that end the chain, if it is to be ended. Returns
/// calls that have no place in a chain that has ended.
fn file(
    db: &Connection,
    chain: &OpenChain,
    remnant: Remnant,
    repair: &mut JournalRepair,
    ending: Option<Consequence<'_>>,
) -> Result<Vec<JournalRow>, StoreError> {
    let Remnant { mut unfiled, starts, damaged, .. } = remnant;
    // A start that was filed can be missing in the journal only if lines of it are.
    repair.may_lack_starts = repair.is_gone || !damaged.is_empty() || !repair.lost.is_empty();
    let mut end = chain.end;
    let mut filer = Filer::default();
    for row in &mut unfiled {
        find_call(db, row, repair)?;
    }
    if repair.is_by_row {
        compose_in_place(db, chain, &mut end, &mut unfiled)?;
    }
    let mut late = Vec::new();
    if ending.is_none() && repair.is_by_row {
        let is_late = |row: &mut JournalRow| {
            row.link.is_none() && row.call.is_some() && row.promise.is_some()
        };
        late = unfiled.extract_if(.., is_late).collect();
    }
    for row in &mut unfiled {
        if row.link.is_none() {
            compose_again(chain, &mut end, row, repair);
        }
        row.sign(&chain.key);
    }
    if repair.is_by_row {
        // Entries that are lost had receipts too, and are counted with the others.
        let lost = missing::lost_receipts(db, &repair.chain_id, &unfiled)?;
        repair.lost_receipts = lost.saturating_sub(repair.lost.count());
    }
    let Some(consequence) = ending else {
        filer.file(db, chain.by_ref(), &unfiled, Consequence::Nothing)?;
        return Ok(late);
    };
    // What is missing is known from the rows that are not filed: they and the receipt that counts
    // it are filed in one transaction.
    if !repair.is_needed() {
        for rows in unfiled.chunks(FILE_MAX) {
            filer.file(db, chain.by_ref(), rows, Consequence::Nothing)?;
        }
        unfiled.clear();
    }
    let mut rows = end_calls(db, chain, &mut end, (repair, starts, &unfiled))?;
    if repair.is_needed() {
        let receipt = repair::repaired_journal(chain.issuance(&mut end), repair);
        rows.push(JournalRow::of_link(receipt));
    }
    let last = compose::closing(chain.issuance(&mut end), Termination::Interrupted, None);
    rows.push(JournalRow::of_link(last));
    rows.iter_mut().for_each(|row| row.sign(&chain.key));
    unfiled.extend(rows);
    filer.file(db, chain.by_ref(), &unfiled, consequence)?;
    Ok(late)
}

/// Finds the call of an end whose start cannot be read any more: it may have been filed.
fn find_call(
    db: &Connection,
    row: &mut JournalRow,
    repair: &mut JournalRepair,
) -> Result<(), StoreError> {
    if let (None, Some(ended)) = (&row.call, &row.ended) {
        match pending::call(db, &ended.id)? {
            Some(call) => {
                row.call = Some(Arc::new(call).ended(ended));
                // Filed as the end of a call, not as a call.
                row.start = Some(0);
                repair.reissued += 1;
            }
            None => repair.ends_without_start += 1,
        }
    }
    Ok(())
}

/// Composes receipts that the tables lost, each in its place between those that they kept.
fn compose_in_place(
    db: &Connection,
    chain: &OpenChain,
    end: &mut ChainEnd,
    rows: &mut [JournalRow],
) -> Result<(), StoreError> {
    let mut last = ChainEnd::default();
    for row in rows {
        let (Some(call), Some(ended), Some(promise)) = (&row.call, &row.ended, &row.promise) else {
            continue;
        };
        let before = missing::place_before(db, chain.by_ref(), promise, last)?;
        let Some(mut after) = before else { continue };
        let link = compose::call(chain.issuance(&mut after), call, ended, &promise.issued_at);
        if link.body.hash().to_string() == promise.hash {
            last = after;
            if after.sequence > end.sequence {
                *end = after;
            }
            row.link = Some(link);
        }
    }
    Ok(())
}

/// Composes the receipt that was committed with a call. If its record or its place differs by now,
/// the receipt is issued anew and names the promised hash.
fn compose_again(
    chain: &OpenChain,
    end: &mut ChainEnd,
    row: &mut JournalRow,
    repair: &mut JournalRepair,
) {
    let (Some(call), Some(ended), Some(promise)) = (&row.call, &row.ended, &row.promise) else {
        return;
    };
    if !repair.is_by_row {
        repair.note_place(promise.sequence, end.sequence);
    }
    let mut after = *end;
    let mut link = compose::call(chain.issuance(&mut after), call, ended, &promise.issued_at);
    if link.body.hash().to_string() != promise.hash {
        if !repair.is_needed() {
            tracing::warn!(call = %call.id, "the record of this call differs from the committed one");
        }
        repair.reissued += 1;
        after = *end;
        link = compose::reissued(chain.issuance(&mut after), call, ended, &promise.hash);
    }
    *end = after;
    row.link = Some(link);
}

/// Issues a receipt for each call that had started and not ended, unless it has one: of a database that
/// was lost, a repair may have found it.
fn end_calls(
    db: &Connection,
    chain: &OpenChain,
    end: &mut ChainEnd,
    (repair, starts, unfiled): (&mut JournalRepair, Vec<OpenStart>, &[JournalRow]),
) -> Result<Vec<JournalRow>, StoreError> {
    let ending: HashSet<&str> =
        unfiled.iter().filter_map(|row| Some(&*row.ended.as_ref()?.id)).collect();
    let mut rows = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    let mut interrupt = |entry, call: Arc<crate::CallStart>| {
        let ended = CallEnd::interrupted(&call.id);
        let issuance = chain.issuance(end);
        let mut row =
            JournalRow::of_link(compose::call(issuance, &call, &ended, &timestamp::now()));
        (row.call, row.ended, row.start) = (Some(call), Some(Arc::new(ended)), Some(entry));
        rows.push(row);
    };
    for OpenStart { entry, call } in starts {
        let is_unfiled = unfiled.iter().any(|row| row.entry == entry);
        if is_unfiled || filing::is_pending(db, &call.id)? {
            known.insert(call.id.clone());
            if !filing::has_receipt(db, &call.id)? {
                interrupt(entry, call);
            }
        }
    }
    // Their starts were filed, and cannot be read from the journal any more.
    for call in pending::calls(db, repair.number)? {
        let is_known = known.contains(&call.id)
            || ending.contains(&*call.id)
            || filing::has_receipt(db, &call.id)?;
        if !is_known && repair.may_lack_starts {
            interrupt(0, Arc::new(call));
        } else if !is_known {
            repair.strange_starts.push(call.id);
        }
    }
    Ok(rows)
}
