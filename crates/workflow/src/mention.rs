//! References between the parts of a workflow: target states, and the references in templates and
//! conditions.

use std::rc::Rc;

use super::reference::Reference;
use super::source::Source;
use text::document::{Location, Mark};

#[derive(Default)]
pub(super) struct Mentions {
    pub(super) references: Vec<ReferenceMention>,
    pub(super) gotos: Vec<Goto>,
}

/// A state that another state leads to.
pub(super) struct Goto {
    pub(super) state: String,
    pub(super) location: Location,
}

/// A reference in a text. Its exact position is computed only when it is reported: that requires
/// scanning its line, which may hold many references.
pub(super) struct ReferenceMention {
    pub(super) reference: Reference,
    pub(super) by: Mentioner,
    pub(super) path: String,
    /// The position of the text that contains it.
    pub(super) start: Mark,
    pub(super) text: Rc<str>,
    /// The byte offset in the text.
    pub(super) at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mentioner {
    Template,
    Condition,
    /// A condition on its own, which must be a boolean.
    WholeCondition,
}

impl ReferenceMention {
    pub(super) fn location(&self, source: &Source<'_>) -> Location {
        let mark = source.inside(self.start, &self.text, self.at);
        Location { path: self.path.clone(), mark }
    }
}
