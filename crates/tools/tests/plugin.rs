//! Plugins through their public interface: real processes, found in real folders.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

#[path = "plugin/calls.rs"]
mod calls;
#[path = "plugin/faults.rs"]
mod faults;
#[path = "plugin/find.rs"]
mod find;
#[path = "plugin/foreign.rs"]
mod foreign;
#[path = "plugin/rig.rs"]
mod rig;
