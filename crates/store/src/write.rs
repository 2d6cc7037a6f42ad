//! The path of an entry from `Store::append` to the disk. An entry waits in the inbox until the one
//! writer turns it into a draft and commits that to the journal as a row; the signer signs the
//! row's receipt, and the filer files the row into the queryable tables.

pub(crate) mod adoption;
pub(crate) mod anchor;
mod backlog;
pub(crate) mod chain;
pub(crate) mod chain_row;
pub(crate) mod checkpoint_file;
mod commit;
pub(crate) mod compose;
mod draft;
mod drafts;
pub(crate) mod filing;
pub(crate) mod heads;
pub(crate) mod health;
pub(crate) mod inbox;
mod inserting;
pub(crate) mod joining;
pub(crate) mod journal;
pub(crate) mod journal_state;
pub(crate) mod link;
pub(crate) mod log_copy;
mod meeting_log;
pub(crate) mod message;
mod missing;
mod pending;
pub(crate) mod recovery;
pub(crate) mod repair;
pub(crate) mod row;
pub(crate) mod schedule;
pub(crate) mod signer;
pub(crate) mod touching;
mod waiters;
pub(crate) mod witnessed;
pub(crate) mod writer;

pub use commit::{Commit, Safety};
pub use health::{AnchorHealth, LedgerHealth};
