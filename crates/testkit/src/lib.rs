//! What tests are made of: a scripted MCP server, a plain MCP client, a scripted model. Development only.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

pub mod client;
mod listing;
pub mod model;
pub mod script;
