//! The record of a call: its start and its end. The serialized form is the journal's own, read back
//! only after a crash.

mod redaction;
pub mod run;
mod stored;

pub use redaction::{TARGET_OMITTED, TARGET_REDACTED, TARGETS_OMITTED};

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use domain::tool::Class;
use jiff::Timestamp;
use receipt::RiskLevel;
use receipt::canonical::Digest;
use serde::{Deserialize, Serialize};
use touch::targets::Touches;

/// A constant word, or one that was read back.
pub type Word = Cow<'static, str>;

pub enum Entry {
    Started(Box<CallStart>),
    Ended(Box<CallEnd>),
    /// Start and end in one: a refusal, an event from outside.
    Whole(Box<CallStart>, Box<CallEnd>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    ToolCall,
    PolicyDecision,
    System,
    /// A person added, removed, approved or switched a server.
    ServerChange,
    /// A server's tool or other item was approved, switched, or has changed.
    ToolChange,
    /// A token was created or revoked.
    TokenChange,
}

impl RecordKind {
    pub const ALL: [RecordKind; 6] = [
        RecordKind::ToolCall,
        RecordKind::PolicyDecision,
        RecordKind::System,
        RecordKind::ServerChange,
        RecordKind::ToolChange,
        RecordKind::TokenChange,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RecordKind::ToolCall => "tool_call",
            RecordKind::PolicyDecision => "policy_decision",
            RecordKind::System => "system",
            RecordKind::ServerChange => "server_change",
            RecordKind::ToolChange => "tool_change",
            RecordKind::TokenChange => "token_change",
        }
    }

