//! The content of a call's record: the resource it touched, its risk, redaction of secrets, and
//! contention with other agents. Receipts have their own crate.

pub mod contention;
pub mod frame;
pub mod hook;
pub mod redaction;
pub mod target;
pub mod taxonomy;
