//! Reads a ledger for an audit, and compares the columns of its tables with what is signed. Chains
//! come in the order in which the audit can follow the keys. Nothing is written.

mod columns;
mod measured;
pub(super) mod records;
pub(super) mod touches;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use receipt::audit::{Audit, ExaminedReceipt, ReadReceipt};
use receipt::checkpoint::{Checkpoint, Head};
use receipt::{Hash, PublicKey};
use rusqlite::{Connection, Row};

use self::columns::{RECEIPT_COLUMNS, differing};
use self::records::{RECORD_COLUMNS, RecordCheck};
use super::reader::Reader;
use super::receipts::StoredChain;
use crate::database::lock::Lock;
use crate::database::{WRITERS, schema};
use crate::error::StoreError;
use crate::limits::EXPORT_PAGE;
use crate::read::accepted;
use crate::upkeep::stated::{RECORDS_EXPIRED, StatedDeletions};
use crate::upkeep::tally;
use crate::write::chain_row::{ChainRow, SignedEnds, misfiled, row_words};
use crate::write::checkpoint_file::{self, CHECKPOINT_FILE, FILE_MISSING, kept_checkpoint};
use crate::write::journal_state::{JournalDepth, JournalState, lost_words, rewritten_words};
use crate::write::{heads, journal, repair};

/// The time within which a process signs its commits, with a margin. Until then another chain may
/// name receipts that cannot be read yet.
pub const SIGNING_TIME_MAX: Duration = Duration::from_millis(1500);

/// Receipts that a thread takes at a time: a millisecond's work.
const AHEAD_SHARE: usize = 16;

/// The place of a ledger: in its home, with journals and the newest checkpoint, or alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerPlace<'a> {
    Home(&'a Path),
    Copy,
}

/// The source of an audit, and the number of threads that examine its receipts.
#[derive(Clone, Copy, Debug)]
pub struct AuditSource<'a> {
    place: LedgerPlace<'a>,
    threads: usize,
}

impl<'a> AuditSource<'a> {
    /// Uses every core, for a command that does nothing else.
    pub fn on_all_cores(place: LedgerPlace<'a>) -> AuditSource<'a> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        AuditSource { place, threads }
    }
}

impl<'a> From<LedgerPlace<'a>> for AuditSource<'a> {
    /// Leaves the other cores to calls.
    fn from(place: LedgerPlace<'a>) -> AuditSource<'a> {
        AuditSource { place, threads: 1 }
    }
}

/// A page of a chain's receipts, of which some were examined ahead.
struct ReceiptPage<'a> {
    chain_id: &'a str,
    sql: &'a str,
    /// The sequence of the last receipt before it.
    after: i64,
    ahead: Vec<(i64, ExaminedReceipt)>,
    /// The ends of the chain as far as it was read.
    ends: SignedEnds,
}

/// Receipts that are examined before their turn, by every thread that has time.
struct PageAhead {
    keys: Vec<PublicKey>,
    /// Empty if the receipts cannot be read; the audit finds out in their turn.
    texts: OnceLock<Vec<(i64, String)>>,
    /// The first that no thread has taken.
    next: AtomicUsize,
    examined: Mutex<Vec<(i64, ExaminedReceipt)>>,
}

impl PageAhead {
    fn new(keys: Vec<PublicKey>) -> PageAhead {
        let (next, examined) = (AtomicUsize::new(0), Mutex::default());
        PageAhead { keys, texts: OnceLock::new(), next, examined }
    }

    fn begin(&self, texts: Result<Vec<(i64, String)>, StoreError>) {
        self.texts.get_or_init(|| texts.unwrap_or_default());
    }

