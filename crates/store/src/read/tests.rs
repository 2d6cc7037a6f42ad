//! Tests of readers on ledgers whose every row is known.

mod contention;
mod filters;
mod names;
mod pages;
mod plans;
mod receipts;
mod rig;
mod summary;
