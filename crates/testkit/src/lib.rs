//! What tests are made of: a scripted MCP server and a plain MCP client. Development only.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

pub mod client;
mod listing;
pub mod script;
