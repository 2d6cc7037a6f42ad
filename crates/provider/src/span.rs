//! Spans, for those who make calls and those who pass them on. Whoever makes spans is told their
//! beginning and what is known of them; where they go is not known here.

use std::borrow::Cow;

use crate::TraceContext;

/// Makes spans. Without one, nothing of this costs more than a branch.
pub trait Tracer: Send + Sync {
    /// Starts a span under the one that `parent` names; where that is no valid context, it begins a
    /// trace of its own.
    fn start(
        &self,
        name: Cow<'static, str>,
        kind: SpanKind,
        parent: &TraceContext,
    ) -> Box<dyn Span>;
}

/// A span that has been started. It ends when it is dropped.
pub trait Span: Send + Sync {
    /// What children are started under, and what others are told.
    fn context(&self) -> TraceContext;

    /// Never with arguments or results of a call: spans leave the machine.
    fn set(&mut self, key: &'static str, value: Value<'_>);

    /// Marks it as failed. The same holds for the message.
    fn fail(&mut self, message: &str);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// Answers a request from outside.
    Server,
    /// Waits for somebody outside.
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Text(&'a str),
    Integer(i64),
    Number(f64),
    Flag(bool),
}
