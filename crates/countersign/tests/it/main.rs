//! End-to-end tests of the product: the real program in a temporary home, used as an MCP client, an
//! operator and a person at the command line.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

mod activity_cli;
mod agents;
mod answers;
mod bad_input;
mod cli;
mod contention;
mod crash;
mod discovery;
mod event_stream;
mod events;
mod export;
mod foreign;
mod found;
mod help;
mod http_edge;
mod intent;
mod ledger;
mod ledger_faults;
mod lists;
mod locks;
mod mcp_serve;
mod metrics;
mod misbehaving;
mod obsigna;
mod openai;
mod openapi;
mod operator;
mod own_lists;
mod page;
mod passthrough;
mod plugins;
mod receipt_cli;
mod records;
mod reload;
mod rest_input;
mod results;
mod roles;
mod rug_pull;
mod run_cli;
mod runs;
mod screens;
mod sharing;
mod start;
mod tampering;
mod telemetry;
mod tidy;
mod tokens;
mod upstreams;
mod validate;

mod workspace;
mod wrap;