    /// Takes part in the examination until nothing is left, once the texts are there.
    fn examine(&self) {
        let texts = self.texts.wait();
        loop {
            let from = self.next.fetch_add(AHEAD_SHARE, Ordering::Relaxed).min(texts.len());
            let share = &texts[from..texts.len().min(from + AHEAD_SHARE)];
            if share.is_empty() {
                return;
            }
            let examined =
                share.iter().map(|(at, text)| (*at, ExaminedReceipt::new(text, &self.keys)));
            let examined: Vec<_> = examined.collect();
            self.examined.lock().unwrap_or_else(PoisonError::into_inner).extend(examined);
        }
    }

    fn into_examined(self) -> Vec<(i64, ExaminedReceipt)> {
        let mut examined = self.examined.into_inner().unwrap_or_else(PoisonError::into_inner);
        examined.sort_unstable_by_key(|(sequence, _)| *sequence);
        examined
    }
}

/// The facts that are known before the receipts are read.
struct Outset<'a> {
    place: LedgerPlace<'a>,
    threads: usize,
    /// The file is one of ours: its columns repeat the text of receipts.
    is_ours: bool,
}

/// The head of a chain as its row states it, and the end of its journal that was filed.
struct FiledHead {
    head: Option<Head>,
    entry: i64,
}

