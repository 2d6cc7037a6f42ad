//! The record of an event from outside.

use std::borrow::Cow;
use std::time::Duration;

use domain::taxonomy;
use domain::tool::Class;
use jiff::{SignedDuration, Timestamp};
use receipt::RiskLevel;
use redact::{REDACTED, Redactor};
use store::{
    CallEnd, CallStart, EventOperator, OutsideSource, Payload, ReceiptAction, RecordAgent,
    RecordKind, RecordStatus,
};
use touch::frame::{Decision, EventFrame, Identity};
use touch::hook;
use touch::targets::Touches;
use uuid::Uuid;

use crate::GateSettings;
use crate::events::sender::{Arrival, EventOrigin, Sender};
use crate::payload;
use crate::pipeline::touch::NamedTouches;

/// The action type of a receipt for lost events.
const EVENTS_DROPPED: &str = "agent_receipts.events_dropped";

/// The maximum age an event may claim; hooks write to the spool while no gate runs, for a weekend
/// or a holiday. Retention goes by time, so a sender must not choose it freely.
const AGE_MAX: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Characters of a session or agent id that distinguish it from others of the same program.
const AGENT_CHARS: usize = 8;

pub(super) fn of(
    frame: &EventFrame,
    origin: EventOrigin,
    named: NamedTouches,
    settings: &GateSettings,
) -> (CallStart, CallEnd) {
    let EventOrigin { id, sender, arrival, is_admitted } = origin;
    let id = id.to_string();
    let (kind, risk) = action(frame);
    let class = class(frame);
    let mut started = CallStart {
        id: id.clone(),
        kind: RecordKind::ToolCall,
        source: source(frame, arrival).into(),
        surface: "events".into(),
        server: frame.server.clone().unwrap_or_else(|| frame.channel.clone()),
        tool: frame.tool.clone(),
        agent: if is_admitted {
            agent(frame, &settings.redactor)
        } else {
            stranger(frame, sender.as_ref(), &settings.redactor)
        },
        session: is_admitted.then(|| frame.session_id.clone()),
        request_id: frame.identity.idempotency_key.clone(),
        at: believable(frame.emitted),
        variant: None,
        declared: None,
        sensitivity: None,
        reason: None,
        effective: Some(class.unwrap_or(Class::Write)),
        unverified: class.is_none(),
        warnings: warnings(frame),
        touches: named.touches,
        trace_id: None,
        arguments: payload::outside(settings, frame.input.as_deref()),
        action: ReceiptAction {
            kind: kind.to_owned().into(),
            risk,
            correlation_id: frame.identity.correlation_id.clone(),
        },
        outside: Some(Box::new(outside(frame, sender))),
    };
    if !is_admitted {
        started.warnings.push(format!("claims '{}' of another process", frame.session_id));
        // The claims of the sender would stand in the receipt next to the agent's name.
        started.outside.iter_mut().for_each(|outside| outside.agent_id = None);
    }
    started.warnings.extend(named.warnings);
    let error = frame.error.clone();
    let ended = CallEnd {
        id,
        status: match (frame.decision, &error) {
            (Decision::Pending, _) => RecordStatus::Pending,
            (Decision::Denied, _) => RecordStatus::Blocked,
            (Decision::Allowed, Some(_)) => RecordStatus::Error,
            (Decision::Allowed, None) => RecordStatus::Success,
        },
        error_code: None,
        error_message: error,
        duration: Duration::ZERO,
        response: payload::outside(settings, frame.output.as_deref()),
        warnings: Vec::new(),
        touches: Touches::default(),
    };
    (started, ended)
}

/// Names the parts that the sender omitted for their size; an omitted target has its own words, and
/// links are followed here instead.
fn warnings(frame: &EventFrame) -> Vec<String> {
    let is_part = |part: &&String| ![hook::TARGET, hook::LINKS].contains(&part.as_str());
    let omitted = frame.omitted.iter().filter(is_part);
    omitted.map(|part| format!("the sender omitted {part}")).collect()
}

/// The record of events that the gate lost.
pub(super) fn dropped(count: u64) -> (CallStart, CallEnd) {
    let id = Uuid::now_v7().to_string();
    let started = CallStart {
        id: id.clone(),
        kind: RecordKind::System,
        source: "socket".into(),
        surface: "events".into(),
        server: String::new(),
        tool: "events_dropped".to_owned(),
        agent: RecordAgent { name: "countersign".to_owned(), ..RecordAgent::default() },
        session: None,
        request_id: None,
        at: Timestamp::now(),
        variant: None,
        declared: None,
        sensitivity: None,
        reason: None,
        effective: None,
        unverified: false,
        warnings: vec![format!("{count} events were lost")],
        touches: Touches::default(),
        trace_id: None,
        arguments: Payload::default(),
        action: ReceiptAction {
            kind: EVENTS_DROPPED.into(),
            risk: RiskLevel::Medium,
            correlation_id: None,
        },
        outside: Some(Box::new(OutsideSource {
            drop_count: Some(clamped(count)),
            ..OutsideSource::default()
        })),
    };
    (started, CallEnd::at_once(id))
}

