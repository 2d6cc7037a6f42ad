//! Tests of readers on ledgers whose every row is known.

mod contention;
mod filters;
mod pages;
mod plans;
mod receipts;
mod rig;
mod summary;
