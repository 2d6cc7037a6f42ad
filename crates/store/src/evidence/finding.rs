//! The statements that follow from the evidence, in the words that a start, a check, a repair and the
//! status use.

use std::path::Path;

use crate::database::FILE;
use crate::error::StoreError;

/// A statement about a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) kind: FindingKind,
    pub(crate) words: String,
}

/// The consequence of a finding, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FindingKind {
    /// The home was used and has no database: no gate starts as if nothing had been recorded.
    DatabaseLost,
    /// The database is older than the home's other files: no gate starts.
    DatabaseOlder,
    /// The home is older than its anchor: no gate starts.
    HomeOlder,
    /// A fault that stops no start, and that operators must know of while the gate runs.
    Alarm,
    /// A fault that stops no start. What follows from it is told when it is recovered.
    Fault,
    /// No fault, but operators must know of it while the gate runs.
    Notice,
    /// No fault.
    Note,
}

impl FindingKind {
    pub(crate) fn says(self, words: impl Into<String>) -> Finding {
        Finding { kind: self, words: words.into() }
    }

    pub(crate) fn is_fault(self) -> bool {
        self <= FindingKind::Fault
    }

    /// Reports whether a start tells it to operators.
    pub(crate) fn is_told(self) -> bool {
        matches!(self, FindingKind::Alarm | FindingKind::Notice)
    }
}

/// Returns the words of some findings.
pub(crate) fn words_of(findings: &[Finding], wanted: impl Fn(FindingKind) -> bool) -> Vec<String> {
    let wanted = findings.iter().filter(|finding| wanted(finding.kind));
    wanted.map(|finding| finding.words.clone()).collect()
}

/// Refuses to start in a home whose database is lost, or older than something else.
pub(crate) fn refuse(findings: &[Finding], home: &Path) -> Result<(), StoreError> {
    let Some(worst) = findings.iter().map(|finding| finding.kind).min() else { return Ok(()) };
    let words = words_of(findings, |kind| kind == worst).join("; ");
    let older = |newer| {
        let file = home.join(FILE);
        format!("the ledger '{}' is older than {newer}: {words}", file.display())
    };
    Err(StoreError::Incomplete(match worst {
        FindingKind::DatabaseLost => words,
        FindingKind::DatabaseOlder => older("the home's other files"),
        FindingKind::HomeOlder => older("its anchor"),
        FindingKind::Alarm | FindingKind::Fault | FindingKind::Notice | FindingKind::Note => {
            return Ok(());
        }
    }))
}
