//! Upkeep: what may be forgotten, and what leaves the ledger when it is old. The writer does it in
//! between, a little at a time.

pub(crate) mod expiry;
pub(crate) mod retention;
