//! Tools that come with the program or are started by it, each group a `ToolProvider`. Whether a call
//! may run is decided elsewhere.

pub mod builtin;
pub mod plugin;
