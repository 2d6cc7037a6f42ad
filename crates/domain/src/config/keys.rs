//! The tables of keys. Members of an object are checked against them, and `docs/config.md` is
//! generated from them.

use std::fmt;

use super::ServerConfig;
use super::declare::Section;
use super::kind::Described;

pub(super) struct Table {
    /// The path of the object, with `<name>` for any name; empty for the whole file.
    pub(super) path: &'static str,
    pub(super) groups: &'static [&'static [Key]],
    /// Keys that other clients write, with their treatment.
    pub(super) foreign: &'static [&'static [ForeignKey]],
}

pub(super) type ForeignKey = (&'static str, KeyTreatment);

/// The treatment of a key that other clients write.
#[derive(Clone, Copy)]
pub(super) enum KeyTreatment {
    /// Means the same as keys of ours.
    ReadAs(&'static str),
    /// Has no effect, for this reason; a note says so.
    Ignored(&'static str),
}

pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) when: When,
    pub(super) found: Found,
    pub(super) kind: fn() -> Described,
    pub(super) meaning: &'static str,
}

/// The time at which a changed value takes effect.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum When {
    Hot,
    Reconnect,
    Restart,
}

/// The effect of a key in an untrusted file found in the folder.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Found {
    /// Changes what the file adds, not what is the user's own.
    Additions,
    /// Changes the user's own too: it can only narrow.
    Narrows,
    /// None, not even on what the file adds.
    Trusted,
}

/// Returns the keys of an entry of `mcpServers`, except those of other clients.
pub fn server_keys() -> impl Iterator<Item = &'static str> {
    ServerConfig::TABLE.keys().map(|key| key.name)
}

impl Table {
    pub(super) fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.groups.iter().copied().flatten()
    }

    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }

    pub(super) fn foreign(&self, name: &str) -> Option<KeyTreatment> {
        let mut foreign = self.foreign.iter().copied().flatten();
        foreign.find(|(key, _)| *key == name).map(|(_, treatment)| *treatment)
    }
}

impl fmt::Display for KeyTreatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyTreatment::ReadAs(ours) => write!(f, "read as {ours}"),
            KeyTreatment::Ignored(reason) => write!(f, "ignored: {reason}"),
        }
    }
}