    /// Reports whether this is a person's decision, which is not counted as a call.
    pub fn is_decision(self) -> bool {
        match self {
            RecordKind::ServerChange | RecordKind::ToolChange | RecordKind::TokenChange => true,
            RecordKind::ToolCall | RecordKind::PolicyDecision | RecordKind::System => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordStatus {
    /// Started and not ended yet.
    Pending,
    Success,
    Error,
    Blocked,
    Cancelled,
    /// The process that made the call ended before the call did.
    Interrupted,
    /// The call was sent, and its outcome is not known.
    Unknown,
}

impl RecordStatus {
    pub const ALL: [RecordStatus; 7] = [
        RecordStatus::Pending,
        RecordStatus::Success,
        RecordStatus::Error,
        RecordStatus::Blocked,
        RecordStatus::Cancelled,
        RecordStatus::Interrupted,
        RecordStatus::Unknown,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            RecordStatus::Pending => "pending",
            RecordStatus::Success => "success",
            RecordStatus::Error => "error",
            RecordStatus::Blocked => "blocked",
            RecordStatus::Cancelled => "cancelled",
            RecordStatus::Interrupted => "interrupted",
            RecordStatus::Unknown => "unknown",
        }
    }

    pub fn parse(text: &str) -> Option<RecordStatus> {
        RecordStatus::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// The agent that made a call. Two sessions of one program are two agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordAgent {
    pub name: String,
    pub client: String,
    pub token: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallStart {
    pub id: String,
    pub kind: RecordKind,
    pub source: Word,
    pub surface: Word,
    pub server: String,
    pub tool: String,
    pub agent: RecordAgent,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    pub at: Timestamp,
    /// The gate's tool that was called, on interfaces with an intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Word>,
    /// The class that the agent declared there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored::optional")]
    pub effective: Option<Class>,
    pub unverified: bool,
    pub warnings: Vec<String>,
    #[serde(with = "stored::touches")]
    pub touches: Touches,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    pub arguments: Payload,
    pub action: ReceiptAction,
    /// The source of an event from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<Box<OutsideSource>>,
}

impl CallStart {
    /// Reports whether the call may change things; such a call waits until its start is safe.
    pub fn changes_things(&self) -> bool {
        self.effective.is_some_and(|class| class > Class::Read)
    }

    /// Returns the start of a call that ended so: under the names that its end has, if it has any.
    pub(crate) fn ended(mut self: Arc<CallStart>, ended: &CallEnd) -> Arc<CallStart> {
        if ended.has_touches() && !ended.touches.is_said_by(&self.touches) {
            Arc::make_mut(&mut self).touches = ended.touches.clone();
        }
        self
    }
}

/// The action as the receipt describes it, beyond the members of the record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReceiptAction {
    pub kind: Word,
    #[serde(with = "stored")]
    pub risk: RiskLevel,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
}

/// One side of a call: its size, its hash, and the part that is kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Payload {
    pub bytes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored::optional")]
    pub digest: Option<Digest>,
    /// The kept text. The journal stores it separately: it is the longest part, and needs no
    /// escapes there.
    #[serde(skip)]
    pub kept: Option<String>,
    /// Only part of it is kept.
    pub truncated: bool,
    /// The hash of the kept text where `digest` is that of another one: a secret was removed, or
    /// only part of it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored::optional")]
    pub kept_digest: Option<Digest>,
}

/// The source of an event that the gate did not observe itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OutsideSource {
    pub pid: Option<i32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub drop_count: Option<u32>,
    pub issuer_name: Option<String>,
    pub model: Option<String>,
    pub operator: Option<EventOperator>,
    pub agent_id: Option<String>,
    pub agent_type: Option<String>,
    pub capture_method: Option<String>,
    /// The usage that the model reported, as JSON.
    pub usage: Option<String>,
}

/// The operator of the agent that an event is about. The journal keeps it as a pair of texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "[String; 2]", into = "[String; 2]")]
pub struct EventOperator {
    pub id: String,
    pub name: String,
}

impl From<[String; 2]> for EventOperator {
    fn from([id, name]: [String; 2]) -> Self {
        EventOperator { id, name }
    }
}

impl From<EventOperator> for [String; 2] {
    fn from(operator: EventOperator) -> Self {
        [operator.id, operator.name]
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallEnd {
    pub id: String,
    pub status: RecordStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<Word>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    pub duration: Duration,
    pub response: Payload,
    /// Warnings about the result itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The resources that the tool itself names, instead of those of the start; without a basis if it
    /// names none.
    #[serde(default, skip_serializing_if = "is_unstated", with = "stored::touches")]
    pub touches: Touches,
}

fn is_unstated(touches: &Touches) -> bool {
    touches.basis().is_none()
}

impl CallEnd {
    /// Returns the end of an action that took no time.
    pub fn at_once(id: String) -> CallEnd {
        CallEnd {
            id,
            status: RecordStatus::Success,
            error_code: None,
            error_message: None,
            duration: Duration::ZERO,
            response: Payload::default(),
            warnings: Vec::new(),
            touches: Touches::default(),
        }
    }

    /// Reports whether the tool itself named what the call touched.
    pub(crate) fn has_touches(&self) -> bool {
        !is_unstated(&self.touches)
    }

    /// Returns the end of a call whose process died.
    pub fn interrupted(call: &str) -> CallEnd {
        CallEnd {
            status: RecordStatus::Interrupted,
            error_message: Some(
                "the gate's process ended before the call did, which may have taken effect"
                    .to_owned(),
            ),
            ..CallEnd::at_once(call.to_owned())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use touch::targets::{Access, Target, TargetBasis, Touched};

    use super::*;

    pub(crate) fn started() -> CallStart {
        CallStart {
            id: "01980a5e-7000-7000-8000-000000000000".to_owned(),
            kind: RecordKind::ToolCall,
            source: Word::Borrowed("mcp"),
            surface: Word::Borrowed("mcp"),
            server: "files".to_owned(),
            tool: "write".to_owned(),
            agent: RecordAgent::default(),
            session: None,
            request_id: Some("1".to_owned()),
            at: Timestamp::UNIX_EPOCH,
            variant: None,
            declared: None,
            sensitivity: None,
            reason: Some("a \"reason\"\n".to_owned()),
            effective: Some(Class::Write),
            unverified: true,
            warnings: vec!["careful".to_owned()],
            touches: Touches::reported(Target::new("files", "/a".to_owned()), Access::Write),
            trace_id: None,
            arguments: Payload {
                bytes: 2,
                digest: Some(Digest::Exact(receipt::Hash::of(b"{}"))),
                kept: Some("{}".to_owned()),
                truncated: true,
                kept_digest: Some(Digest::Exact(receipt::Hash::of(b"{"))),
            },
            action: ReceiptAction {
                kind: Word::Borrowed("unknown"),
                risk: RiskLevel::High,
                correlation_id: None,
            },
            outside: Some(Box::new(OutsideSource { pid: Some(-1), ..OutsideSource::default() })),
        }
    }

    #[test]
    fn a_kind_has_one_spelling() {
        for kind in RecordKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.as_str()));
        }
    }

    #[test]
    fn an_operator_is_serialized_as_a_pair() {
        let operator = EventOperator { id: "acme".to_owned(), name: "Acme".to_owned() };
        let text = serde_json::to_string(&operator).unwrap();
        assert_eq!(text, r#"["acme","Acme"]"#);
        let back: EventOperator = serde_json::from_str(&text).unwrap();
        assert_eq!((back.id, back.name), (operator.id, operator.name));
    }

    #[test]
    fn the_resources_of_a_call_take_little_room_in_the_journal() {
        let touched = |resource: &str, access| Touched {
            target: Target::new("fs", resource.to_owned()).unwrap(),
            access,
        };
        let all = [touched("/a\u{1f}", Access::Write), touched("/b", Access::Read)];
        for (touches, expected) in [
            (Touches::default(), "null"),
            (Touches::nothing(TargetBasis::TOO_LONG), r#"["dropped: longer than 4096 bytes"]"#),
            (
                Touches::new(all, TargetBasis::fixed("config")),
                r#"["config","wfs","/a\u001f","rfs","/b"]"#,
            ),
        ] {
            let mut call = started();
            call.touches = touches.clone();
            let value = serde_json::to_value(&call).unwrap();
            assert_eq!(value["touches"].to_string(), expected);
            let back: CallStart = serde_json::from_value(value).unwrap();
            assert_eq!(back.touches, touches);
        }
    }

    #[test]
    fn a_call_start_round_trips_through_the_journal() {
        let text = serde_json::to_string(&started()).unwrap();
        let back: CallStart = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert_eq!((back.touches, back.effective), (started().touches, started().effective));
    }
}
