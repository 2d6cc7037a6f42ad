//! Reads the text of a journal, however damaged: every line whose checksum is right counts, and
//! every other one is reported. Pure.

use super::line::{Header, Line, START, end_of_line, is_summed, read};
use crate::write::row::JournalRow;

/// The content of a journal.
#[derive(Default)]
pub(crate) struct Scan {
    pub(crate) header: Option<Header>,
    /// The entries, in order.
    pub(crate) rows: Vec<JournalRow>,
    pub(crate) damaged: Vec<DamagedLine>,
    /// The last line is incomplete: its write was interrupted, and it was never confirmed.
    pub(crate) is_torn: bool,
}

/// Entries that a journal had and has no longer: the first and the last of each gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostEntries {
    pub(crate) spans: Vec<(i64, i64)>,
}

impl LostEntries {
    pub(crate) fn count(&self) -> u64 {
        let count = |(first, last): &(i64, i64)| u64::try_from(last - first + 1).unwrap_or(0);
        self.spans.iter().map(count).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

/// A line that is not as it was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DamagedLine {
    pub(crate) bytes: Vec<u8>,
    /// The last intact entry before it; 0 if there is none.
    pub(crate) after: i64,
    pub(crate) why: String,
}

impl Scan {
    pub(crate) fn of(text: &[u8]) -> Scan {
        let mut scan = Scan::default();
        let (lines, tail) = match text.iter().rposition(|&byte| byte == b'\n') {
            Some(end) => (&text[..end], &text[end + 1..]),
            None => (&text[..0], text),
        };
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            scan.take_line(line);
        }
        scan.take_tail(tail);
        scan
    }

    /// Returns the entries beyond `filed` that the journal had and has no longer.
    pub(crate) fn lost_after(&self, filed: i64) -> LostEntries {
        let mut known: Vec<i64> = self.rows.iter().map(|row| row.entry).collect();
        known.sort_unstable();
        let mut spans = Vec::new();
        let mut last = filed;
        for entry in known.into_iter().filter(|entry| *entry > filed) {
            if entry > last + 1 {
                spans.push((last + 1, entry - 1));
            }
            last = entry;
        }
        let newest = self.rows.iter().map(|row| row.entry).max().unwrap_or(0);
        let mut at_end = self.lines_after(newest);
        let has_ends = self.damaged.iter().any(|line| is_summed(&line.bytes));
        if has_ends && self.header.is_none() && self.rows.is_empty() {
            // One of them was the header.
            at_end = at_end.saturating_sub(1);
        }
        // Nothing tells which entries they were; if the newest intact one was filed, so may they.
        if at_end > 0 && newest >= filed {
            spans.push((last + 1, last + i64::try_from(at_end).unwrap_or(i64::MAX)));
        }
        LostEntries { spans }
    }

    /// Returns the entries beyond `filed` that the journal had, up to the last that is known.
    pub(crate) fn lost_up_to(&self, last: Option<i64>, filed: i64) -> LostEntries {
        let mut lost = self.lost_after(filed);
        let ends = lost.spans.iter().map(|(_, end)| *end);
        let newest = self.rows.iter().map(|row| row.entry).chain(ends).max().unwrap_or(0);
        let newest = newest.max(filed);
        if let Some(last) = last.filter(|last| *last > newest) {
            lost.spans.push((newest + 1, last));
        }
        lost
    }

    /// Returns the number of damaged lines after an entry. A line may be in several parts.
    fn lines_after(&self, entry: i64) -> usize {
        let parts = || self.damaged.iter().filter(|line| line.after >= entry);
        let starts = parts().filter(|line| line.bytes.starts_with(START)).count();
        let ends = parts().filter(|line| is_summed(&line.bytes)).count();
        starts.max(ends).max(parts().count().min(1))
    }

    fn take_line(&mut self, line: &[u8]) {
        match read(line) {
            Ok(read) => self.take(line, Ok(read)),
            Err(why) => self.take_pieces(line, &why),
        }
    }