impl Reader {
    /// Passes every receipt that the audit wants to `each`.
    pub fn audit<'a>(
        &self,
        audit: &mut Audit,
        source: impl Into<AuditSource<'a>>,
        mut each: impl FnMut(),
    ) -> Result<(), StoreError> {
        let AuditSource { place, threads } = source.into();
        // Read before the receipts: what it names is in the tables by then.
        let kept = match place {
            LedgerPlace::Home(home) => Some(kept_checkpoint(home)),
            LedgerPlace::Copy => None,
        };
        let is_ours = self.pool.ask(schema::is_ledger)?;
        let outset = Outset { place, threads, is_ours };
        if is_ours {
            for accepted in self.pool.ask(accepted::receipts)? {
                audit.accept(&accepted);
            }
        }
        let mut gone = ReadFacts::default();
        let listed = if is_ours { self.pool.ask(heads::listed)? } else { Vec::new() };
        // Oldest first, so that a key is known once another has handed over to it.
        for chain in self.chains()?.iter().rev() {
            if !audit.is_wanted(&chain.id) {
                for text in self.receipt_texts(&chain.id).take(1) {
                    audit.push_to(&chain.id, &text?);
                    each();
                }
                continue;
            }
            self.audit_one(audit, chain, &outset, (&mut gone, &mut each))?;
        }
        if is_ours {
            self.audit_tables(audit, gone, &listed)?;
        }
        if let Some(kept) = kept {
            self.require_kept(audit, kept)?;
        }
        if let LedgerPlace::Home(home) = place {
            if is_ours {
                self.audit_unknown_chains(audit, home)?;
            }
            // A start or a repair could not use them. What they name is required until a person
            // accepts that it is lost.
            for (name, text) in checkpoint_file::set_aside(home) {
                if heads::signed_checkpoint(&text, audit.trusted()).is_some() {
                    audit.require(&name, &text);
                }
            }
        }
        Ok(())
    }

    /// Audits a chain: its receipts, its row, and what its journal says.
    fn audit_one(
        &self,
        audit: &mut Audit,
        chain: &StoredChain,
        outset: &Outset<'_>,
        (facts, each): (&mut ReadFacts, &mut impl FnMut()),
    ) -> Result<(), StoreError> {
        let filed = self.filed_head(&chain.id, outset.is_ours)?;
        let row = self.chain_row(&chain.id, outset.is_ours)?;
        let promised = outset.promised(&chain.id, filed.entry);
        let ends = match self.audit_chain(audit, &chain.id, outset, (facts, each)) {
            // The other chains are checked all the same.
            Err(StoreError::Corrupt(words)) => {
                audit.fault(&chain.id, None, format!("the chain cannot be read: {words}"));
                SignedEnds::default()
            }
            audited => audited?,
        };
        if outset.is_ours && chain.opening.is_none() {
            let words = "the chain is not in the table of chains";
            audit.fault(&chain.id, None, words.to_owned());
        }
        state_row(audit, chain, filed.head, outset.place);
        // Its writer may have ended it meanwhile.
        let rows = [row, self.chain_row(&chain.id, outset.is_ours)?].into_iter().flatten();
        let differing = rows.map(|row| row.differing(&ends)).min_by_key(Vec::len);
        if let Some(differing) = differing.filter(|found| !found.is_empty()) {
            audit.fault(&chain.id, None, row_words(&differing));
        }
        let lost = outset.lost(&chain.id, filed.entry);
        if lost > 0 {
            audit.fault(&chain.id, None, lost_words(lost));
        }
        if outset.is_rewritten(&chain.id) {
            audit.fault(&chain.id, None, rewritten_words());
        }
        if let Some(words) = self.left_open(&chain.id, outset)? {
            audit.fault(&chain.id, None, words);
        }
        if let Some(promised) = promised {
            promised.tell(audit, &chain.id);
        }
        Ok(())
    }

    /// Returns what is wrong with the journal of a chain that nobody ended, in words.
    fn left_open(&self, chain_id: &str, outset: &Outset<'_>) -> Result<Option<String>, StoreError> {
        let LedgerPlace::Home(home) = outset.place else { return Ok(None) };
        let writers = home.join(WRITERS);
        if !outset.is_ours || Lock::is_held(&writers, chain_id) {
            return Ok(None);
        }
        let words = "SELECT 1 FROM chains WHERE chain_id = ?1 AND status = 'open'";
        let is_open = |db: &Connection| Ok(db.prepare_cached(words)?.exists([chain_id])?);
        if !journal::has_traces(&writers, chain_id) {
            // It may have ended meanwhile.
            return Ok(self.pool.ask(is_open)?.then(|| repair::gone_words(chain_id)));
        }
        self.pool.ask(|db| misfiled(db, &writers, chain_id))
    }

    /// Tells of chains of which only the journals of ended processes are left.
    fn audit_unknown_chains(&self, audit: &mut Audit, home: &Path) -> Result<(), StoreError> {
        let writers = home.join(WRITERS);
        for id in journal::chains(&writers) {
            if Lock::is_held(&writers, &id) || !audit.is_wanted(&id) {
                continue;
            }
            let depth = JournalDepth::Everything;
            let read = |db: &Connection| JournalState::read(Some(db), (&writers, &id), depth);
            let Some(state) = self.pool.ask(read)?.filter(JournalState::is_unknown) else {
                continue;
            };
            match state.missing() {
                Some(missing) => audit.fault(&id, None, missing),
                None => audit.note(format!(
                    "note: the tables do not know chain {id}; the next start files its {} entries \
                     from its journal",
                    state.entries
                )),
            }
        }
        Ok(())
    }

    /// Audits the tables that repeat what receipts say, and records that have none.
    fn audit_tables(
        &self,
        audit: &mut Audit,
        mut facts: ReadFacts,
        listed: &[Head],
    ) -> Result<(), StoreError> {
        if !audit.wants_all() {
            self.add_checkpoints(audit)?;
            if !facts.missing.is_empty() {
                self.add_deletions(audit, &mut facts.stated)?;
            }
        }
        let known = audit.trusted().to_vec();
        if self.pool.ask(|db| tally::unsigned(db, &known))?.is_some() {
            audit.fault_of_ledger(tally::UNSIGNED.to_owned());
        }
        let unstated = self.pool.ask(|db| tally::unstated(db, &known))?;
        if !facts.missing.is_empty() && !unstated.is_empty() {
            audit.note("note: the last deletions are not signed yet".to_owned());
            facts.stated.add_unstated(&unstated);
        }
        let checkpoints = std::mem::take(&mut facts.checkpoints);
        facts.tell(audit);
        self.audit_records(audit)?;
        self.audit_lone_touches(audit)?;
        self.audit_meetings(audit)?;
        // Receipts that were filed meanwhile are in the table by now.
        let now = self.pool.ask(heads::listed)?;
        compare_checkpoints(audit, &checkpoints, (listed, &now));
        Ok(())
    }

    /// Audits the receipts of a chain, and collects those whose records are gone. While a page of
    /// them is compared with its rows, other threads examine the next one.
    fn audit_chain(
        &self,
        audit: &mut Audit,
        chain_id: &str,
        outset: &Outset<'_>,
        (gone, each): (&mut ReadFacts, &mut impl FnMut()),
    ) -> Result<SignedEnds, StoreError> {
        let sql = page_query(outset.is_ours);
        let (after, ahead, ends) = (i64::MIN, Vec::new(), SignedEnds::default());
        let mut page = ReceiptPage { chain_id, sql: &sql, after, ahead, ends };
        loop {
            let after = page.after;
            let ahead = PageAhead::new(audit.trusted().to_vec());
            let count = std::thread::scope(|scope| {
                for number in 1..outset.threads {
                    let ahead = &ahead;
                    scope.spawn(move || {
                        if number == 1 {
                            ahead.begin(self.texts_ahead(chain_id, after));
                        }
                        ahead.examine();
                    });
                }
                let count = self.audit_page(audit, &mut page, outset, (&mut *gone, &mut *each));
                if outset.threads > 1 {
                    ahead.examine();
                }
                count
            });
            if count? < EXPORT_PAGE {
                return Ok(page.ends);
            }
            // What was not examined ahead is examined in its turn.
            page.ahead = ahead.into_examined();
        }
    }

    /// Audits the receipts of one page, and returns their number.
    fn audit_page(
        &self,
        audit: &mut Audit,
        page: &mut ReceiptPage<'_>,
        outset: &Outset<'_>,
        (gone, each): (&mut ReadFacts, &mut impl FnMut()),
    ) -> Result<usize, StoreError> {
        let (chain_id, sql) = (page.chain_id, page.sql);
        let ReceiptPage { after, ahead, ends, .. } = page;
        let mut ahead = std::mem::take(ahead).into_iter().peekable();
        self.pool.ask_in_passing(|db| {
            let mut count = 0;
            let mut statement = db.prepare_cached(sql)?;
            let mut rows = statement.query((chain_id, *after, page_limit()))?;
            while let Some(row) = rows.next()? {
                *after = row.get(0)?;
                count += 1;
                let read = match ahead.next_if(|(sequence, _)| sequence == after) {
                    Some((_, examined)) => audit.push_examined(chain_id, examined),
                    None => audit.push_to(chain_id, &receipt_text(row, 1)?),
                };
                if let Some(read) = read.filter(|_| outset.is_ours) {
                    let comparison = Comparison { chain_id, row, read: &read };
                    comparison.tell(audit, gone)?;
                    comparison.report_touches(db, audit)?;
                    ends.take(read);
                }
                each();
            }
            Ok(count)
        })
    }

    /// Returns the texts of the page of receipts after the one that follows `after`.
    fn texts_ahead(&self, chain_id: &str, after: i64) -> Result<Vec<(i64, String)>, StoreError> {
        self.pool.ask_in_passing(|db| {
            let mut statement = db.prepare_cached(
                "SELECT sequence, receipt_json FROM receipts
                 WHERE chain_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3 OFFSET ?3",
            )?;
            let mut rows = statement.query((chain_id, after, page_limit()))?;
            let mut texts = Vec::with_capacity(EXPORT_PAGE);
            while let Some(row) = rows.next()? {
                texts.push((row.get(0)?, receipt_text(row, 1)?.into_owned()));
            }
            Ok(texts)
        })
    }

    fn chain_row(&self, chain_id: &str, is_ours: bool) -> Result<Option<ChainRow>, StoreError> {
        if is_ours { self.pool.ask(|db| ChainRow::read(db, chain_id)) } else { Ok(None) }
    }

    fn filed_head(&self, chain_id: &str, is_ours: bool) -> Result<FiledHead, StoreError> {
        if !is_ours {
            return Ok(FiledHead { head: None, entry: i64::MAX });
        }
        self.pool.ask(|db| {
            let mut statement = db.prepare_cached(
                "SELECT length, last_hash, filed FROM chains
                 WHERE chain_id = ?1 AND status <> 'expired'",
            )?;
            let mut rows = statement.query([chain_id])?;
            let Some(row) = rows.next()? else {
                return Ok(FiledHead { head: None, entry: i64::MAX });
            };
            let (length, hash): (u64, Option<String>) = (row.get(0)?, row.get(1)?);
            let hash = hash.and_then(|hash| hash.parse().ok());
            let head = hash.map(|hash| Head { chain_id: chain_id.to_owned(), length, hash });
            Ok(FiledHead { head, entry: row.get(2)? })
        })
    }

    /// Takes in the checkpoints of chains that are not audited.
    fn add_checkpoints(&self, audit: &mut Audit) -> Result<(), StoreError> {
        self.pool.ask_at_once(|db| {
            let mut statement = db.prepare(
                "SELECT chain_id, receipt_json FROM checkpoints
                 JOIN receipts USING (chain_id, sequence)",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let chain_id: String = row.get(0)?;
                if !audit.is_wanted(&chain_id) {
                    let text = row.get_ref(1)?.as_bytes().unwrap_or(b"");
                    audit.hear(&String::from_utf8_lossy(text));
                }
            }
            Ok(())
        })
    }

    /// Takes in the deletions that chains state which are not audited.
    fn add_deletions(
        &self,
        audit: &mut Audit,
        stated: &mut StatedDeletions,
    ) -> Result<(), StoreError> {
        self.pool.ask_in_passing(|db| {
            let mut statement = db.prepare("SELECT receipt_json FROM receipts WHERE own = ?1")?;
            let mut rows = statement.query([RECORDS_EXPIRED])?;
            while let Some(row) = rows.next()? {
                let text = row.get_ref(0)?.as_bytes().unwrap_or(b"");
                if let Some(members) = audit.hear(&String::from_utf8_lossy(text)) {
                    stated.add(&members);
                }
            }
            Ok(())
        })
    }

    /// Requires what the newest checkpoint names, which is kept next to the database.
    fn require_kept(
        &self,
        audit: &mut Audit,
        kept: std::io::Result<Option<String>>,
    ) -> Result<(), StoreError> {
        match kept {
            Ok(Some(text)) => {
                audit.require(CHECKPOINT_FILE, &text);
            }
            Ok(None) => {
                let sql = "SELECT EXISTS (SELECT 1 FROM checkpoints)";
                let has_some = self.pool.ask(|db| {
                    Ok(schema::is_ledger(db)? && db.query_row(sql, [], |row| row.get(0))?)
                })?;
                if has_some {
                    audit.note(format!("note: {FILE_MISSING}"));
                }
            }
            Err(error) => audit.note(format!("note: cannot read {CHECKPOINT_FILE}: {error}")),
        }
        Ok(())
    }
}

