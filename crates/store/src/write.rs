//! The path of an entry from `Store::append` to the disk. An entry waits in the inbox until the one
//! writer turns it into a draft and commits that to the journal as a row; the signer signs the
//! row's receipt, and the clerk files the row into the queryable tables.

pub(crate) mod anchor;
mod backlog;
mod chain;
pub(crate) mod checkpoint_file;
mod columns;
mod commit;
mod compose;
mod draft;
mod drafts;
mod filing;
pub(crate) mod heads;
pub(crate) mod health;
pub(crate) mod inbox;
pub(crate) mod journal;
mod link;
pub(crate) mod log_copy;
pub(crate) mod message;
pub(crate) mod recovery;
mod row;
pub(crate) mod schedule;
pub(crate) mod signer;
mod waiters;
pub(crate) mod writer;

pub use commit::{Commit, Safety};
pub use health::{AnchorHealth, LedgerHealth};
