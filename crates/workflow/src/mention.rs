//! What the parts of a workflow name in others: states to go to, and the references of templates
//! and conditions.

use std::rc::Rc;

use super::reference::Reference;
use super::source::Source;
use domain::document::{Location, Mark};

#[derive(Default)]
pub(super) struct Mentions {
    pub(super) references: Vec<ReferenceMention>,
    pub(super) gotos: Vec<Goto>,
}

/// A state that another goes to.
pub(super) struct Goto {
    pub(super) state: String,
    pub(super) location: Location,
}

/// A reference in a text. Its exact place is looked for only where there is something to say about
/// it: that takes a walk along its line, and there may be many on one.
pub(super) struct ReferenceMention {
    pub(super) reference: Reference,
    pub(super) by: Mentioner,
    pub(super) path: String,
    /// Of the text that it stands in.
    pub(super) start: Mark,
    pub(super) text: Rc<str>,
    /// The byte of the text.
    pub(super) at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mentioner {
    Template,
    Condition,
    /// A condition of its own, which must be true or false.
    WholeCondition,
}

impl ReferenceMention {
    pub(super) fn location(&self, source: &Source<'_>) -> Location {
        let mark = source.inside(self.start, &self.text, self.at);
        Location { path: self.path.clone(), mark }
    }
}
