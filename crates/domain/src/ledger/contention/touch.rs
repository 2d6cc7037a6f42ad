//! Touches of resources, and the kinds of contention that two of them can be.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Doing {
    Read,
    Write,
}

/// The worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentionKind {
    /// One read, another wrote, and the first wrote on without looking again.
    StaleRead,
    WriteWrite,
    ReadWrite,
    /// No contention; shown only to who asks for it.
    ReadRead,
}

impl ContentionKind {
    pub const ALL: [ContentionKind; 4] = [
        ContentionKind::StaleRead,
        ContentionKind::WriteWrite,
        ContentionKind::ReadWrite,
        ContentionKind::ReadRead,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ContentionKind::StaleRead => "stale-read",
            ContentionKind::WriteWrite => "write-write",
            ContentionKind::ReadWrite => "read-write",
            ContentionKind::ReadRead => "read-read",
        }
    }

    pub fn parse(text: &str) -> Option<ContentionKind> {
        ContentionKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    pub(super) fn of(first: Doing, second: Doing) -> ContentionKind {
        match (first, second) {
            (Doing::Write, Doing::Write) => ContentionKind::WriteWrite,
            (Doing::Read, Doing::Write) | (Doing::Write, Doing::Read) => ContentionKind::ReadWrite,
            (Doing::Read, Doing::Read) => ContentionKind::ReadRead,
        }
    }
}

/// An agent by the number that [`Contention::agent`] gave its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentNumber(pub(super) u32);

/// One agent's touch of the present resource. `R` names the record: its number while touches are
/// read, its id when the graph is published.
#[derive(Clone, Copy, Debug)]
pub struct Touch<R> {
    pub agent: AgentNumber,
    pub doing: Doing,
    pub at_us: i64,
    pub record: R,
}
