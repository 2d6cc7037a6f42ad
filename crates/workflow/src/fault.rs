//! Faults of a workflow, which reject it, and warnings, which do not; collected in text order and
//! limited in number.

use std::fmt;

use serde::{Serialize, Serializer};

use domain::code::Code;
use text::document::{Location, Mark, Mismatch, Shortlist};

/// A fault at one position of the text, as `validate` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkflowFault {
    #[serde(serialize_with = "code_text")]
    pub code: Code,
    pub message: String,
    /// For example `states.deploy.mcp_proxy.plugin_tools[0].plugin`; empty for the text as a whole.
    pub path: String,
    /// In characters from 1. Line 0 is not in the text, as for an undeclared input.
    pub line: u32,
    pub column: u32,
}

impl WorkflowFault {
    pub(super) fn new(
        location: &Location,
        code: Code,
        message: impl Into<String>,
    ) -> WorkflowFault {
        let Location { path, mark: Mark { line, column } } = location.clone();
        WorkflowFault { code, message: message.into(), path, line, column }
    }

    fn mark(&self) -> Mark {
        Mark { line: self.line, column: self.column }
    }
}

impl fmt::Display for WorkflowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = Location { path: self.path.clone(), mark: self.mark() };
        write!(f, "{location}{}", self.message)
    }
}

/// The faults and warnings of a reading.
pub(super) struct Remarks {
    pub(super) errors: Vec<WorkflowFault>,
    pub(super) warnings: Vec<WorkflowFault>,
}

#[derive(Default)]
pub(super) struct Report {
    errors: Shortlist<WorkflowFault>,
    warnings: Shortlist<WorkflowFault>,
}

impl Report {
    pub(super) fn error(&mut self, location: &Location, code: Code, message: impl Into<String>) {
        self.errors.push(WorkflowFault::new(location, code, message));
    }

    pub(super) fn warn(&mut self, location: &Location, code: Code, message: impl Into<String>) {
        self.warnings.push(WorkflowFault::new(location, code, message));
    }

    /// Returns the value, or reports an error if it has another type.
    pub(super) fn take<T>(&mut self, value: Result<T, Mismatch>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(Mismatch { location, message }) => {
                self.error(&location, Code::WorkflowWrongType, message);
                None
            }
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        !self.errors.list.is_empty()
    }

    /// Reports whether further errors are only counted, so that expensive messages can be skipped.
    pub(super) fn is_full(&self) -> bool {
        self.errors.is_full()
    }

    pub(super) fn finish(self) -> Remarks {
        let (mut errors, mut warnings) = (self.errors.list, self.warnings.list);
        errors.sort_by_key(WorkflowFault::mark);
        warnings.sort_by_key(WorkflowFault::mark);
        if self.errors.left_out > 0 {
            let message = format!("and {} more errors", self.errors.left_out);
            errors.push(WorkflowFault::new(&Location::default(), Code::WorkflowSyntax, message));
        }
        Remarks { errors, warnings }
    }
}

fn code_text<S: Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}
