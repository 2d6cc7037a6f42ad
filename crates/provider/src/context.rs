//! What surrounds a call while it runs: how long it may take, how it is stopped, and the way back
//! to the client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use mcp::message::Raw;
use mcp::peer::RequestError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub struct CallContext {
    pub deadline: Instant,
    /// Cancelled when nobody wants the result any more.
    pub cancel: CancellationToken,
    /// Takes params of `notifications/progress`; absent when the client asked for none.
    pub progress: Option<Sink>,
    /// Takes params of `notifications/message`; absent when the client hears no logs.
    pub log: Option<Sink>,
    /// Sampling, elicitation and roots; absent when there is no client to ask.
    pub ask_client: Option<Arc<dyn AskClient>>,
    pub trace: TraceContext,
}

pub type Sink = Arc<dyn Fn(Raw) + Send + Sync>;

/// Asks the client that made the call.
pub trait AskClient: Send + Sync {
    /// What the client declared for a capability (`sampling`, `elicitation`, `roots`), as JSON;
    /// nothing where it did not.
    fn capability(&self, name: &str) -> Option<String>;

    fn ask<'a>(
        &'a self,
        method: &'a str,
        params: Option<Raw>,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Raw, RequestError>>;

    /// The same client, for questions that come when the call has ended. Whoever keeps it does not
    /// keep the client's session.
    fn between_calls(&self) -> Arc<dyn AskClient>;
}

/// W3C trace context as the caller gave it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

impl CallContext {
    /// A context with nothing but a deadline.
    pub fn within(timeout: Duration) -> CallContext {
        CallContext {
            deadline: Instant::now() + timeout,
            cancel: CancellationToken::new(),
            progress: None,
            log: None,
            ask_client: None,
            trace: TraceContext::default(),
        }
    }

    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("remaining", &self.remaining()).finish_non_exhaustive()
    }
}