/// Returns the sender's timestamp, limited to the plausible range.
fn believable(emitted: Timestamp) -> Timestamp {
    let now = Timestamp::now();
    emitted.clamp(now.checked_sub(AGE_MAX).unwrap_or(now), now)
}

fn clamped(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn source(frame: &EventFrame, arrival: Arrival) -> &'static str {
    match arrival {
        Arrival::Spool => "hook",
        Arrival::Socket if frame.identity.capture_method.as_deref() == Some("hook") => "hook",
        Arrival::Socket => "socket",
    }
}

/// An agent within an agent counts as its own agent; otherwise each session does. The end of an id is
/// recognised as part of a secret only within the whole.
fn agent(frame: &EventFrame, redactor: &Redactor) -> RecordAgent {
    let Identity { agent_id, issuer_name, .. } = &frame.identity;
    let program = issuer_name.as_deref().unwrap_or(&frame.channel);
    let which = agent_id.as_deref().unwrap_or(&frame.session_id);
    let tail: String = match redactor.text(which) {
        Cow::Owned(_) => REDACTED.to_owned(),
        Cow::Borrowed(which) => {
            let skipped = which.chars().count().saturating_sub(AGENT_CHARS);
            which.chars().skip(skipped).collect()
        }
    };
    RecordAgent {
        name: format!("{program}#{tail}"),
        client: frame.channel.clone(),
        token: "events".to_owned(),
    }
}

/// Returns the session and the agent that an event names, if any. A hook without a session names
/// none.
pub(super) fn names(frame: &EventFrame, redactor: &Redactor) -> Vec<String> {
    let session = Some(&frame.session_id).filter(|session| *session != hook::NO_SESSION).cloned();
    let has_agent = session.is_some() || frame.identity.agent_id.is_some();
    session.into_iter().chain(has_agent.then(|| agent(frame, redactor).name)).collect()
}

/// Names the sender of an event by its process, since the names in the event are not its own.
fn stranger(frame: &EventFrame, sender: Option<&Sender>, redactor: &Redactor) -> RecordAgent {
    let name = match sender.and_then(Sender::agent_pid) {
        Some(pid) => format!("process#{pid}"),
        None => "unknown process".to_owned(),
    };
    RecordAgent { name, ..agent(frame, redactor) }
}

/// Returns the type of the event's action, which the sender may give, and its risk.
fn action(frame: &EventFrame) -> (&str, RiskLevel) {
    let (given, server) = (frame.action_type.as_deref(), frame.server.as_deref());
    let action = taxonomy::classify_event(given, server, &frame.tool);
    (given.unwrap_or_else(|| action.action_type.as_str()), action.risk)
}

/// Derives the class from the type of the action.
pub(super) fn class(frame: &EventFrame) -> Option<Class> {
    match action(frame).0.rsplit('.').next()? {
        "read" | "list" | "query" | "navigate" | "observed" => Some(Class::Read),
        "delete" => Some(Class::Destructive),
        "unknown" => None,
        _ => Some(Class::Write),
    }
}

fn outside(frame: &EventFrame, sender: Option<Sender>) -> OutsideSource {
    let identity = &frame.identity;
    let operator = match (&identity.operator_id, &identity.operator_name) {
        (Some(id), Some(name)) => Some(EventOperator { id: id.clone(), name: name.clone() }),
        (Some(one), None) | (None, Some(one)) => {
            Some(EventOperator { id: one.clone(), name: one.clone() })
        }
        (None, None) => None,
    };
    OutsideSource {
        pid: sender.as_ref().and_then(|sender| sender.pid),
        uid: sender.as_ref().map(|sender| sender.uid),
        gid: sender.as_ref().map(|sender| sender.gid),
        drop_count: (frame.drop_count > 0).then(|| clamped(frame.drop_count)),
        issuer_name: identity.issuer_name.clone(),
        model: identity.issuer_model.clone().or_else(|| identity.model.clone()),
        operator,
        agent_id: identity.agent_id.clone(),
        agent_type: identity.agent_type.clone(),
        capture_method: identity.capture_method.clone(),
        usage: frame.usage.as_ref().map(ToString::to_string),
    }
}
