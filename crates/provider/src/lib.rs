//! The seam between the gate and what does the work. A [`ToolProvider`] runs calls that have been
//! allowed; a [`Gate`] is what those who want calls made are handed. Nothing is implemented here.

mod call;
mod context;
mod span;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use mcp::child::StderrTail;
use mcp::message::Raw;

pub use call::{Call, Declared, Surface};
pub use context::{AskClient, CallContext, Sink, TraceContext, TraceIds};
pub use span::{Span, SpanKind, Tracer, Value};

/// A source of tools: a connected server, the built-in tools, a plugin.
pub trait ToolProvider: Send + Sync {
    /// Every tool, each as the JSON object of `tools/list`.
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>>;

    /// Runs an allowed call. The future is polled to its end; it honours `ctx.cancel` and
    /// `ctx.deadline` itself.
    fn call<'a>(
        &'a self,
        call: &'a Call,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>>;

    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Something that offers tools once it is started, and may be started again: a plugin's process.
pub trait Connector: Send + Sync {
    /// What it says beside its answers goes to `said`. The words of an error are for people.
    fn connect<'a>(
        &'a self,
        said: &'a StderrTail,
    ) -> BoxFuture<'a, Result<Arc<dyn ProviderConnection>, String>>;
}

/// A provider that can be lost; closing it ends what was started for it.
pub trait ProviderConnection: ToolProvider {
    /// Waits until it is gone, and says why.
    fn lost(&self) -> BoxFuture<'_, String>;
}

/// The result object of `tools/call`, as the provider gave it.
#[derive(Clone, Debug)]
pub struct Reply {
    pub result: Raw,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum ProviderError {
    #[error("{0}")]
    Unavailable(String),
    #[error("no answer in time")]
    Timeout,
    #[error("cancelled")]
    Cancelled,
    /// The server answered with a JSON-RPC error.
    #[error("{0}")]
    Protocol(mcp::ErrorObject),
}

/// The one way to make a call, from any surface: through the whole pipeline.
pub trait Gate: Send + Sync {
    fn call<'a>(&'a self, call: Call, ctx: &'a CallContext) -> BoxFuture<'a, CallOutcome>;
}

/// How a call ended. It has been recorded by then.
#[derive(Clone, Debug)]
pub enum CallOutcome {
    /// The provider answered; `warnings` are for the caller.
    Replied { reply: Reply, warnings: Vec<String>, kept: RecordState },
    /// Policy said no; nothing was sent to the provider.
    Refused(domain::Refusal),
    /// It was sent, and no result came back.
    Failed { refusal: domain::Refusal, error: ProviderError },
}

/// How safe the record of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    Committed,
    /// The ledger cannot be written; the record waits in memory, and the caller is told.
    Queued,
}
