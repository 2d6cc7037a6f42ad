//! Touches of resources, and the kinds of contention between two of them.

use serde::Serialize;

use crate::targets::Access;

/// Ordered from worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentionKind {
    /// One agent read, another wrote, and the first then wrote without reading again.
    StaleRead,
    WriteWrite,
    ReadWrite,
    /// The access of one or both is unknown, so that there may have been a write.
    Unknown,
    /// Not contention; shown only on request.
    ReadRead,
}

impl ContentionKind {
    pub const ALL: [ContentionKind; 5] = [
        ContentionKind::StaleRead,
        ContentionKind::WriteWrite,
        ContentionKind::ReadWrite,
        ContentionKind::Unknown,
        ContentionKind::ReadRead,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ContentionKind::StaleRead => "stale-read",
            ContentionKind::WriteWrite => "write-write",
            ContentionKind::ReadWrite => "read-write",
            ContentionKind::Unknown => "unknown",
            ContentionKind::ReadRead => "read-read",
        }
    }

    /// Returns what the agents did, in plain words.
    pub fn words(self) -> &'static str {
        match self {
            ContentionKind::StaleRead => "wrote after an outdated read",
            ContentionKind::WriteWrite => "both wrote",
            ContentionKind::ReadWrite => "one read, the other wrote",
            ContentionKind::Unknown => "one or both may have written",
            ContentionKind::ReadRead => "both only read",
        }
    }

    pub fn parse(text: &str) -> Option<ContentionKind> {
        ContentionKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns the kind of two touches, whichever came first.
    pub fn of(first: Access, second: Access) -> ContentionKind {
        match (first, second) {
            (Access::Write, Access::Write) => ContentionKind::WriteWrite,
            (Access::Read, Access::Write) | (Access::Write, Access::Read) => {
                ContentionKind::ReadWrite
            }
            (Access::Read, Access::Read) => ContentionKind::ReadRead,
            (Access::Unknown, _) | (_, Access::Unknown) => ContentionKind::Unknown,
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
    pub access: Access,
    pub at_us: i64,
    pub record: R,
}
