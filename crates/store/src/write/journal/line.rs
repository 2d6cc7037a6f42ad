//! The lines of a journal: a header, then an entry each. A line is a JSON object whose last member
//! is the checksum of everything before it.

use std::sync::Arc;

use receipt::Hash;
use serde::{Deserialize, Serialize};

use super::checksum::crc32c;
use crate::record::{CallEnd, CallStart};
use crate::write::link::{ChainBeginning, PrecedingChain};
use crate::write::row::{JournalRow, ReceiptPromise};

/// The version of the format.
const VERSION: u32 = 1;

/// The text before the eight hex digits of a checksum, and the text after them.
const SUM: &[u8] = b",\"crc\":\"";
const SUM_END: &[u8] = b"\"}";
const SUM_DIGITS: usize = 8;
const SUM_BYTES: usize = SUM.len() + SUM_DIGITS + SUM_END.len();

/// The first bytes of every line.
pub(super) const START: &[u8] = b"{\"entry\":";

/// The first line of a journal: what the tables knew of its chain when the file was begun. It lets
/// another process adopt the chain if the tables no longer know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// Always 0, which is no entry: every line begins alike.
    entry: i64,
    journal: u32,
    pub(crate) chain: String,
    /// The fingerprint of the key that signs.
    pub(crate) key: String,
    pub(crate) opened_at: String,
    pub(crate) pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) preceding: Option<ChainHead>,
    /// The last entry that had been filed; earlier ones are here only if they still matter.
    pub(crate) filed: i64,
    /// The last receipt that had been filed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<ChainHead>,
}

/// A receipt of a chain, by which its chain is known to have reached it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChainHead {
    pub(crate) chain_id: String,
    pub(crate) sequence: u64,
    pub(crate) hash: String,
}

/// The chain of a new journal.
pub(crate) struct HeaderFacts<'a> {
    pub(crate) chain: &'a str,
    pub(crate) key: String,
    pub(crate) opened_at: String,
    pub(crate) pid: u32,
    pub(crate) preceding: Option<&'a PrecedingChain>,
}

impl Header {
    pub(crate) fn new(facts: HeaderFacts<'_>) -> Header {
        let HeaderFacts { chain, key, opened_at, pid, preceding } = facts;
        let preceding = preceding.map(|preceding| ChainHead {
            chain_id: preceding.chain_id.clone(),
            sequence: preceding.sequence,
            hash: preceding.hash.to_string(),
        });
        let chain = chain.to_owned();
        let (entry, journal, filed, head) = (0, VERSION, 0, None);
        Header { entry, journal, chain, key, opened_at, pid, preceding, filed, head }
    }

    pub(crate) fn write(&self, lines: &mut Vec<u8>) {
        write_line(lines, self);
    }

    /// Returns the beginning of the chain, as its first receipt states it.
    pub(crate) fn beginning(&self) -> ChainBeginning {
        let preceding = self.preceding.as_ref().and_then(|head| {
            let (chain_id, sequence) = (head.chain_id.clone(), head.sequence);
            Some(PrecedingChain { chain_id, sequence, hash: head.hash.parse().ok()? })
        });
        ChainBeginning { opened_at: self.opened_at.clone(), pid: self.pid, preceding }
    }
}

/// An entry as it is written.
#[derive(Default, Serialize)]
pub(super) struct WrittenLine<'a> {
    pub(super) entry: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started: Option<&'a CallStart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arguments: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<&'a CallEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) receipt: Option<WrittenPromise<'a>>,
}

/// The promise of a receipt, whose text is composed again from the rest.
#[derive(Serialize)]
pub(super) struct WrittenPromise<'a> {
    pub(super) sequence: u64,
    pub(super) hash: Hash,
    pub(super) issued_at: &'a str,
}

/// An entry as it is read.
#[derive(Deserialize)]
struct ReadLine {
    entry: i64,
    started: Option<CallStart>,
    arguments: Option<String>,
    ended: Option<CallEnd>,
    response: Option<String>,
    receipt: Option<ReadPromise>,
}