/// Returns the number of receipts that are read at a time.
fn page_limit() -> i64 {
    i64::try_from(EXPORT_PAGE).unwrap_or(i64::MAX)
}

/// Returns the text of a receipt, with replacements for what is not UTF-8.
fn receipt_text<'a>(row: &'a Row<'_>, column: usize) -> Result<Cow<'a, str>, StoreError> {
    Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes().unwrap_or(b"")))
}

/// A receipt as it is signed, and the row that repeats it.
struct Comparison<'a> {
    chain_id: &'a str,
    row: &'a Row<'a>,
    read: &'a ReadReceipt,
}

impl Comparison<'_> {
    /// Compares the columns of a receipt and its record with the signed text.
    fn tell(&self, audit: &mut Audit, gone: &mut ReadFacts) -> Result<(), StoreError> {
        let Comparison { chain_id, row, read } = self;
        let sequence = read.sequence;
        let found = differing(row, chain_id, read)?;
        if !found.is_empty() {
            let words = format!(
                "receipt {sequence}: the columns {} differ from the signed text",
                found.join(", ")
            );
            audit.fault(chain_id, Some(read.index), words);
        }
        match records::check(row, &read.members)? {
            RecordCheck::Sound => {}
            RecordCheck::Missing(token, started) => {
                let (chain_id, place) = ((*chain_id).to_owned(), (read.index, sequence));
                gone.missing.push(MissingRecord { chain_id, place, token, started });
            }
            RecordCheck::Differs(found) => {
                audit.fault(chain_id, Some(read.index), differing_words(sequence, &found));
            }
            RecordCheck::Fault(words) => {
                audit.fault(chain_id, Some(read.index), format!("receipt {sequence}: {words}"));
            }
        }
        if read.is_valid {
            gone.stated.add(&read.members);
            if Checkpoint::of(&read.members).is_some() {
                let (chain_id, length) = ((*chain_id).to_owned(), sequence);
                gone.checkpoints.push(Head { chain_id, length, hash: read.hash });
            }
        }
        Ok(())
    }
}

