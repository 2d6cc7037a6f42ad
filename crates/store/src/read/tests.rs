//! Readers against ledgers that are known row by row.

mod contention;
mod filters;
mod pages;
mod plans;
mod receipts;
mod rig;
mod summary;
