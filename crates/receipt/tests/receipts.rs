//! Receipts through their public door: the vectors of other implementations, what we
//! emit against the schema, and chains that somebody changed.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

#[path = "receipts/chain.rs"]
mod chain;
#[path = "receipts/disclosure.rs"]
mod disclosure;
#[path = "receipts/emitted.rs"]
mod emitted;
#[path = "receipts/sample.rs"]
mod sample;
#[path = "receipts/vectors.rs"]
mod vectors;
