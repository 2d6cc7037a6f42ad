//! An outside event that agents and their hooks send to the events socket: frame version "1" as
//! published. Bytes in; a checked frame, or the reason for dropping it, out.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::targets::{RESOURCE_BYTES_MAX, SYSTEM_BYTES_MAX, Target};
use text::json;

pub const VERSION: &str = "1";

/// The published limit on a whole frame.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// The published limit on each identity field.
pub const IDENTITY_BYTES_MAX: usize = 256;

/// The published form has no limit on tool names; they become indexed columns, so here they have
/// one.
pub const TOOL_BYTES_MAX: usize = 1024;

/// A frame with every field checked. Empty texts count as absent.
#[derive(Clone, Debug)]
pub struct EventFrame {
    pub emitted: Timestamp,
    pub session_id: String,
    pub channel: String,
    pub server: Option<String>,
    pub tool: String,
    pub decision: Decision,
    pub action_type: Option<String>,
    /// The exact text: the hash must cover what was sent.
    pub input: Option<Box<RawValue>>,
    pub output: Option<Box<RawValue>>,
    pub error: Option<String>,
    pub target: Option<Target>,
    /// The number of events that the sender lost before this one.
    pub drop_count: u64,
    pub identity: Identity,
    pub usage: Option<Value>,
    /// The fields that the sender omitted because the frame would have been too large.
    pub omitted: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Allowed,
    Denied,
    Pending,
}

impl Decision {
    pub const ALL: [Decision; 3] = [Decision::Allowed, Decision::Denied, Decision::Pending];

    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Allowed => "allowed",
            Decision::Denied => "denied",
            Decision::Pending => "pending",
        }
    }

    pub fn parse(text: &str) -> Option<Decision> {
        Decision::ALL.into_iter().find(|decision| decision.as_str() == text)
    }
}

/// The sender and the party it acts for, in the sender's own words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub issuer_name: Option<String>,
    pub issuer_model: Option<String>,
    pub operator_id: Option<String>,
    pub operator_name: Option<String>,
    pub idempotency_key: Option<String>,
    pub correlation_id: Option<String>,
    pub agent_id: Option<String>,
    pub agent_type: Option<String>,
    pub model: Option<String>,
    pub capture_method: Option<String>,
}

/// The reason a frame is dropped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    #[error("frame of {0} bytes exceeds the limit of {FRAME_BYTES_MAX}")]
    Size(usize),
    #[error("frame cannot be parsed: {0}")]
    Json(String),
    #[error("unsupported frame version {0}; use \"{VERSION}\"")]
    Version(String),
    #[error("{0} is missing or empty")]
    Missing(&'static str),
    #[error("{field} has {bytes} bytes, over the limit of {bytes_max}")]
    Long { field: &'static str, bytes: usize, bytes_max: usize },
    #[error("invalid decision '{0}': must be allowed, denied, or pending")]
    Decision(String),
    #[error("ts_emit '{0}' is not an RFC 3339 time")]
    Time(String),
    #[error("target_system and target_resource must be given together")]
    HalfTarget,
}

impl EventFrame {
    pub fn parse(bytes: &[u8]) -> Result<EventFrame, FrameFault> {
        if bytes.len() > FRAME_BYTES_MAX {
            return Err(FrameFault::Size(bytes.len()));
        }
        let text =
            str::from_utf8(bytes).map_err(|_| FrameFault::Json("it is not UTF-8".to_owned()))?;
        // The strict parse rejects duplicate keys; the second parse keeps the texts of input and
        // output.
        let version = json::parse(text).map_err(not_json)?.get("v").cloned().unwrap_or_default();
        if version != VERSION {
            return Err(FrameFault::Version(version.to_string()));
        }
        check(&serde_json::from_str(text).map_err(not_json)?)
    }
}

fn not_json(error: serde_json::Error) -> FrameFault {
    FrameFault::Json(json::explain(&error))
}

type Text<'a> = Option<Cow<'a, str>>;

/// The wire form; unknown members are ignored.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    ts_emit: Text<'a>,
    #[serde(borrow)]
    session_id: Text<'a>,
    #[serde(borrow)]
    channel: Text<'a>,
    #[serde(borrow)]
    tool: Option<WireTool<'a>>,
    #[serde(borrow)]
    decision: Text<'a>,
    #[serde(borrow)]
    action_type: Text<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Text<'a>,
    #[serde(borrow)]
    target_system: Text<'a>,
    #[serde(borrow)]
    target_resource: Text<'a>,
    drop_count: Option<u64>,
    #[serde(borrow)]
    issuer_name: Text<'a>,
    #[serde(borrow)]
    issuer_model: Text<'a>,
    #[serde(borrow)]
    operator_id: Text<'a>,
    #[serde(borrow)]
    operator_name: Text<'a>,
    #[serde(borrow)]
    idempotency_key: Text<'a>,
    #[serde(borrow)]
    correlation_id: Text<'a>,
    #[serde(borrow)]
    agent_id: Text<'a>,
    #[serde(borrow)]
    agent_type: Text<'a>,
    #[serde(borrow)]
    model: Text<'a>,
    usage: Option<Value>,
    #[serde(borrow)]
    capture_method: Text<'a>,
    #[serde(default)]
    omitted: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct WireTool<'a> {
    #[serde(borrow)]
    server: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
}

