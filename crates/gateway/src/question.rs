//! The records of a server's questions to a client: those that the client answered within a call, and
//! the number of those that the gate refused.

use std::time::Duration;

use domain::taxonomy;
use mcp::message::{Raw, to_raw};
use mcp::peer::RequestError;
use provider::{Call, Surface};
use serde_json::json;
use serde_json::value::RawValue;
use store::{
    CallEnd, CallStart, Entry, Payload, ReceiptAction, RecordAgent, RecordKind, RecordStatus,
    StoreError,
};
use touch::targets::Touches;

use crate::agent::{self, SessionKey};
use crate::{GateSettings, Gateway, payload};

/// The client that a server asks, or only the server if the connection belongs to no client.
pub(crate) struct QuestionOrigin {
    server: String,
    surface: Option<Surface>,
    agent: RecordAgent,
    session: Option<String>,
}

/// The call within which a server asks.
pub(crate) struct AskingCall {
    id: String,
    request_id: Option<String>,
}

impl QuestionOrigin {
    pub(crate) fn of_session(server: &str, key: SessionKey<'_>) -> QuestionOrigin {
        QuestionOrigin {
            server: server.to_owned(),
            surface: Some(key.surface),
            agent: key.agent(),
            session: Some(key.session.to_string()),
        }
    }

    /// Returns the origin of questions on the connection that all clients share.
    pub(crate) fn of_server(server: &str) -> QuestionOrigin {
        let agent = RecordAgent { name: server.to_owned(), ..RecordAgent::default() };
        QuestionOrigin { server: server.to_owned(), surface: None, agent, session: None }
    }

    fn of_call(call: &Call) -> QuestionOrigin {
        QuestionOrigin {
            server: call.tool.server.clone(),
            surface: Some(call.surface),
            agent: agent::of_call(call),
            session: call.session.as_deref().map(str::to_owned),
        }
    }

    fn started(&self, call: Option<&AskingCall>, method: &str, arguments: Payload) -> CallStart {
        let action = taxonomy::classify_event(None, Some(&self.server), method);
        CallStart {
            id: uuid::Uuid::now_v7().to_string(),
            kind: RecordKind::System,
            source: self.surface.map_or("mcp", Surface::source).into(),
            surface: self.surface.map_or("upstream", Surface::as_str).into(),
            server: self.server.clone(),
            tool: method.to_owned(),
            agent: self.agent.clone(),
            session: self.session.clone(),
            request_id: call.and_then(|call| call.request_id.clone()),
            at: jiff::Timestamp::now(),
            variant: None,
            declared: None,
            sensitivity: None,
            reason: None,
            effective: None,
            unverified: false,
            warnings: Vec::new(),
            touches: Touches::default(),
            trace_id: None,
            arguments,
            action: ReceiptAction {
                kind: action.action_type.as_str().into(),
                risk: action.risk,
                correlation_id: call.map(|call| call.id.clone()),
            },
            outside: None,
        }
    }
}

impl AskingCall {
    pub(crate) fn of(call: &Call) -> AskingCall {
        AskingCall { id: call.id.clone(), request_id: call.request_id.clone() }
    }
}

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
        let asking = AskingCall::of(self.call);
        let started =
            QuestionOrigin::of_call(self.call).started(Some(&asking), self.method, arguments);
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
}

/// Questions that the gate refused for one reason.
pub(crate) struct RefusedQuestions<'a> {
    pub(crate) origin: &'a QuestionOrigin,
    /// The call within which the server asked, if any.
    pub(crate) call: Option<&'a AskingCall>,
    pub(crate) method: &'a str,
    pub(crate) reason: String,
    pub(crate) count: u64,
}

impl RefusedQuestions<'_> {
    /// Returns the record of all of them.
    pub(crate) fn entry(self, settings: &GateSettings) -> Entry {
        let count = to_raw(&json!({"refused": self.count}));
        let arguments = payload::outside(settings, Some(&count));
        let started = self.origin.started(self.call, self.method, arguments);
        let ended = CallEnd {
            status: RecordStatus::Blocked,
            error_message: Some(self.reason),
            ..CallEnd::at_once(started.id.clone())
        };
        Entry::Whole(Box::new(started), Box::new(ended)).redacted(&settings.redactor)
    }
}
