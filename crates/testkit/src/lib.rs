//! What tests are made of: a scripted MCP server, a plain MCP client and a collector of spans.
//! Development only.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

pub mod client;
mod listing;
pub mod otlp;
pub mod script;