fn check(wire: &Wire<'_>) -> Result<EventFrame, FrameFault> {
    let tool = wire.tool.as_ref().ok_or(FrameFault::Missing("tool"))?;
    let decision = required("decision", &wire.decision)?;
    Ok(EventFrame {
        emitted: time(&required("ts_emit", &wire.ts_emit)?)?,
        session_id: required("session_id", &wire.session_id)?,
        channel: required("channel", &wire.channel)?,
        server: short("tool.server", &tool.server, TOOL_BYTES_MAX)?,
        tool: short("tool.name", &tool.name, TOOL_BYTES_MAX)?
            .ok_or(FrameFault::Missing("tool.name"))?,
        decision: Decision::parse(&decision).ok_or(FrameFault::Decision(decision))?,
        action_type: identity("action_type", &wire.action_type)?,
        input: wire.input.map(ToOwned::to_owned),
        output: wire.output.map(ToOwned::to_owned),
        error: short("error", &wire.error, FRAME_BYTES_MAX)?,
        target: target(&wire.target_system, &wire.target_resource)?,
        drop_count: wire.drop_count.unwrap_or(0),
        usage: wire.usage.clone(),
        omitted: wire.omitted.clone().unwrap_or_default(),
        identity: who(wire)?,
    })
}

fn who(wire: &Wire<'_>) -> Result<Identity, FrameFault> {
    Ok(Identity {
        issuer_name: identity("issuer_name", &wire.issuer_name)?,
        issuer_model: identity("issuer_model", &wire.issuer_model)?,
        operator_id: identity("operator_id", &wire.operator_id)?,
        operator_name: identity("operator_name", &wire.operator_name)?,
        idempotency_key: identity("idempotency_key", &wire.idempotency_key)?,
        correlation_id: identity("correlation_id", &wire.correlation_id)?,
        agent_id: identity("agent_id", &wire.agent_id)?,
        agent_type: identity("agent_type", &wire.agent_type)?,
        model: identity("model", &wire.model)?,
        capture_method: identity("capture_method", &wire.capture_method)?,
    })
}

fn required(field: &'static str, text: &Text<'_>) -> Result<String, FrameFault> {
    identity(field, text)?.ok_or(FrameFault::Missing(field))
}

fn identity(field: &'static str, text: &Text<'_>) -> Result<Option<String>, FrameFault> {
    short(field, text, IDENTITY_BYTES_MAX)
}

fn short(
    field: &'static str,
    text: &Text<'_>,
    bytes_max: usize,
) -> Result<Option<String>, FrameFault> {
    match text.as_deref().filter(|text| !text.is_empty()) {
        Some(text) if text.len() > bytes_max => {
            Err(FrameFault::Long { field, bytes: text.len(), bytes_max })
        }
        text => Ok(text.map(str::to_owned)),
    }
}

