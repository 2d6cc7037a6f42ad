//! A mapping of the file, whose members are looked up by name.

use text::document::{Location, Member, Node};

pub(super) struct Mapping<'a> {
    pub(super) location: Location,
    pub(super) entries: Vec<Member<'a>>,
}

impl<'a> Mapping<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&Node<'a>> {
        self.entry(name).map(|entry| &entry.node)
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Member<'a>> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Returns the members with names other than these.
    pub(super) fn other_than(&self, names: &[&str]) -> impl Iterator<Item = &Member<'a>> {
        self.entries.iter().filter(move |entry| !names.contains(&entry.name))
    }
}
