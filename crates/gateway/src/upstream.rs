//! A connection to an MCP server that is kept: each server has a driver of its own, so that one
//! which hangs, dies or babbles spoils nothing for the others.

mod connection;
mod driver;
mod endpoint;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use domain::upstream::State;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mcp::child::StderrTail;
use mcp::message::Raw;
use mcp::object::Members;
use mcp::peer::{Ask, Peer, RequestError};
use provider::{Call, CallContext, ProviderError, Reply, ToolProvider};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use endpoint::{Embedded, Endpoint};

use crate::registry::Registry;
use crate::upstream::driver::{Command, Driver, Shared};
use crate::{ServerSpec, limits};

pub struct Upstream {
    name: Arc<str>,
    /// The connection of the moment, if there is one.
    live: Arc<ArcSwapOption<Peer>>,
    state: watch::Receiver<State>,
    commands: mpsc::Sender<Command>,
    stderr: StderrTail,
    driver: std::sync::Mutex<Option<JoinHandle<()>>>,
    connect_timeout: Duration,
}

impl Upstream {
    pub(crate) fn new(
        spec: ServerSpec,
        registry: Arc<Registry>,
        connect_timeout: Duration,
    ) -> Arc<Upstream> {
        let (commands, receiver) = mpsc::channel(limits::DRIVER_COMMANDS_MAX);
        let (state_sender, state) = watch::channel(State::Idle);
        let live = Arc::new(ArcSwapOption::empty());
        let stderr = StderrTail::default();
        let name = spec.name.clone();
        let shared = Shared {
            registry,
            connect_timeout,
            live: live.clone(),
            state: state_sender,
            stderr: stderr.clone(),
        };
        let driver = Driver::new(spec, shared).spawn(commands.downgrade(), receiver);
        let driver = std::sync::Mutex::new(Some(driver));
        Arc::new(Upstream { name, live, state, commands, stderr, driver, connect_timeout })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn stderr(&self) -> Vec<String> {
        self.stderr.lines()
    }

    /// Returns once the first attempt to connect has ended, one way or the other.
    pub(crate) async fn settled(&self) {
        let mut state = self.state.clone();
        let _ = state.wait_for(|state| !matches!(state, State::Idle | State::Connecting)).await;
    }

    fn peer(&self) -> Result<Arc<Peer>, ProviderError> {
        self.live.load_full().ok_or_else(|| {
            ProviderError::Unavailable(match &*self.state.borrow() {
                State::Waiting(reason) => reason.clone(),
                State::Stopped => "it was stopped".to_owned(),
                State::Idle | State::Connecting | State::Ready => {
                    "it is still connecting".to_owned()
                }
            })
        })
    }
}

impl ToolProvider for Upstream {
    fn tools(&self) -> BoxFuture<'_, Result<Vec<Raw>, ProviderError>> {
        async {
            let peer = self.peer()?;
            mcp::client::list_tools(&peer, self.connect_timeout)
                .await
                .map_err(|error| ProviderError::Unavailable(error.to_string()))
        }
        .boxed()
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        ctx: &'a CallContext,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        async {
            let ask = Ask {
                method: "tools/call".to_owned(),
                params: Some(params(call)),
                timeout: ctx.remaining(),
                cancel: ctx.cancel.clone(),
                progress: ctx.progress.clone(),
            };
            let result = self.peer()?.request(ask).await.map_err(provider_error)?;
            Ok(Reply { result })
        }
        .boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async {
            let _ = self.commands.send(Command::Stop).await;
            let driver = self.driver.lock().unwrap_or_else(|error| error.into_inner()).take();
            if let Some(driver) = driver {
                let _ = driver.await;
            }
        }
        .boxed()
    }
}

/// The arguments go out as the text that was checked.
fn params(call: &Call) -> Raw {
    let mut params = Members::default();
    params.set("name", mcp::object::quote(&call.tool.tool));
    params.set("arguments", call.arguments.text().get());
    for (name, value) in &call.other {
        params.set(name, value.get());
    }
    params.write()
}

fn provider_error(error: RequestError) -> ProviderError {
    match error {
        RequestError::Refused(error) => ProviderError::Protocol(error),
        RequestError::Timeout(_) => ProviderError::Timeout,
        RequestError::Cancelled => ProviderError::Cancelled,
        RequestError::Closed(closed) => ProviderError::Unavailable(closed.to_string()),
    }
}
