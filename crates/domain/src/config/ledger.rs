//! `ledger`: what is recorded about calls, and for how long.

use serde_json::json;

use super::declare::section;
use super::kind::{Choice, Count, CountOrZero, Kind, Optional, Shape, TEXTS};
use super::secret;
use crate::choice;
use text::document::Content;

/// A hundred years.
const DAYS_MAX: u32 = 36_500;

section! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Ledger at "ledger" {
        Restart durability: Durability = Durability::Process, Choice,
            "What a record survives: a crash of the process, or a power loss too.";
        Hot payloads: Payloads = Payloads::Redacted, Choice,
            "How arguments and results are stored.";
        Restart on_failure: OnFailure = OnFailure::QueueReads, Choice,
            "While the ledger cannot be written, queue reads and refuse the rest, or refuse all.";
        Hot activity_retention_days: u32 = 90, Count(1..=DAYS_MAX),
            "How many days of activity to keep.";
        Hot max_records: u32 = 1_000_000, Count(1_000..=u32::MAX),
            "How many activity records to keep.";
        Hot max_size_mb: u32 = 1024, Count(16..=u32::MAX),
            "How many megabytes of activity to keep.";
        Hot receipt_retention_days: u32 = 0, CountOrZero(1..=DAYS_MAX),
            "How many days to keep receipts; 0 keeps them forever.";
        Restart anchor: Option<AnchorConfig> = None, Optional(ANCHOR),
            "Where each checkpoint is also put: a file to append to, or a command with it on stdin.";
    }
}

choice! {
    /// The failure that a record survives once its call has been answered.
    Durability {
        /// The end of the process.
        Process = "process",
        /// A loss of power.
        Disk = "disk",
    }
}

choice! {
    /// The stored form of arguments and results.
    Payloads { Redacted = "redacted", None = "none", Full = "full" }
}

choice! {
    /// The handling of calls while the ledger cannot be written.
    OnFailure {
        /// Reads are served as long as a limited queue has room; other calls are rejected.
        QueueReads = "queue_reads",
        Refuse = "refuse",
    }
}

/// The receiver of checkpoints outside the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorConfig {
    /// A file to append to; relative to the home.
    File(String),
    /// A program and its arguments.
    Command(Vec<String>),
}

const ANCHOR: Shape<AnchorConfig> = Shape {
    words: "string (file) or list of strings (command)",
    read: |node, report| {
        let found = match &node.tree.content {
            Content::List(_) => AnchorConfig::Command(TEXTS.read(node, report)?),
            _ => AnchorConfig::File(report.take(node.text())?.to_owned()),
        };
        let is_empty = match &found {
            AnchorConfig::File(path) => path.is_empty(),
            AnchorConfig::Command(words) => words.first().is_none_or(String::is_empty),
        };
        if is_empty {
            report.fault(&node.location, "expected a file, or a command and its arguments");
        }
        (!is_empty).then_some(found)
    },
    show: |value| {
        Some(match value {
            AnchorConfig::File(path) => json!(path),
            AnchorConfig::Command(words) => {
                json!(secret::words(words.iter().map(String::as_str)))
            }
        })
    },
};
