//! What a reading finds, gathered by place and bounded.

use std::ops::Range;

use jsonc_parser::common::Ranged;

use super::super::source::Source;
use super::super::{Fault, Faults, Note};
use super::node::{Entry, Place};

/// Nobody reads more; a file of 4 MiB could hold two million.
const FINDINGS_MAX: usize = 1_000;

#[derive(Default)]
pub(super) struct Report {
    faults: Vec<(Place, String)>,
    faults_left_out: usize,
    notes: Vec<(Place, String)>,
    /// Parts of the text that have no effect: what else is noted there would mislead.
    ignored: Vec<Range<usize>>,
}

impl Report {
    pub(super) fn fault(&mut self, place: &Place, message: impl Into<String>) {
        if self.is_full() {
            self.faults_left_out += 1;
        } else {
            self.faults.push((place.clone(), message.into()));
        }
    }

    /// Whether further faults are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.faults.len() == FINDINGS_MAX
    }

    /// Whether a note on this place would be kept.
    pub(super) fn hears(&self, place: &Place) -> bool {
        let has_room = self.notes.len() < FINDINGS_MAX;
        has_room && !self.ignored.iter().any(|part| part.contains(&place.at))
    }

    pub(super) fn note(&mut self, place: &Place, message: impl Into<String>) {
        if self.hears(place) {
            self.notes.push((place.clone(), message.into()));
        }
    }

    /// Notes that a member has no effect; what is noted of it from then on is left out. Its faults
    /// still count.
    pub(super) fn ignore(&mut self, entry: &Entry<'_>, message: impl Into<String>) {
        self.note(&entry.key, message);
        self.ignored.push(entry.key.at..entry.node.value.end());
    }

    /// The notes, unless there are faults.
    pub(super) fn finish(self, source: &Source<'_>) -> Result<Vec<Note>, Faults> {
        if self.faults.is_empty() {
            return Ok(in_order(self.notes).map(|finding| note(finding, source)).collect());
        }
        let list = in_order(self.faults).map(|finding| fault(finding, source)).collect();
        Err(Faults { list, left_out: self.faults_left_out })
    }
}

fn in_order(mut findings: Vec<(Place, String)>) -> impl Iterator<Item = (Place, String)> {
    findings.sort_by_key(|(place, _)| place.at);
    findings.into_iter()
}

fn fault((place, message): (Place, String), source: &Source<'_>) -> Fault {
    let (line, column) = source.position(place.at);
    Fault { path: place.path, line, column, message }
}

fn note((place, message): (Place, String), source: &Source<'_>) -> Note {
    let (line, column) = source.position(place.at);
    Note { path: place.path, line, column, message }
}
