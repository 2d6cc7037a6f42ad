//! Streamable HTTP, both ends, over a real listener; and each end against a misbehaving other end.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "http/calls.rs"]
mod calls;
#[path = "http/client.rs"]
mod client;
#[path = "http/legacy.rs"]
mod legacy;
#[path = "http/resumption.rs"]
mod resumption;
#[path = "http/rig.rs"]
mod rig;
#[path = "http/server.rs"]
mod server;
