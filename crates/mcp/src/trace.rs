//! The trace context that travels with a message.

/// W3C trace context sent next to a message, in headers. None of it has been validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub parent: String,
    pub state: Option<String>,
}
