//! The built-in tools through their public interface, on real folders.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

#[path = "builtin/bash.rs"]
mod bash;
#[path = "builtin/files.rs"]
mod files;
#[path = "builtin/guard.rs"]
mod guard;
#[path = "builtin/rig.rs"]
mod rig;
#[path = "builtin/search.rs"]
mod search;
