//! The record of a question that a server asked a client within a call.

use std::time::Duration;

use domain::ledger::taxonomy;
use mcp::message::Raw;
use mcp::peer::RequestError;
use provider::Call;
use serde_json::value::RawValue;
use store::{
    CallEnd, CallStart, Entry, Payload, ReceiptAction, RecordKind, RecordStatus, StoreError,
};

use super::{payload, statement};
use crate::Gateway;

pub(crate) struct AskedQuestion<'a> {
    /// The call within which the server asked.
    pub(crate) call: &'a Call,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) answer: &'a Result<Raw, RequestError>,
    pub(crate) duration: Duration,
}

impl AskedQuestion<'_> {
    /// Records the question and its answer; returns once both are committed.
    pub(crate) async fn record(&self, gateway: &Gateway) -> Result<(), StoreError> {
        let settings = gateway.settings();
        let arguments = match self.params {
            Some(params) => payload::response(&settings, params).await.payload,
            None => Payload::default(),
        };
        let response = match self.answer {
            Ok(answer) => payload::response(&settings, answer).await.payload,
            Err(_) => Payload::default(),
        };
        let started = self.started(arguments);
        let ended = CallEnd {
            status: match self.answer {
                Ok(_) => RecordStatus::Success,
                Err(RequestError::Cancelled) => RecordStatus::Cancelled,
                Err(_) => RecordStatus::Error,
            },
            error_message: self.answer.as_ref().err().map(ToString::to_string),
            duration: self.duration,
            response,
            ..CallEnd::at_once(started.id.clone())
        };
        let entry = Entry::Whole(Box::new(started), Box::new(ended));
        gateway.store().append(entry.redacted(&settings.redactor)).await?;
        Ok(())
    }

    fn started(&self, arguments: Payload) -> CallStart {
        let AskedQuestion { call, method, .. } = self;
        let action = taxonomy::classify_event(None, Some(&call.tool.server), method);
        CallStart {
            id: uuid::Uuid::now_v7().to_string(),
            kind: RecordKind::System,
            source: call.surface.source().into(),
            surface: call.surface.as_str().into(),
            server: call.tool.server.clone(),
            tool: (*method).to_owned(),
            agent: statement::agent(call),
            session: call.session.as_deref().map(str::to_owned),
            request_id: call.request_id.clone(),
            at: jiff::Timestamp::now(),
            variant: None,
            declared: None,
            sensitivity: None,
            reason: None,
            effective: None,
            unverified: false,
            warnings: Vec::new(),
            target: None,
            trace_id: None,
            arguments,
            action: ReceiptAction {
                kind: action.action_type.as_str().into(),
                risk: action.risk,
                correlation_id: Some(call.id.clone()),
            },
            outside: None,
        }
    }
}
