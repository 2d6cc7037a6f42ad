//! The tools of a gate that serves a single step, for the agent in it: every callable tool, those
//! of built-in servers under their own names.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use domain::taxonomy;
use domain::tool::Class;
use domain::{Caller, Code};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::ErrorObject;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::object::ObjectMembers;
use mcp::peer::{Peer, RequestContext, Service};
use mcp::task;
use provider::{Surface, TraceContext};
use receipt::RiskLevel;
use serde_json::value::RawValue;
use store::{
    CallEnd, CallStart, Entry, Payload, ReceiptAction, RecordAgent, RecordKind, RecordStatus,
};
use touch::targets::Touches;

use crate::Gateway;
use crate::front::passthrough::Passthrough;
use crate::front::session::Session;

/// The agent's use of its step's server. If the server does not come up, agent programs continue
/// without tools and exit as if all were well.
#[derive(Default)]
pub struct StepActivity {
    listed: AtomicBool,
    sessions: Mutex<Vec<Arc<str>>>,
}

impl StepActivity {
    /// Reports whether the agent has requested the list of tools and got it.
    pub fn listed(&self) -> bool {
        self.listed.load(Ordering::Acquire)
    }

    /// Returns the sessions that were opened; their calls are recorded under these.
    pub fn sessions(&self) -> Vec<Arc<str>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Creates the service of a new connection; its calls are made under `trace`.
pub fn open(
    gateway: &Gateway,
    caller: &Arc<Caller>,
    seen: &Arc<StepActivity>,
    trace: TraceContext,
) -> Arc<dyn Service> {
    let session = Session::new(gateway.clone(), caller.clone(), None);
    seen.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(session.id.clone());
    Arc::new(StepService { tools: Passthrough::step(session, trace), seen: seen.clone() })
}

/// The surface of actions that bypassed the gate.
pub const BYPASS: &str = "bypass";

/// Records that an agent used one of its own tools, bypassing the gate: there was no decision about
/// it, and only the tool's name is known.
pub async fn record_bypass(gateway: &Gateway, caller: &Caller, program: &str, tool: &str) {
    let id = uuid::Uuid::now_v7().to_string();
    let action = taxonomy::classify_event(None, Some(program), tool);
    let message = format!("{program} used its own tool '{tool}', bypassing the gate");
    let started = CallStart {
        id: id.clone(),
        kind: RecordKind::ToolCall,
        source: Surface::Run.source().into(),
        surface: BYPASS.into(),
        server: program.to_owned(),
        tool: tool.to_owned(),
        agent: RecordAgent {
            name: caller.token.to_string(),
            client: program.to_owned(),
            token: caller.token.to_string(),
        },
        session: None,
        request_id: None,
        at: jiff::Timestamp::now(),
        variant: None,
        declared: None,
        sensitivity: None,
        reason: None,
        effective: Some(Class::Destructive),
        unverified: true,
        warnings: vec![message.clone()],
        touches: Touches::default(),
        trace_id: None,
        arguments: Payload::default(),
        action: ReceiptAction {
            kind: action.action_type.as_str().into(),
            risk: RiskLevel::High,
            correlation_id: None,
        },
        outside: None,
    };
    let ended = CallEnd {
        status: RecordStatus::Error,
        error_code: Some(Code::AgentBypassed.as_str().into()),
        error_message: Some(message),
        ..CallEnd::at_once(id)
    };
    let entry = Entry::Whole(Box::new(started), Box::new(ended));
    let entry = entry.redacted(&gateway.settings().redactor);
    if let Err(error) = gateway.store().append(entry).await {
        tracing::error!(program, tool, "cannot record a bypass: {error}");
    }
}

struct StepService {
    tools: Arc<Passthrough>,
    seen: Arc<StepActivity>,
}

impl StepService {
    async fn answer(&self, request: Request, incoming: RequestContext) -> Result<Raw, ErrorObject> {
        match request.method.as_str() {
            "shutdown" => {
                task::spawn(async move {
                    incoming.peer.idle().await;
                    incoming.peer.close("the client requested shutdown");
                });
                Ok(raw("{}".to_owned()))
            }
            "tools/list" => {
                let listed = self.tools.request(request, incoming).await;
                self.seen.listed.fetch_or(listed.is_ok(), Ordering::Release);
                listed.map(readable)
            }
            _ => self.tools.request(request, incoming).await,
        }
    }
}

/// Gives every tool in the list an object schema. Agent programs require one, and some reject a
/// whole list in which a single tool lacks it.
fn readable(list: Raw) -> Raw {
    let changed = || {
        let mut members = ObjectMembers::parse(&list).ok()?;
        let tools: Vec<&RawValue> = serde_json::from_str(members.get("tools")?).ok()?;
        let with_schemas: Vec<Option<String>> =
            tools.iter().map(|tool| with_schema(tool)).collect();
        if with_schemas.iter().all(Option::is_none) {
            return None;
        }
        let texts = tools.iter().zip(&with_schemas);
        let texts = texts.map(|(tool, other)| other.as_deref().unwrap_or(tool.get()));
        let tools = format!("[{}]", texts.collect::<Vec<_>>().join(","));
        members.set("tools", tools);
        Some(members.write())
    };
    changed().unwrap_or(list)
}

/// Returns the tool with an object schema, or `None` if it already has one.
fn with_schema(tool: &RawValue) -> Option<String> {
    const OBJECT: &str = r#""object""#;
    let mut members = ObjectMembers::parse(tool).ok()?;
    let given = members.get("inputSchema").map(str::to_owned).unwrap_or_default();
    let mut schema: ObjectMembers<'_> = serde_json::from_str(&given).unwrap_or_default();
    if schema.get("type") == Some(OBJECT) {
        return None;
    }
    schema.set("type", OBJECT);
    members.set("inputSchema", schema.write_text());
    Some(members.write_text())
}

impl Service for StepService {
    fn request(
        &self,
        request: Request,
        incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.answer(request, incoming).boxed()
    }

    fn notification(&self, notification: Notification, peer: Peer) {
        self.tools.notification(notification, peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_gets_a_schema_and_nothing_else_is_changed() {
        let list = |tools: &str| raw(format!(r#"{{"x":1E2,"tools":[{tools}]}}"#));
        for (given, told) in [
            (r#"{"name":"t"}"#, r#"{"name":"t","inputSchema":{"type":"object"}}"#),
            (
                r#"{"inputSchema":true,"name":"t"}"#,
                r#"{"inputSchema":{"type":"object"},"name":"t"}"#,
            ),
            (
                r#"{"name":"t","inputSchema":{"properties":{"a":{}}}}"#,
                r#"{"name":"t","inputSchema":{"properties":{"a":{}},"type":"object"}}"#,
            ),
            (
                r#"{"name":"t", "inputSchema":{"type" : "object"}}"#,
                r#"{"name":"t", "inputSchema":{"type" : "object"}}"#,
            ),
        ] {
            assert_eq!(readable(list(given)).get(), list(told).get());
            let good = r#"{"y": 1.0,"inputSchema":{"type":"object"}}"#;
            let (given, told) = (format!("{good},{given}"), format!("{good},{told}"));
            assert_eq!(readable(list(&given)).get(), list(&told).get());
        }
        assert_eq!(readable(raw("{}".to_owned())).get(), "{}");
    }
}
