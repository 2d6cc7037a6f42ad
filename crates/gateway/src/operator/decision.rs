//! The record of a decision: who decided what about which server, tool, token or file.

use domain::Refusal;
use domain::taxonomy;
use mcp::message::to_raw;
use serde_json::Value;
use store::state::OperatorState;
use store::{
    CallEnd, CallStart, Entry, ReceiptAction, RecordAgent, RecordKind, RecordStatus, StoreError,
};
use touch::targets::Touches;

use crate::Gateway;
use crate::operator::refusal::unavailable;
use crate::payload;

/// The name in records of the admin key's holder.
const ADMIN: &str = "admin";

/// The name in records of somebody without a valid token.
const UNKNOWN: &str = "unknown";

/// The interface a decision came through, and its request.
#[derive(Clone, Debug)]
pub struct DecisionSource {
    /// `api` or `cli`.
    pub source: &'static str,
    pub request_id: Option<String>,
}

/// The subject of a decision.
#[derive(Clone, Copy)]
pub(crate) struct DecisionSubject<'a> {
    pub(super) kind: RecordKind,
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
}

impl<'a> DecisionSubject<'a> {
    pub(super) fn server(server: &'a str) -> DecisionSubject<'a> {
        DecisionSubject { kind: RecordKind::ServerChange, server, tool: "" }
    }

    pub(super) fn tool(server: &'a str, tool: &'a str) -> DecisionSubject<'a> {
        DecisionSubject { kind: RecordKind::ToolChange, server, tool }
    }

    /// A config file, which adds servers and changes their rules.
    pub(super) fn file() -> DecisionSubject<'static> {
        DecisionSubject { kind: RecordKind::ServerChange, server: "", tool: "" }
    }

    pub(super) fn token() -> DecisionSubject<'static> {
        DecisionSubject { kind: RecordKind::TokenChange, server: "", tool: "" }
    }

    /// The gate itself.
    pub(crate) fn gate() -> DecisionSubject<'static> {
        DecisionSubject { kind: RecordKind::System, server: "", tool: "" }
    }
}

impl Gateway {
    /// Records a decision before it is made: without a record, there is no decision.
    pub(crate) async fn record_decision(
        &self,
        by: &DecisionSource,
        about: DecisionSubject<'_>,
        details: Value,
    ) -> Result<(), Refusal> {
        self.record_event(by, about, None, details).await
    }

    /// Records what the admin key's holder did to the gate, or what was refused to somebody else.
    pub(crate) async fn record_event(
        &self,
        by: &DecisionSource,
        about: DecisionSubject<'_>,
        refused: Option<Refusal>,
        details: Value,
    ) -> Result<(), Refusal> {
        let id = uuid::Uuid::now_v7().to_string();
        let action = taxonomy::classify_decision();
        let who = if refused.is_some() { UNKNOWN } else { ADMIN };
        let started = CallStart {
            id: id.clone(),
            kind: about.kind,
            source: by.source.into(),
            surface: "operator".into(),
            server: about.server.to_owned(),
            tool: about.tool.to_owned(),
            agent: RecordAgent {
                name: who.to_owned(),
                client: String::new(),
                token: who.to_owned(),
            },
            session: None,
            request_id: by.request_id.clone(),
            at: jiff::Timestamp::now(),
            variant: details["decision"].as_str().map(|word| word.to_owned().into()),
            declared: None,
            sensitivity: None,
            reason: None,
            effective: None,
            unverified: false,
            warnings: Vec::new(),
            touches: Touches::default(),
            trace_id: None,
            arguments: payload::outside(&self.settings(), Some(&to_raw(&details))),
            action: ReceiptAction {
                kind: action.action_type.as_str().into(),
                risk: action.risk,
                correlation_id: None,
            },
            outside: None,
        };
        let mut ended = CallEnd::at_once(id);
        if let Some(Refusal { code, message, .. }) = refused {
            ended.status = RecordStatus::Blocked;
            ended.error_code = Some(code.as_str().into());
            ended.error_message = Some(message);
        }
        let entry = Entry::Whole(Box::new(started), Box::new(ended));
        let entry = entry.redacted(&self.settings().redactor);
        self.shared.store.append(entry).await.map_err(|error| unavailable(&error))?;
        Ok(())
    }

    /// Stores a decision and puts it into effect.
    pub(super) async fn decide<T: Send + 'static>(
        &self,
        change: impl FnOnce(&OperatorState) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let decided = self.with_store(move |store| change(store.state())).await;
        let decided = decided.map_err(|error| unavailable(&error))?;
        self.shared.store.anchor_soon();
        self.refresh().await;
        Ok(decided)
    }
}
