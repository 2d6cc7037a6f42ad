//! The journal of a chain compared with the tables: the facts by which a home is judged, without the
//! entries themselves.

use std::path::Path;

use rusqlite::Connection;

use crate::database::lock::Lock;
use crate::error::StoreError;
use crate::write::chain;
use crate::write::journal::{self, Header, Scan, tail};

/// The journal of one chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalState {
    pub chain_id: String,
    /// A process writes it.
    pub is_alive: bool,
    /// Lines that can be read.
    pub entries: usize,
    pub damaged: usize,
    /// Entries that are not in the tables yet; none are known if the database is lost.
    pub unfiled: Option<usize>,
    /// Entries that cannot be read and are not in the tables.
    pub lost: u64,
    /// Its last line is not the one that was committed.
    pub is_rewritten: bool,
    /// The last entry that is in the tables; none if they do not know the chain.
    pub(crate) filed: Option<i64>,
    pub(crate) header: Option<Header>,
    /// Some receipts are missing between those that it promises.
    pub(crate) has_gap: bool,
    /// The last receipt of the chain before it, if that could be missing: the tables do not know this
    /// chain, and the other one has not expired.
    pub(crate) reached_before: Option<u64>,
}

/// Says that entries of a journal are lost.
pub(crate) fn lost_words(lost: u64) -> String {
    format!("its journal lacks {lost} entries that were committed and not filed")
}

/// Says that the last line of a journal is not the one that was committed.
pub(crate) fn rewritten_words() -> String {
    "the last line of its journal is not the one that was committed, whose hash its lock file has"
        .to_owned()
}

/// The amount of a journal that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalDepth {
    /// The header; of a chain that the tables do not know, everything.
    Header,
    Everything,
}

impl JournalState {
    /// Reads a journal, which its writer may be using; `None` if it is gone.
    pub(crate) fn read(
        db: Option<&Connection>,
        (writers, chain_id): (&Path, &str),
        depth: JournalDepth,
    ) -> Result<Option<JournalState>, StoreError> {
        let filed = || db.map_or(Ok(None), |db| chain::filed(db, chain_id));
        let is_full = depth == JournalDepth::Everything;
        let mut state = JournalState {
            chain_id: chain_id.to_owned(),
            is_alive: is_full && Lock::is_held(writers, chain_id),
            // In this order: a living writer files entries before it begins the journal anew, and
            // those that it files are in the journal already.
            header: journal::header(writers, chain_id),
            filed: filed()?,
            ..JournalState::default()
        };
        if !is_full && state.filed.is_some() {
            return Ok(Some(state));
        }
        let last = tail::entry(writers, chain_id);
        let mut scan = match journal::scan(writers, chain_id) {
            None if last.is_none() => return Ok(None),
            scan => scan.unwrap_or_default(),
        };
        // A living writer commits an entry before it notes it.
        state.is_rewritten =
            !state.is_alive && tail::restore_promise(writers, chain_id, &mut scan.rows);
        // A writer adds its chain to the tables before it writes to the journal.
        state.filed = state.filed.map_or_else(filed, |filed| Ok(Some(filed)))?;
        state.take(scan, last);
        let before = state.header.as_ref().and_then(|header| header.preceding.as_ref());
        if let (Some(db), None, Some(before)) = (db, state.filed, before) {
            state.reached_before = chain::reach(db, writers, &before.chain_id)?;
        }
        Ok(Some(state))
    }

    fn take(&mut self, scan: Scan, known: Option<i64>) {
        let last = self.filed.unwrap_or(0);
        (self.entries, self.damaged) = (scan.rows.len(), scan.damaged.len());
        self.unfiled = self.filed.map(|_| scan.rows.iter().filter(|row| row.entry > last).count());
        self.lost = if self.is_alive { 0 } else { scan.lost_up_to(known, last).count() };
        let promised = scan.rows.iter().filter_map(|row| Some(row.promise.as_ref()?.sequence));
        self.has_gap = promised.zip(1..).any(|(sequence, next)| sequence != next);
        self.header = self.header.take().or(scan.header);
    }

    /// Reports whether the tables do not know the chain, although something was written.
    pub(crate) fn is_unknown(&self) -> bool {
        let is_blank = self.header.is_none() && self.entries == 0 && self.damaged == 0;
        self.filed.is_none() && !is_blank
    }

    /// Returns what would be missing if the chain were adopted from its journal, in words.
    pub(crate) fn missing(&self) -> Option<String> {
        let Some(header) = &self.header else {
            return Some("its journal has no header".to_owned());
        };
        if header.filed > 0 {
            return Some(format!("{} of its entries were filed and are in no table", header.filed));
        }
        if self.lost > 0 {
            return Some(format!("{} entries of its journal are damaged", self.lost));
        }
        if self.has_gap {
            return Some("some of its receipts are in no table".to_owned());
        }
        let (before, reached) = (header.preceding.as_ref()?, self.reached_before?);
        let (id, length) = (&before.chain_id, before.sequence);
        (reached < length).then(|| {
            format!(
                "of the chain before it, {id}, only {reached} of {length} receipts can be found"
            )
        })
    }
}
