//! The faults and notes of a reading, in text order and limited in number.

use std::ops::Range;

use super::{ConfigFault, Faults, Note};
use text::document::{Location, Mark, Member, Mismatch, Shortlist};

#[derive(Default)]
pub(super) struct Report {
    faults: Shortlist<ConfigFault>,
    notes: Shortlist<Note>,
    /// Parts of the text without effect; other notes on them would mislead.
    ignored: Vec<Range<Mark>>,
}

impl Report {
    pub(super) fn fault(&mut self, location: &Location, message: impl Into<String>) {
        self.faults.push(ConfigFault { location: location.clone(), message: message.into() });
    }

    /// Returns the value, or reports a fault if it has another type.
    pub(super) fn take<T>(&mut self, value: Result<T, Mismatch>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(Mismatch { location, message }) => {
                self.faults.push(ConfigFault { location, message });
                None
            }
        }
    }

    /// Reports whether further faults are only counted.
    pub(super) fn is_full(&self) -> bool {
        self.faults.is_full()
    }

    /// Reports whether a note at this location would be kept.
    pub(super) fn keeps_note(&self, location: &Location) -> bool {
        let is_ignored = self.ignored.iter().any(|part| part.contains(&location.mark));
        !is_ignored && !self.notes.is_full()
    }

    pub(super) fn note(&mut self, location: &Location, message: impl Into<String>) {
        if self.keeps_note(location) {
            self.notes.push(Note { location: location.clone(), message: message.into() });
        }
    }

    /// Notes that a member has no effect, and drops every later note on it. Its faults still count.
    pub(super) fn ignore(&mut self, entry: &Member<'_>, message: impl Into<String>) {
        self.note(&entry.key, message);
        self.ignored.push(entry.key.mark..entry.node.tree.end);
    }

    /// Returns the notes, unless there are faults.
    pub(super) fn finish(self) -> Result<Vec<Note>, Faults> {
        let Shortlist { mut list, left_out } = self.faults;
        if list.is_empty() {
            let mut notes = self.notes.list;
            notes.sort_by_key(|note| note.location.mark);
            return Ok(notes);
        }
        list.sort_by_key(|fault| fault.location.mark);
        Err(Faults { list, left_out })
    }
}
