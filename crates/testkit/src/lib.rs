//! What tests are made of: a scripted MCP server, a plain MCP client, a scripted model and a
//! collector of spans. Development only.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

pub mod client;
mod listing;
pub mod model;
pub mod otlp;
pub mod script;
