//! What each command does.

pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod mcp;
pub(crate) mod tools;
pub(crate) mod upstream;