impl Comparison<'_> {
    /// Compares the touches of a record, and the record that it is joined with, with what is signed.
    fn report_touches(&self, db: &Connection, audit: &mut Audit) -> Result<(), StoreError> {
        let found = touches::differing(db, self.row, &self.read.members)?;
        if !found.is_empty() {
            let words = differing_words(self.read.sequence, &found);
            audit.fault(self.chain_id, Some(self.read.index), words);
        }
        Ok(())
    }
}

/// Says that the record of a receipt is not what is signed.
fn differing_words(sequence: u64, found: &[&str]) -> String {
    let found = found.join(", ");
    format!("receipt {sequence}: its record differs from the signed text: {found}")
}

impl Outset<'_> {
    /// Returns the number of entries of a chain that were committed and are neither filed nor in its
    /// journal, unless it is being written.
    fn lost(&self, chain_id: &str, filed: i64) -> u64 {
        let LedgerPlace::Home(home) = self.place else { return 0 };
        let writers = home.join(WRITERS);
        let last = journal::tail::entry(&writers, chain_id).filter(|last| *last > filed);
        if last.is_none() || Lock::is_held(&writers, chain_id) {
            return 0;
        }
        let scan = journal::scan(&writers, chain_id).unwrap_or_default();
        scan.lost_up_to(last, filed).count()
    }

    /// Reports whether the last line of a chain's journal is not the one that was committed, unless it
    /// is being written.
    fn is_rewritten(&self, chain_id: &str) -> bool {
        let LedgerPlace::Home(home) = self.place else { return false };
        let writers = home.join(WRITERS);
        let scan = journal::scan(&writers, chain_id).filter(|_| !Lock::is_held(&writers, chain_id));
        scan.is_some_and(|mut scan| {
            journal::tail::restore_promise(&writers, chain_id, &mut scan.rows)
        })
    }

    /// Returns the receipts that a chain's journal promises beyond an entry.
    fn promised(&self, chain_id: &str, filed: i64) -> Option<Promises> {
        let LedgerPlace::Home(home) = self.place else {
            return None;
        };
        let writers = home.join(WRITERS);
        let left = journal::unfiled(&writers, chain_id, filed)?;
        let is_abandoned = !Lock::is_held(&writers, chain_id);
        (left.entries > 0).then_some(Promises { left, is_abandoned })
    }
}

