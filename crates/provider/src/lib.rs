//! The interfaces between the gate and the tools' providers. A [`ToolProvider`] runs allowed calls;
//! a [`Gate`] is the interface through which callers make them. This crate has no implementations.

mod call;
mod context;
mod span;

use std::path::PathBuf;
use std::sync::Arc;

use domain::upstream::UpstreamFailure;
use futures_util::future::BoxFuture;
use mcp::child::StderrTail;
use mcp::message::Raw;

pub use call::{Call, Declared, Surface};
pub use context::{AskClient, CallContext, Sink, TraceContext, TraceIds};
pub use span::{Span, SpanKind, Tracer, Value};

/// A source of tools: a connected server, the built-in tools, a plugin.
pub trait ToolProvider: Send + Sync {
    /// Lists every tool, each as its JSON object from `tools/list`.
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>>;

    /// Runs an allowed call. The future is polled to completion; the provider enforces `ctx.cancel`
    /// and `ctx.deadline`.
    fn call<'a>(
        &'a self,
        call: &'a Call,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>>;

    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A source of tools that must be started and can be restarted, such as a plugin's process.
pub trait Connector: Send + Sync {
    /// Starts the provider. Its output other than responses goes to `said`. Error messages are
    /// written for people.
    fn connect<'a>(
        &'a self,
        said: &'a StderrTail,
    ) -> BoxFuture<'a, Result<Arc<dyn ProviderConnection>, UpstreamFailure>>;
}

/// A connection to a provider that can be lost. Closing it stops what was started for it.
pub trait ProviderConnection: ToolProvider {
    /// Waits until the connection is lost and returns the reason.
    fn lost(&self) -> BoxFuture<'_, UpstreamFailure>;
}

/// The result object of `tools/call`, unchanged from the provider.
#[derive(Clone, Debug)]
pub struct Reply {
    pub result: Raw,
    /// The file or folder that the call opened, by its path without links, if the provider opened it
    /// itself.
    pub opened: Option<PathBuf>,
}

impl From<Raw> for Reply {
    fn from(result: Raw) -> Reply {
        Reply { result, opened: None }
    }
}

/// The reason that a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProviderError {
    /// The provider did not get the call, or refused to act on it.
    #[error("{0}")]
    Unavailable(String),
    /// The provider got the call, and its response was lost or cannot be used.
    #[error("{0}")]
    Lost(String),
    #[error("no response in time")]
    Timeout { sent: bool },
    #[error("cancelled")]
    Cancelled { sent: bool },
    #[error("the response is too large")]
    TooLarge,
    /// The server responded with a JSON-RPC error.
    #[error("{0}")]
    Protocol(mcp::ErrorObject),
}

impl ProviderError {
    /// Reports whether the provider may have got the call and acted on it.
    pub fn is_sent(&self) -> bool {
        match self {
            ProviderError::Unavailable(_) => false,
            ProviderError::Timeout { sent } | ProviderError::Cancelled { sent } => *sent,
            ProviderError::Lost(_) | ProviderError::TooLarge | ProviderError::Protocol(_) => true,
        }
    }
}

/// The only way to make a call, from any surface. Every call passes through the whole pipeline.
pub trait Gate: Send + Sync {
    fn call<'a>(&'a self, call: Call, ctx: &'a CallContext) -> BoxFuture<'a, CallOutcome>;
}

/// The outcome of a call, which has been recorded by then.
#[derive(Clone, Debug)]
pub enum CallOutcome {
    /// The provider responded; `warnings` are for the caller.
    Replied { reply: Reply, warnings: Vec<String>, kept: RecordState },
    /// Policy rejected the call; nothing was sent to the provider.
    Refused(domain::Refusal),
    /// Policy allowed the call, but there is no result.
    Failed { refusal: domain::Refusal, error: ProviderError },
}

/// The durability of a call's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    Committed,
    /// The ledger cannot be written; the record is queued in memory, and the caller is warned.
    Queued,
}
