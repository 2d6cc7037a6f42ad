//! The ledger's receipts through their public door: the vectors of other implementations, what we
//! emit against the schema, and chains that somebody changed.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "ledger/chain.rs"]
mod chain;
#[path = "ledger/disclosure.rs"]
mod disclosure;
#[path = "ledger/emitted.rs"]
mod emitted;
#[path = "ledger/sample.rs"]
mod sample;
#[path = "ledger/vectors.rs"]
mod vectors;
