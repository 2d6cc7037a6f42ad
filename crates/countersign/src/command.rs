//! The implementation of each command.

pub(crate) mod activity;
pub(crate) mod call;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod contention;
mod decision;
pub(crate) mod demo;
mod export;
mod following;
pub(crate) mod hook;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod mcp_serve;
pub(crate) mod page;
pub(crate) mod plugin;
pub(crate) mod receipt;
mod review;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod targets;
pub(crate) mod token;
pub(crate) mod tools;
pub(crate) mod upstream;
pub(crate) mod validate;
pub(crate) mod wrap;