/// Compares the table of checkpoints with the receipts that have one: those that were listed before
/// the receipts were read must be among them, and all of them must be listed now.
fn compare_checkpoints(audit: &mut Audit, signed: &[Head], (before, now): (&[Head], &[Head])) {
    let known: HashSet<_> = signed.iter().map(place).collect();
    let listed: HashSet<_> = now.iter().map(place).collect();
    for head in before.iter().filter(|head| !known.contains(&place(head))) {
        if audit.is_wanted(&head.chain_id) && !audit.is_expired(&head.chain_id) {
            let words = format!(
                "the table of checkpoints lists receipt {}, which is not there or no checkpoint",
                head.length
            );
            audit.fault(&head.chain_id, None, words);
        }
    }
    for head in signed.iter().filter(|head| !listed.contains(&place(head))) {
        let words = format!("the table of checkpoints lacks the one in receipt {}", head.length);
        audit.fault(&head.chain_id, head.length.checked_sub(1), words);
    }
}

fn place(head: &Head) -> (&str, u64, Hash) {
    (&head.chain_id, head.length, head.hash)
}

/// Facts that are judged once all receipts have been read, such as records that are gone.
#[derive(Default)]
struct ReadFacts {
    missing: Vec<MissingRecord>,
    stated: StatedDeletions,
    /// The places of all checkpoints.
    checkpoints: Vec<Head>,
}

