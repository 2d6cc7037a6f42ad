//! Foreign software on both sides of the gate: published MCP servers behind it, the Python SDK and
//! `rmcp` in front of it.

mod clients;
mod conversation;
mod cost;
mod definitions;
mod handshake;
mod progress;
mod prompts;
mod results;
pub(crate) mod servers;
mod work;
