//! Tools that come with the program or are started by it, each group a `ToolProvider`. The decision
//! whether a call may run is made elsewhere.

pub mod builtin;
pub mod plugin;