/// A receipt whose record can be gone only if retention says so.
struct MissingRecord {
    chain_id: String,
    /// Its index among the receipts of its chain, and its number.
    place: (u64, u64),
    token: String,
    started: Timestamp,
}

impl ReadFacts {
    /// Reports the records that are missing although no deletion of them is stated: the rest of those
    /// that a statement may mean, once its number is used up.
    fn tell(mut self, audit: &mut Audit) {
        self.missing.sort_by_key(|record| record.started);
        let (mut count, stated) = (0, self.stated.count());
        for MissingRecord { chain_id, place, token, started } in self.missing {
            if count < stated && self.stated.cover(&token, started) {
                count += 1;
            } else {
                audit.missing_record(&chain_id, place);
            }
        }
        if count > 0 {
            audit.note(format!("note: {count} receipts are of calls whose records have expired"));
        }
    }
}

/// Receipts that are committed, but not filed.
struct Promises {
    left: journal::UnfiledPromises,
    is_abandoned: bool,
}

impl Promises {
    fn tell(self, audit: &mut Audit, chain_id: &str) {
        if self.is_abandoned {
            let count = self.left.entries;
            audit.note(format!(
                "note: chain {chain_id} was left open by a process that ended; {count} entries are \
                 in its journal, and the next start of a gate files and signs them"
            ));
        }
        audit.expect_later(chain_id, self.left.receipts);
    }
}

/// States what the row of a chain says about it.
fn state_row(audit: &mut Audit, chain: &StoredChain, head: Option<Head>, place: LedgerPlace<'_>) {
    if let Some(head) = head {
        audit.must_have(head);
    }
    let status = chain.opening.as_ref().map(|opening| opening.status.as_str());
    match status {
        Some("complete" | "interrupted") if place != LedgerPlace::Copy => {
            audit.must_have_ended(&chain.id);
        }
        Some("damaged") => {
            let words = "a gate found that the end of the chain is missing, and left it as it is";
            audit.fault(&chain.id, None, words.to_owned());
        }
        Some(_) | None => {}
    }
}

/// Returns the query of a page of receipts, each with its record if the file has records.
fn page_query(is_ours: bool) -> String {
    let (columns, joins) = if is_ours {
        (
            format!(", {RECEIPT_COLUMNS}, {RECORD_COLUMNS}"),
            "LEFT JOIN activity ON activity.id = substr(receipts.id, 13)
             LEFT JOIN agents ON agents.agent = activity.agent
             LEFT JOIN targets ON targets.target = activity.target
             LEFT JOIN payloads ON payloads.number = activity.number",
        )
    } else {
        (String::new(), "")
    };
    format!(
        "SELECT sequence, receipt_json{columns} FROM receipts {joins}
         WHERE receipts.chain_id = ?1 AND receipts.sequence > ?2
         ORDER BY receipts.sequence LIMIT ?3"
    )
}
