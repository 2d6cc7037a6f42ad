//! Tests of receipts through the public API: the vectors of other implementations, our receipts
//! against the schema, and altered chains.

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
