//! Test support: the running product and its clients, a scripted MCP server, a plain MCP client, a
//! scripted model and agent, a collector of spans, planted secrets, the reading of measurements, and
//! the report of skipped tests. Development only.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

pub mod agent;
pub mod answer;
pub mod callgrind;
pub mod client;
pub mod figures;
pub mod foreign;
pub mod gate;
pub mod ledger;
mod listing;
pub mod lossy;
pub mod model;
pub mod otlp;
pub mod planted;
pub mod price;
pub mod program;
pub mod run;
pub mod script;
pub mod upstream;
pub mod wait;
pub mod wire;
