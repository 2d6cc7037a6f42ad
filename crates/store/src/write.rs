//! Writing: the path of an entry from `Store::append` to the disk. An entry lies in the inbox until
//! the one writer commits it to the journal as a draft that has become a row; the signer signs the
//! row's receipt, and the clerk files the row into the tables that people query.

mod backlog;
mod chain;
pub(crate) mod checkpoint;
mod columns;
mod commit;
mod compose;
mod draft;
mod drafts;
mod filing;
pub(crate) mod health;
pub(crate) mod inbox;
mod journal;
mod link;
pub(crate) mod message;
pub(crate) mod recovery;
mod row;
pub(crate) mod schedule;
pub(crate) mod signer;
mod waiters;
pub(crate) mod writer;

pub use commit::{Commit, Safety};
pub use health::LedgerHealth;
