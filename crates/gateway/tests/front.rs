//! Clients of the gate's views and the servers behind them, all in this process: sessions over
//! in-memory streams and over HTTP on loopback.
#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

#[path = "front/all_servers.rs"]
mod all_servers;
#[path = "front/calls.rs"]
mod calls;
#[path = "front/connections.rs"]
mod connections;
#[path = "front/decisions.rs"]
mod decisions;
#[path = "front/dice.rs"]
mod dice;
#[path = "front/gate.rs"]
mod gate;
#[path = "front/hostile_lists.rs"]
mod hostile_lists;
#[path = "front/list_changes.rs"]
mod list_changes;
#[path = "front/methods.rs"]
mod methods;
#[path = "front/notices.rs"]
mod notices;
#[path = "front/offer.rs"]
mod offer;
#[path = "front/own_lists.rs"]
mod own_lists;
#[path = "front/server.rs"]
mod server;
#[path = "front/view.rs"]
mod view;
