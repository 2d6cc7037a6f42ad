//! What tests are made of: a scripted MCP server, a plain MCP client, a scripted model, a
//! collector of spans, and how a test says that it was not run. Development only.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

pub mod client;
mod listing;
pub mod model;
pub mod otlp;
pub mod run;
pub mod script;
