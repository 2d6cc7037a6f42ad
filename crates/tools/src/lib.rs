//! Tools that come with the program, each group a `ToolProvider`. Whether a call may run is decided
//! elsewhere.

pub mod builtin;
