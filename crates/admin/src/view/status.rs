//! The health of the gate.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use store::{AnchorHealth, LedgerHealth};
use utoipa::ToSchema;

use super::{moment, words};

#[derive(Serialize, Deserialize, ToSchema)]
pub struct GateStatus {
    pub version: String,
    pub pid: u32,
    pub uptime_seconds: u64,
    pub config: ConfigState,
    /// Servers by state.
    pub upstreams: BTreeMap<String, usize>,
    /// Tools by status.
    pub tools: BTreeMap<String, usize>,
    pub search: SearchState,
    pub include_disabled_asked: u64,
    pub ledger: LedgerState,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ConfigState {
    #[schema(schema_with = words::config_state)]
    pub state: String,
    /// The reason the newest config file is not in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The search by meaning.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct SearchState {
    /// True if it is switched on, and the processor is fast enough for it.
    pub learned: bool,
    /// Tools that can be found by their text.
    pub tools: usize,
    /// Those that can be found by meaning so far.
    pub vectors: usize,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct LedgerState {
    #[schema(schema_with = words::ledger_state)]
    pub state: String,
    #[schema(required)]
    pub chain: Option<String>,
    pub length: u64,
    #[schema(schema_with = words::digest_or_null, required)]
    pub last_hash: Option<String>,
    /// Entries held in memory until the ledger can be written.
    pub queue: usize,
    #[schema(required)]
    pub last_error: Option<String>,
    /// The delivery of checkpoints, if an anchor is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<AnchorState>,
    /// Losses and repairs that an operator must know of.
    #[serde(default)]
    pub notices: Vec<String>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct AnchorState {
    /// The time of the last delivery.
    #[schema(schema_with = words::moment_or_null, required)]
    pub delivered_at: Option<String>,
    /// Seconds since the first checkpoint that has not been delivered; 0 if all have been.
    pub lag_seconds: u64,
    /// The reason the last attempt failed.
    #[schema(required)]
    pub last_error: Option<String>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct Liveness {
    #[schema(schema_with = words::alive)]
    pub status: String,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    #[schema(schema_with = words::readiness)]
    pub status: String,
    /// The reason no calls are accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ConfigState {
    pub(crate) fn new(fault: Option<String>) -> ConfigState {
        let state = if fault.is_some() { "rejected" } else { "ok" };
        ConfigState { state: state.to_owned(), error: fault }
    }
}

impl From<&AnchorHealth> for AnchorState {
    fn from(anchor: &AnchorHealth) -> AnchorState {
        AnchorState {
            delivered_at: anchor.delivered_at.map(moment),
            lag_seconds: anchor.lag(Timestamp::now()).as_secs(),
            last_error: anchor.error.clone(),
        }
    }
}

impl From<&LedgerHealth> for LedgerState {
    fn from(ledger: &LedgerHealth) -> LedgerState {
        let state = if ledger.fault.is_some() { "failing" } else { "ok" };
        LedgerState {
            state: state.to_owned(),
            chain: ledger.chain.clone(),
            length: ledger.length,
            last_hash: ledger.last_hash.map(|hash| hash.to_string()),
            queue: ledger.queue,
            last_error: ledger.fault.as_ref().map(ToString::to_string),
            anchor: ledger.anchor.as_ref().map(AnchorState::from),
            notices: ledger.notices.clone(),
        }
    }
}
