//! Upkeep: retention, and the export of old chains. The writer does it between other work, in small
//! steps.

pub(crate) mod expiry;
pub(crate) mod retention;
