//! The origin of an event: its sender, as the operating system identifies it, and the channel it
//! arrived through.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use receipt::Hash;
use tokio::net::unix::UCred;
use touch::lineage::Lineage;
use uuid::Uuid;

use super::process;
use crate::limits::SPOOL_NOTES_MAX;

/// The sender of an event, as the operating system identifies it.
#[derive(Clone, Debug)]
pub struct Sender {
    pub pid: Option<i32>,
    pub uid: u32,
    pub gid: u32,
    /// Its processes; unknown where the system does not say, or if it has ended already.
    lineage: Option<Arc<Lineage>>,
}

impl Sender {
    /// Reads what the system knows about a sender that is still connected. Blocks.
    pub(super) fn of(credentials: &UCred) -> Sender {
        let pid = credentials.pid().filter(|pid| *pid > 0);
        Sender {
            pid,
            uid: credentials.uid(),
            gid: credentials.gid(),
            lineage: pid.and_then(process::lineage).map(Arc::new),
        }
    }

    pub(super) fn lineage(&self) -> Option<&Lineage> {
        self.lineage.as_deref()
    }

    /// Returns the id of the agent's process, or of the sender's if that is all there is.
    pub(super) fn agent_pid(&self) -> Option<i32> {
        let agent = self.lineage.as_ref().and_then(|lineage| lineage.agent());
        agent.map(|agent| agent.pid).or(self.pid)
    }
}

/// An event's id, sender and channel.
#[derive(Clone, Debug)]
pub(super) struct EventOrigin {
    pub(super) id: Uuid,
    pub(super) sender: Option<Sender>,
    pub(super) arrival: Arrival,
    /// The session and the agent that the event names are its sender's, or not known to be
    /// another's.
    pub(super) is_admitted: bool,
}

/// The channel through which an event arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Socket,
    /// Written to the spool by a hook.
    Spool,
}

/// A message of a hook to the events socket, just before its event is in the spool: the event's id
/// and the hash of its text. The gate sees which process sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoolNote {
    id: Uuid,
    hash: Hash,
}

impl SpoolNote {
    pub fn of(id: Uuid, event: &[u8]) -> SpoolNote {
        SpoolNote { id, hash: Hash::of(event) }
    }

    /// Returns the note as the socket carries it, with its length in front.
    pub fn frame(&self) -> Vec<u8> {
        let text = format!("spooled {} {}", self.id, self.hash);
        let length = u32::try_from(text.len()).expect("a note is short");
        [&length.to_be_bytes(), text.as_bytes()].concat()
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<SpoolNote> {
        let note = str::from_utf8(bytes).ok()?.strip_prefix("spooled ")?;
        let (id, hash) = note.split_once(' ')?;
        Some(SpoolNote { id: id.parse().ok()?, hash: hash.parse().ok()? })
    }
}

/// The senders of events that are in the spool, or will be in a moment.
#[derive(Default)]
pub(super) struct SpoolSenders {
    by_id: HashMap<Uuid, (SpoolNote, Sender)>,
    /// In the order of their arrival, with those that were taken.
    ids: VecDeque<Uuid>,
}

impl SpoolSenders {
    /// Keeps the sender of a note. The first note about an event counts.
    pub(super) fn note(&mut self, note: SpoolNote, sender: Sender) {
        if self.by_id.contains_key(&note.id) {
            return;
        }
        while self.ids.len() >= SPOOL_NOTES_MAX {
            let oldest = self.ids.pop_front();
            oldest.and_then(|oldest| self.by_id.remove(&oldest));
        }
        self.ids.push_back(note.id);
        self.by_id.insert(note.id, (note, sender));
    }

    /// Removes and returns the sender of an event with this text.
    pub(super) fn take(&mut self, event: SpoolNote) -> Option<Sender> {
        let (note, sender) = self.by_id.remove(&event.id)?;
        (note == event).then_some(sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(pid: i32) -> Sender {
        Sender { pid: Some(pid), uid: 1, gid: 1, lineage: None }
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let note = SpoolNote::of(Uuid::now_v7(), b"{}");
        let frame = note.frame();
        let (length, text) = frame.split_at(4);
        assert_eq!(usize::try_from(u32::from_be_bytes(length.try_into().unwrap())), Ok(text.len()));
        assert_eq!(SpoolNote::parse(text), Some(note));
        for wrong in [&b""[..], b"{}", b"spooled", b"spooled x y", b"spooled \xff"] {
            assert_eq!(SpoolNote::parse(wrong), None);
        }
    }

    #[test]
    fn a_sender_is_that_of_the_first_note_and_of_this_text() {
        let (mut senders, id) = (SpoolSenders::default(), Uuid::now_v7());
        senders.note(SpoolNote::of(id, b"mine"), sender(1));
        senders.note(SpoolNote::of(id, b"forged"), sender(2));
        let found = senders.take(SpoolNote::of(id, b"mine")).and_then(|sender| sender.pid);
        assert_eq!(found, Some(1));
        assert!(senders.take(SpoolNote::of(id, b"mine")).is_none(), "it is taken once");
        senders.note(SpoolNote::of(id, b"mine"), sender(1));
        assert!(senders.take(SpoolNote::of(id, b"exchanged")).is_none());
        for _ in 0..2 * SPOOL_NOTES_MAX {
            senders.note(SpoolNote::of(Uuid::now_v7(), b""), sender(3));
        }
        assert_eq!((senders.ids.len(), senders.by_id.len()), (SPOOL_NOTES_MAX, SPOOL_NOTES_MAX));
    }
}