#[derive(Deserialize)]
struct ReadPromise {
    sequence: u64,
    hash: String,
    issued_at: String,
}

/// A line that was read.
pub(crate) enum Line {
    Header(Box<Header>),
    Row(Box<JournalRow>),
}

pub(super) fn write_row(lines: &mut Vec<u8>, row: &JournalRow) {
    let started = row.call.as_deref().filter(|_| row.start.is_none());
    let ended = row.ended.as_deref();
    let receipt = row.link.as_ref().map(|link| WrittenPromise {
        sequence: link.sequence,
        hash: link.body.hash(),
        issued_at: &link.issued_at,
    });
    let line = WrittenLine {
        entry: row.entry,
        started,
        arguments: started.and_then(|started| started.arguments.kept.as_deref()),
        ended,
        response: ended.and_then(|ended| ended.response.kept.as_deref()),
        receipt,
    };
    write_line(lines, &line);
}

pub(super) fn write_line(lines: &mut Vec<u8>, line: &impl Serialize) {
    let start = lines.len();
    serde_json::to_writer(&mut *lines, line).expect("text and numbers can be written to memory");
    let brace = lines.pop();
    debug_assert_eq!(brace, Some(b'}'), "a line is an object");
    let sum = crc32c(&lines[start..]);
    lines.extend_from_slice(SUM);
    lines.extend_from_slice(&digits(sum));
    lines.extend_from_slice(SUM_END);
    lines.push(b'\n');
}

fn digits(sum: u32) -> [u8; SUM_DIGITS] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let nibble = |at: usize| HEX[(sum >> (28 - 4 * at) & 15) as usize];
    std::array::from_fn(nibble)
}

/// Returns the end of the first checksum in a text, if there is one.
pub(super) fn end_of_line(text: &[u8]) -> Option<usize> {
    let is_end = |at: &usize| {
        let found = &text[*at..];
        found.starts_with(SUM)
            && found.get(SUM.len() + SUM_DIGITS..SUM_BYTES).is_some_and(|end| end == SUM_END)
    };
    let commas = text.iter().enumerate().filter(|(_, byte)| **byte == b',');
    commas.map(|(at, _)| at).find(is_end).map(|at| at + SUM_BYTES)
}

/// Reports whether a line ends with a checksum, right or wrong.
pub(super) fn is_summed(line: &[u8]) -> bool {
    line.len() >= SUM_BYTES && end_of_line(&line[line.len() - SUM_BYTES..]) == Some(SUM_BYTES)
}

pub(super) fn read(line: &[u8]) -> Result<Line, String> {
    if !is_summed(line) || !line.starts_with(START) {
        return Err("it is not a whole line".to_owned());
    }
    let (content, sum) = line.split_at(line.len() - SUM_BYTES);
    if sum[SUM.len()..SUM.len() + SUM_DIGITS] != digits(crc32c(content)) {
        return Err("its checksum is wrong".to_owned());
    }
    parse(line)
}

fn parse(line: &[u8]) -> Result<Line, String> {
    let explain = |error: serde_json::Error| text::json::explain(&error);
    if let Ok(header) = serde_json::from_slice::<Header>(line) {
        return Ok(Line::Header(Box::new(header)));
    }
    let found: ReadLine = serde_json::from_slice(line).map_err(explain)?;
    let (mut started, mut ended) = (found.started, found.ended);
    if let Some(started) = &mut started {
        started.arguments.kept = found.arguments;
    }
    if let Some(ended) = &mut ended {
        ended.response.kept = found.response;
    }
    let promise = found.receipt.map(|receipt| ReceiptPromise {
        sequence: receipt.sequence,
        hash: receipt.hash,
        issued_at: receipt.issued_at,
        is_recorded: false,
    });
    let (call, ended) = (started.map(Arc::new), ended.map(Arc::new));
    let (start, link) = (None, None);
    let row = JournalRow { entry: found.entry, call, ended, start, link, promise };
    Ok(Line::Row(Box::new(row)))
}