fn target(system: &Text<'_>, resource: &Text<'_>) -> Result<Option<Target>, FrameFault> {
    let system = short("target_system", system, SYSTEM_BYTES_MAX)?;
    let resource = short("target_resource", resource, RESOURCE_BYTES_MAX)?;
    match (system, resource) {
        (Some(system), Some(resource)) => Ok(Target::new(&system, resource)),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => Err(FrameFault::HalfTarget),
    }
}

/// Parses strict RFC 3339: the parser below would also accept a space for the `T`, and zones.
fn time(text: &str) -> Result<Timestamp, FrameFault> {
    let fault = || FrameFault::Time(text.chars().take(64).collect());
    if !rfc3339(text.as_bytes()) {
        return Err(fault());
    }
    text.parse().map_err(|_| fault())
}

fn rfc3339(text: &[u8]) -> bool {
    let follows = |text: &[u8], pattern: &str| {
        text.len() == pattern.len()
            && text.iter().zip(pattern.bytes()).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b't'),
                b'+' => matches!(byte, b'+' | b'-'),
                wanted => *byte == wanted,
            })
    };
    const MOMENT: &str = "0000-00-00T00:00:00";
    let Some((moment, mut rest)) = text.split_at_checked(MOMENT.len()) else { return false };
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return false;
        }
        rest = &fraction[digits..];
    }
    follows(moment, MOMENT) && (matches!(rest, b"Z" | b"z") || follows(rest, "+00:00"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn minimal() -> Value {
        json!({
            "v": "1", "ts_emit": "2026-05-03T10:00:00.123456000Z", "session_id": "s",
            "channel": "sdk", "tool": {"name": "read_file"}, "decision": "allowed",
        })
    }

    fn with(members: Value) -> Result<EventFrame, FrameFault> {
        let mut frame = minimal();
        for (name, value) in members.as_object().unwrap() {
            frame[name] = value.clone();
        }
        EventFrame::parse(frame.to_string().as_bytes())
    }

    #[test]
    fn every_field_arrives() {
        let text = r#"{"v":"1","ts_emit":"2026-05-03T12:00:00+02:00","session_id":"s","channel":"c",
            "tool":{"server":"fs","name":"write","x":1},"decision":"denied","action_type":"data.api.read",
            "input":{"n": 1E2, "big": 12345678901234567890},"output":[1.0],"error":"no",
            "target_system":"fs","target_resource":"/x","drop_count":3,"issuer_name":"in",
            "issuer_model":"im","operator_id":"oi","operator_name":"on","idempotency_key":"ik",
            "correlation_id":"ci","agent_id":"ai","agent_type":"at","model":"m",
            "usage":{"input_tokens":5},"capture_method":"sdk","later":{"any":[]},"omitted":["output"]}"#;
        let frame = EventFrame::parse(text.as_bytes()).unwrap();
        assert_eq!(frame.emitted.to_string(), "2026-05-03T10:00:00Z");
        assert_eq!((frame.server.as_deref(), frame.tool.as_str()), (Some("fs"), "write"));
        assert_eq!((frame.session_id.as_str(), frame.channel.as_str()), ("s", "c"));
        assert_eq!(frame.decision, Decision::Denied);
        assert_eq!(frame.action_type.as_deref(), Some("data.api.read"));
        assert_eq!(frame.input.unwrap().get(), r#"{"n": 1E2, "big": 12345678901234567890}"#);
        assert_eq!(frame.output.unwrap().get(), "[1.0]");
        assert_eq!(frame.error.as_deref(), Some("no"));
        assert_eq!(frame.target, Target::new("fs", "/x".into()));
        assert_eq!(frame.drop_count, 3);
        assert_eq!(frame.usage, Some(json!({"input_tokens": 5})));
        assert_eq!(frame.omitted, ["output"]);
        let Identity { issuer_name, issuer_model, operator_id, operator_name, .. } =
            &frame.identity;
        let Identity { idempotency_key, correlation_id, agent_id, agent_type, .. } =
            &frame.identity;
        let Identity { model, capture_method, .. } = &frame.identity;
        let found = [
            issuer_name,
            issuer_model,
            operator_id,
            operator_name,
            idempotency_key,
            correlation_id,
            agent_id,
            agent_type,
            model,
            capture_method,
        ];
        let words = ["in", "im", "oi", "on", "ik", "ci", "ai", "at", "m", "sdk"];
        assert_eq!(found.map(|it| it.as_deref()), words.map(Some));
    }

    #[test]
    fn empty_and_null_fields_count_as_absent() {
        let frame = with(json!({"error": "", "target_system": "", "target_resource": null,
            "drop_count": null, "input": null, "agent_id": ""}))
        .unwrap();
        assert!(frame.error.is_none() && frame.target.is_none() && frame.input.is_none());
        assert_eq!((frame.drop_count, frame.identity), (0, Identity::default()));
    }

    #[test]
    fn bad_frames_are_dropped_with_a_reason() {
        let long = "x".repeat(257);
        for (members, reason) in [
            (json!({"v": 1}), "frame version 1"),
            (json!({"v": "2"}), "frame version \"2\""),
            (json!({"session_id": ""}), "session_id is missing"),
            (json!({"channel": null}), "channel is missing"),
            (json!({"tool": null}), "tool is missing"),
            (json!({"tool": {}}), "tool.name is missing"),
            (json!({"tool": "x"}), "cannot be parsed"),
            (json!({"tool": {"name": "x".repeat(1025)}}), "tool.name has 1025 bytes"),
            (json!({"decision": "maybe"}), "decision 'maybe'"),
            (json!({"ts_emit": "yesterday"}), "not an RFC 3339 time"),
            (json!({"ts_emit": "2026-05-03 10:00:00Z"}), "not an RFC 3339 time"),
            (json!({"ts_emit": "2026-05-03T10:00:00"}), "not an RFC 3339 time"),
            (json!({"ts_emit": "2026-13-03T10:00:00Z"}), "not an RFC 3339 time"),
            (json!({"ts_emit": "2026-05-03T10:00:00.Z"}), "not an RFC 3339 time"),
            (json!({"ts_emit": "2026-05-03T10:00:00Z[UTC]"}), "not an RFC 3339 time"),
            (json!({"target_system": "fs"}), "together"),
            (json!({"target_resource": "/x"}), "together"),
            (json!({"target_system": long, "target_resource": "/x"}), "target_system has 257"),
            (json!({"target_system": "s", "target_resource": "x".repeat(4097)}), "has 4097"),
            (json!({"agent_id": long}), "agent_id has 257 bytes"),
            (json!({"agent_id": 5}), "cannot be parsed"),
            (json!({"drop_count": -1}), "cannot be parsed"),
            (json!({"error": {"a": 1}}), "cannot be parsed"),
        ] {
            let fault = with(members.clone()).map(|_| ()).unwrap_err().to_string();
            assert!(fault.contains(reason), "{members}: {fault}");
        }
        for (bytes, reason) in [
            (&b"[]"[..], "frame version null"),
            (b"", "cannot be parsed"),
            (b"\xff{}", "cannot be parsed"),
            (br#"{"v":"1","v":"1"}"#, "duplicate key 'v'"),
            (br#"{"v":"1","input":{"a":1,"a":2}}"#, "duplicate key 'a'"),
        ] {
            let fault = EventFrame::parse(bytes).map(|_| ()).unwrap_err().to_string();
            assert!(fault.contains(reason), "{fault}");
        }
    }

    #[test]
    fn values_at_the_limit_are_accepted_and_one_byte_more_is_not() {
        let name = "é".repeat(128);
        assert!(with(json!({"agent_id": name, "target_system": name, "target_resource": "x".repeat(4096)})).is_ok());
        let filled = |bytes: usize| {
            let empty = minimal().to_string().len() + r#","error":"""#.len();
            let mut frame = minimal();
            frame["error"] = "x".repeat(bytes - empty).into();
            EventFrame::parse(frame.to_string().as_bytes()).map(|_| ())
        };
        assert_eq!(filled(FRAME_BYTES_MAX), Ok(()));
        assert_eq!(filled(FRAME_BYTES_MAX + 1), Err(FrameFault::Size(FRAME_BYTES_MAX + 1)));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64), time in "\\PC{0,30}") {
            let _ = EventFrame::parse(&bytes);
            let _ = with(json!({"ts_emit": time}));
        }
    }
}
