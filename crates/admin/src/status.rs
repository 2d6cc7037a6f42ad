//! `GET /status`: the health of the gate.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;

use crate::Admin;
use crate::view::{ConfigState, GateStatus, LedgerState, SearchState};

pub(crate) async fn show(State(admin): State<Admin>) -> Json<GateStatus> {
    let catalog = admin.gateway.catalog();
    let mut upstreams: BTreeMap<String, usize> = BTreeMap::new();
    let mut tools: BTreeMap<String, usize> = BTreeMap::new();
    for server in catalog.servers() {
        *upstreams.entry(server.state_word().to_owned()).or_default() += 1;
        for (_, lock) in server.tools() {
            *tools.entry(lock.as_str().to_owned()).or_default() += 1;
        }
    }
    let coverage = catalog.vector_coverage();
    Json(GateStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        uptime_seconds: admin.started.elapsed().as_secs(),
        config: ConfigState::new(admin.gateway.config_fault().map(|fault| fault.to_string())),
        upstreams,
        tools,
        search: SearchState {
            learned: admin.gateway.is_learned(),
            tools: coverage.tools,
            vectors: coverage.vectors,
        },
        include_disabled_asked: admin.gateway.locked_asked(),
        ledger: LedgerState::from(&admin.gateway.store().ledger()),
    })
}
