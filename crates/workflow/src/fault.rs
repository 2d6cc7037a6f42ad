//! What is told of a workflow: faults, which refuse it, and warnings, which do not; gathered
//! in the order of the text and bounded.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Workflow;
use domain::code::Code;

/// Nobody reads more; a file of 1 MiB could hold half a million.
const FAULTS_MAX: usize = 1_000;

/// Something wrong at one place of the text, in the form that `validate` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    #[serde(serialize_with = "code_text")]
    pub code: Code,
    pub message: String,
    /// As `states.deploy.mcp_proxy.plugin_tools[0].plugin`; empty for the text as a whole.
    pub path: String,
    /// In characters from 1; line 0 is no place of the text, as of an input that is not declared.
    pub line: u32,
    pub column: u32,
}

/// What a reading came to.
#[derive(Debug)]
pub struct Read {
    /// Only where there are no errors.
    pub workflow: Option<Workflow>,
    /// The workflow's name, as far as it could be read.
    pub name: Option<String>,
    pub errors: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

impl Read {
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// The answer of `validate`: `{valid, workflow, errors, warnings}`.
    pub fn json(&self) -> Value {
        json!({
            "valid": self.is_valid(),
            "workflow": self.name,
            "errors": self.errors,
            "warnings": self.warnings,
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// A line and column of the text, and the path of what stands there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Place {
    pub(super) fn fault(&self, code: Code, message: impl Into<String>) -> Fault {
        let Place { path, line, column } = self.clone();
        Fault { code, message: message.into(), path, line, column }
    }
}

#[derive(Default)]
pub(super) struct Report {
    errors: Vec<Fault>,
    warnings: Vec<Fault>,
    errors_left_out: usize,
}

impl Report {
    pub(super) fn error(&mut self, place: &Place, code: Code, message: impl Into<String>) {
        self.add(place.fault(code, message));
    }

    pub(super) fn add(&mut self, fault: Fault) {
        if self.is_full() {
            self.errors_left_out += 1;
        } else {
            self.errors.push(fault);
        }
    }

    pub(super) fn warn(&mut self, place: &Place, code: Code, message: impl Into<String>) {
        if self.warnings.len() < FAULTS_MAX {
            self.warnings.push(place.fault(code, message));
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Whether further errors are only counted: what is dear to say of them can be left out.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= FAULTS_MAX
    }

    pub(super) fn finish(mut self) -> (Vec<Fault>, Vec<Fault>) {
        in_order(&mut self.errors);
        in_order(&mut self.warnings);
        if self.errors_left_out > 0 {
            let message = format!("and {} more errors", self.errors_left_out);
            self.errors.push(Place::default().fault(Code::WorkflowSyntax, message));
        }
        (self.errors, self.warnings)
    }
}

fn in_order(faults: &mut [Fault]) {
    faults.sort_by_key(|fault| (fault.line, fault.column));
}

fn code_text<S: Serializer>(code: &Code, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}
