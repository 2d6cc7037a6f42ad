//! One record per call: opened when the call is admitted or refused, closed when it has ended.

use std::time::Duration;

use jiff::Timestamp;

pub enum Entry {
    Started(Box<Started>),
    Ended(Box<Ended>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ToolCall,
    PolicyDecision,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::ToolCall => "tool_call",
            Kind::PolicyDecision => "policy_decision",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Started and not ended yet.
    Pending,
    Success,
    Error,
    Blocked,
    Cancelled,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Success => "success",
            Status::Error => "error",
            Status::Blocked => "blocked",
            Status::Cancelled => "cancelled",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    pub token: String,
    pub client: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Started {
    pub id: String,
    pub kind: Kind,
    pub source: &'static str,
    pub surface: &'static str,
    pub server: String,
    pub tool: String,
    pub agent: Agent,
    pub session: Option<String>,
    pub request_id: Option<String>,
    pub at: Timestamp,
    /// The gate's tool that was called, on surfaces with an intent.
    pub variant: Option<&'static str>,
    /// The class that the agent declared there.
    pub declared: Option<&'static str>,
    pub sensitivity: Option<&'static str>,
    pub reason: Option<String>,
    pub effective: Option<&'static str>,
    pub warnings: Vec<String>,
    pub arguments_bytes: usize,
}

#[derive(Clone, Debug)]
pub struct Ended {
    pub id: String,
    pub status: Status,
    pub error_code: Option<&'static str>,
    pub error_message: Option<String>,
    pub duration: Duration,
    pub response_bytes: usize,
}

#[derive(Clone, Debug)]
pub struct Activity {
    pub id: String,
    pub started: Started,
    pub status: Status,
    pub error_code: Option<&'static str>,
    pub error_message: Option<String>,
    pub duration: Option<Duration>,
    pub response_bytes: usize,
}

impl From<Started> for Activity {
    fn from(started: Started) -> Self {
        Activity {
            id: started.id.clone(),
            started,
            status: Status::Pending,
            error_code: None,
            error_message: None,
            duration: None,
            response_bytes: 0,
        }
    }
}

impl Activity {
    pub(crate) fn end(&mut self, ended: Ended) {
        self.status = ended.status;
        self.error_code = ended.error_code;
        self.error_message = ended.error_message;
        self.duration = Some(ended.duration);
        self.response_bytes = ended.response_bytes;
    }
}

/// What a query asks for; absent members fit all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub server: Option<String>,
    pub tool: Option<String>,
    pub status: Option<Status>,
    pub intent_type: Option<String>,
}

impl Filter {
    pub(crate) fn fits(&self, record: &Activity) -> bool {
        let started = &record.started;
        self.server.as_ref().is_none_or(|server| *server == started.server)
            && self.tool.as_ref().is_none_or(|tool| *tool == started.tool)
            && self.status.is_none_or(|status| status == record.status)
            && self
                .intent_type
                .as_ref()
                .is_none_or(|class| Some(class.as_str()) == started.declared)
    }
}
