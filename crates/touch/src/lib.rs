//! The content of a call's record: the resources it touched, its risk, redaction of secrets, other
//! records of the same call, and contention with other agents. Receipts have their own crate.

pub mod contention;
pub mod frame;
pub mod hook;
pub mod lineage;
pub mod sighting;
pub mod target;
pub mod taxonomy;
