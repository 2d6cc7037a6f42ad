//! Upkeep: retention, and the export of old chains. The writer does it between other work, in small
//! steps.

pub(crate) mod clock;
pub(crate) mod deletion;
pub(crate) mod expiry;
pub(crate) mod meter;
pub(crate) mod names;
pub(crate) mod pace;
pub(crate) mod plan;
pub(crate) mod retention;
pub(crate) mod rules;
pub(crate) mod shares;
pub(crate) mod stated;
pub(crate) mod tally;
