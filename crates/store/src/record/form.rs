//! The form in which an entry goes to another process.

use serde::{Deserialize, Serialize};

use super::{CallEnd, CallStart, Entry};

/// An entry with its kept texts, which the serialized form of a call leaves out.
#[derive(Serialize, Deserialize)]
pub struct EntryForm {
    started: Option<Box<CallStart>>,
    arguments: Option<String>,
    ended: Option<Box<CallEnd>>,
    response: Option<String>,
}

impl From<Entry> for EntryForm {
    fn from(entry: Entry) -> EntryForm {
        let (mut started, mut ended) = match entry {
            Entry::Started(start) => (Some(start), None),
            Entry::Ended(end) => (None, Some(end)),
            Entry::Whole(start, end) => (Some(start), Some(end)),
        };
        let arguments = started.as_mut().and_then(|start| start.arguments.kept.take());
        let response = ended.as_mut().and_then(|end| end.response.kept.take());
        EntryForm { started, arguments, ended, response }
    }
}

impl EntryForm {
    /// Returns the entry; none if the form is empty.
    pub fn entry(self) -> Option<Entry> {
        let EntryForm { started, arguments, ended, response } = self;
        let started = started.map(|mut start| {
            start.arguments.kept = arguments;
            start
        });
        let ended = ended.map(|mut end| {
            end.response.kept = response;
            end
        });
        match (started, ended) {
            (Some(start), Some(end)) => Some(Entry::Whole(start, end)),
            (Some(start), None) => Some(Entry::Started(start)),
            (None, Some(end)) => Some(Entry::Ended(end)),
            (None, None) => None,
        }
    }
}
