//! The resources that calls touch: how they are named, what agents report of them from outside, and
//! where agents meet on them.

mod class;
pub mod container;
pub mod contention;
pub mod frame;
pub mod hook;
pub mod lineage;
pub mod targets;

pub use class::{Class, Hints};
