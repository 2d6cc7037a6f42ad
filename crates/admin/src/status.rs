//! `GET /status`: is all well?

pub(crate) mod openapi;

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use crate::Admin;

pub(crate) async fn show(State(admin): State<Admin>) -> Json<Value> {
    let catalog = admin.gateway.catalog();
    let mut upstreams: BTreeMap<&str, usize> = BTreeMap::new();
    let mut tools: BTreeMap<&str, usize> = BTreeMap::new();
    for server in catalog.servers() {
        *upstreams.entry(server.state_word()).or_default() += 1;
        for (_, lock) in server.tools() {
            *tools.entry(lock.as_str()).or_default() += 1;
        }
    }
    let config = match admin.gateway.config_fault() {
        Some(fault) => json!({"state": "rejected", "error": *fault}),
        None => json!({"state": "ok"}),
    };
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "uptime_seconds": admin.started.elapsed().as_secs(),
        "config": config,
        "upstreams": upstreams,
        "tools": tools,
        "include_disabled_asked": admin.gateway.locked_asked(),
        "ledger": ledger(&admin.gateway.store().ledger()),
    }))
}

pub(crate) fn ledger(ledger: &store::LedgerHealth) -> Value {
    json!({
        "state": if ledger.fault.is_some() { "failing" } else { "ok" },
        "chain": ledger.chain,
        "length": ledger.length,
        "last_hash": ledger.last_hash,
        "queue": ledger.queue,
        "last_error": ledger.fault.as_ref().map(ToString::to_string),
    })
}