    /// Takes what is intact of a line that is not: a damaged line break joins two lines.
    fn take_pieces(&mut self, line: &[u8], why: &str) {
        let mut rest = line;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(end_of_line(rest).unwrap_or(rest.len()));
            let unbroken = piece.get(1..).unwrap_or_default();
            match read(piece).or_else(|_| read(unbroken)) {
                Ok(read) => self.take(piece, Ok(read)),
                Err(_) => self.take(piece, Err(why.to_owned())),
            }
            rest = after;
        }
    }

    /// Takes the text after the last line break. A line that something follows was written whole.
    fn take_tail(&mut self, tail: &[u8]) {
        let mut rest = tail;
        while let Some(end) = end_of_line(rest).filter(|end| *end < rest.len()) {
            let (piece, after) = rest.split_at(end);
            self.take_pieces(piece, "its line break is damaged");
            // The damaged line break itself.
            rest = &after[1..];
        }
        self.is_torn = !rest.is_empty();
    }

    fn take(&mut self, bytes: &[u8], read: Result<Line, String>) {
        match read {
            Ok(Line::Header(header)) => self.header = Some(*header),
            Ok(Line::Row(row)) => self.rows.push(*row),
            Err(why) => {
                let after = self.rows.last().map_or(0, |row| row.entry);
                self.damaged.push(DamagedLine { bytes: bytes.to_vec(), after, why });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::line::{HeaderFacts, write_row};
    use super::*;
    use crate::record::CallStart;
    use crate::record::tests::started;

    fn header() -> Header {
        Header::new(HeaderFacts {
            chain: "c",
            key: "sha256:k".to_owned(),
            opened_at: "2026-01-01T00:00:00Z".to_owned(),
            pid: 7,
            preceding: None,
        })
    }

    /// Returns a journal with a header and so many entries.
    fn journal(entries: i64) -> Vec<u8> {
        let mut text = Vec::new();
        header().write(&mut text);
        for entry in 1..=entries {
            let call = Some(Arc::new(CallStart { id: format!("call-{entry}"), ..started() }));
            let (ended, start, link, promise) = (None, None, None, None);
            write_row(&mut text, &JournalRow { entry, call, ended, start, link, promise });
        }
        text
    }

    fn entries(scan: &Scan) -> Vec<i64> {
        scan.rows.iter().map(|row| row.entry).collect()
    }

    #[test]
    fn an_intact_journal_is_read_whole() {
        let scan = Scan::of(&journal(3));
        assert_eq!(scan.header, Some(header()));
        assert_eq!(entries(&scan), [1, 2, 3]);
        assert!(scan.damaged.is_empty() && !scan.is_torn && scan.lost_after(0).is_empty());
        assert!(Scan::of(b"").rows.is_empty());
    }

    #[test]
    fn any_flipped_bit_costs_at_most_its_own_line() {
        let text = journal(3);
        let starts: Vec<usize> =
            text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut flipped = text.clone();
                flipped[at] ^= 1 << bit;
                let scan = Scan::of(&flipped);
                let line = starts.iter().filter(|end| **end < at).count();
                let is_break = text[at] == b'\n';
                let kept: Vec<i64> =
                    (1..=3).filter(|entry| is_break || *entry != line as i64).collect();
                assert_eq!(entries(&scan), kept, "byte {at}, bit {bit}");
                let lost = scan.lost_after(0).count();
                assert_eq!(lost, 3 - kept.len() as u64, "byte {at}, bit {bit}");
                // All of them were filed, or none is missing.
                assert!(scan.lost_after(3).spans.len() <= lost as usize);
            }
        }
    }

    #[test]
    fn an_incomplete_last_line_is_not_damage() {
        let text = journal(2);
        let line =
            text.len() - 1 - text[..text.len() - 1].iter().rposition(|&b| b == b'\n').unwrap();
        for cut in 1..=line {
            let scan = Scan::of(&text[..text.len() - cut]);
            assert_eq!(entries(&scan), [1], "cut {cut}");
            assert!(scan.damaged.is_empty() && scan.lost_after(0).is_empty());
            assert_eq!(scan.is_torn, cut < line);
        }
    }

    #[test]
    fn entries_that_the_tables_should_have_are_missing_too() {
        let mut scan = Scan::of(&journal(5));
        scan.rows.drain(1..3);
        assert_eq!(scan.lost_after(0).spans, [(2, 3)]);
        assert_eq!(scan.lost_after(2).spans, [(3, 3)]);
        assert!(scan.lost_after(3).is_empty());
        assert_eq!(scan.lost_up_to(Some(7), 2).spans, [(3, 3), (6, 7)]);
        assert_eq!(scan.lost_up_to(Some(7), 6).spans, [(7, 7)]);
        assert!(scan.lost_up_to(Some(5), 3).is_empty() && scan.lost_up_to(None, 3).is_empty());
        scan.rows.drain(0..1);
        assert_eq!((scan.lost_after(0).spans, scan.lost_after(9).count()), (vec![(1, 3)], 0));
    }

    #[test]
    fn a_line_without_a_checksum_is_damage() {
        let mut text = journal(2);
        let end = text.len() - 1;
        text.splice(end..end, *b"\n{\"entry\":3}");
        let scan = Scan::of(&text);
        assert_eq!((entries(&scan), scan.damaged.len()), (vec![1, 2], 1));
        assert_eq!(scan.lost_after(0).spans, [(3, 3)]);
        let scan = Scan::of(b"nothing\nthat was written\n");
        assert_eq!((scan.damaged.len(), scan.lost_after(0).count()), (2, 1));
    }
}
