//! Tracing spans for code that makes or forwards calls. A tracer receives each span's start and its
//! attributes; this module does not know where spans are exported.

use std::borrow::Cow;

use crate::TraceContext;

/// Creates spans. Without a tracer, tracing costs no more than a branch.
pub trait Tracer: Send + Sync {
    /// Starts a span under the one named by `parent`, or a new trace if `parent` is not a valid
    /// context.
    fn start(
        &self,
        name: Cow<'static, str>,
        kind: SpanKind,
        parent: &TraceContext,
    ) -> Box<dyn Span>;
}

/// A started span. It ends when dropped.
pub trait Span: Send + Sync {
    /// Returns the context to start children under and to propagate to others.
    fn context(&self) -> TraceContext;

    /// Sets an attribute. Never pass a call's arguments or results: spans leave the machine.
    fn set(&mut self, key: &'static str, value: Value<'_>);

    /// Marks the span as failed. The message must not contain arguments or results either.
    fn fail(&mut self, message: &str);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// Handles a request from outside.
    Server,
    /// Waits for an outside party.
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    Text(&'a str),
    Integer(i64),
    Number(f64),
    Flag(bool),
}
