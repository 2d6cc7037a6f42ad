//! Touches of resources, and the kinds of contention between two of them.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Doing {
    Read,
    Write,
}

/// Ordered from worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentionKind {
    /// One agent read, another wrote, and the first then wrote without reading again.
    StaleRead,
    WriteWrite,
    ReadWrite,
    /// Not contention; shown only on request.
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

/// An agent's number, assigned to its name by [`Contention::agent`](super::Contention::agent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentNumber(pub(super) u32);

/// One agent's touch of the current resource. `R` identifies the record: by number while touches
/// are read, by id when the graph is published.
#[derive(Clone, Copy, Debug)]
pub struct Touch<R> {
    pub agent: AgentNumber,
    pub doing: Doing,
    pub at_us: i64,
    pub record: R,
}
