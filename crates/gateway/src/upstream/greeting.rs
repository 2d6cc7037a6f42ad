//! The first words to a server, which find out the era of its protocol: the stateless one where it
//! is offered, and otherwise the handshake. What says nothing about the server's era is forgotten.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use domain::config::ProtocolEra;
use domain::upstream::UpstreamFailure;
use futures_util::FutureExt;
use mcp::ErrorObject;
use mcp::handshake::{self, HandshakeError, Welcome};
use mcp::meta::ClientMeta;
use mcp::peer::{Peer, RequestError};
use mcp::stateless::{self, DISCOVER, ProbeError, ProbeOutcome};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::limits;

/// Nothing is known.
const UNKNOWN: u8 = 0;
/// The server answered a probe like one that only knows the handshake, and then took part in that.
const HANDSHAKE: u8 = 1;
/// Its process ended at the probe, and at the handshake too.
const ENDED: u8 = 2;

/// The knowledge of a server's era from earlier connections.
#[derive(Default)]
pub(super) struct EraMemory(AtomicU8);

impl EraMemory {
    /// Returns the era to begin the next connection in.
    pub(super) fn next(&self, configured: ProtocolEra) -> ProtocolEra {
        match (configured, self.0.load(Ordering::Relaxed)) {
            (ProtocolEra::Auto, HANDSHAKE | ENDED) => ProtocolEra::Handshake,
            (configured, _) => configured,
        }
    }

    fn keep(&self, known: u8) {
        self.0.store(known, Ordering::Relaxed);
    }

    /// Notes the outcome of a connection that began with a handshake because its process ended at
    /// the probe.
    pub(super) fn ended_at_probe(&self, is_open: bool) {
        self.keep(if is_open { HANDSHAKE } else { ENDED });
    }
}

/// The reason that a server did not agree.
pub(super) struct GreetingFault {
    pub(super) failure: UpstreamFailure,
    /// The connection ended at the probe.
    pub(super) at_probe: bool,
}

impl From<UpstreamFailure> for GreetingFault {
    fn from(failure: UpstreamFailure) -> GreetingFault {
        GreetingFault { failure, at_probe: false }
    }
}

/// The greeting of one connection.
pub(super) struct Greeting<'a> {
    pub(super) peer: &'a Peer,
    /// The capabilities to declare.
    pub(super) capabilities: &'a RawValue,
    pub(super) timeout: Duration,
    pub(super) memory: &'a EraMemory,
}

impl Greeting<'_> {
    pub(super) async fn speak(self, era: ProtocolEra) -> Result<Welcome, GreetingFault> {
        match era {
            ProtocolEra::Handshake => {
                let welcome = self.initialize().await;
                if welcome.is_err() {
                    // The server may be another one by now.
                    self.memory.keep(UNKNOWN);
                }
                Ok(welcome?)
            }
            ProtocolEra::Stateless => match self.probe().await {
                Ok(ProbeOutcome::Stateless(welcome)) => Ok(welcome),
                Ok(ProbeOutcome::Handshake) => {
                    let words = "the server does not offer protocol 2026-07-28, which the config \
                                 requires with 'protocol'";
                    Err(UpstreamFailure::from(words.to_owned()).into())
                }
                Ok(ProbeOutcome::Inconclusive(error)) => {
                    Err(request_failure(DISCOVER, &error).into())
                }
                Err(error) => Err(probe_failure(&error).into()),
            },
            ProtocolEra::Auto => self.find_out().await,
        }
    }

    async fn find_out(&self) -> Result<Welcome, GreetingFault> {
        let mut probing = self.probe().boxed();
        let wait = limits::PROBE_WAIT.min(self.timeout / 4);
        let Ok(probed) = tokio::time::timeout(wait, &mut probing).await else {
            // It starts slowly, or ignores what it does not know: then it answers only this.
            let failure = match self.initialize().await {
                Ok(welcome) => return Ok(welcome),
                Err(failure) => failure,
            };
            return match probing.now_or_never() {
                Some(Ok(ProbeOutcome::Stateless(welcome))) => Ok(welcome),
                _ => Err(failure.into()),
            };
        };
        match probed {
            Ok(ProbeOutcome::Stateless(welcome)) => Ok(welcome),
            Ok(ProbeOutcome::Handshake) => {
                let welcome = self.initialize().await?;
                self.memory.keep(HANDSHAKE);
                Ok(welcome)
            }
            Ok(ProbeOutcome::Inconclusive(error)) if retry_after(&error).is_some() => {
                Err(request_failure(DISCOVER, &error).into())
            }
            Ok(ProbeOutcome::Inconclusive(_)) => Ok(self.initialize().await?),
            Err(error) => {
                let at_probe = matches!(error, ProbeError::Request(RequestError::Closed(_)));
                Err(GreetingFault { failure: probe_failure(&error), at_probe })
            }
        }
    }

    async fn probe(&self) -> Result<ProbeOutcome, ProbeError> {
        let client = ClientMeta::new(&info(), self.capabilities);
        stateless::probe(self.peer, client, self.timeout).await
    }

    async fn initialize(&self) -> Result<Welcome, UpstreamFailure> {
        let agreed =
            handshake::initialize(self.peer, &info(), self.capabilities, self.timeout).await;
        agreed.map_err(|error| match error {
            HandshakeError::Request(error) => request_failure("initialize", &error),
            error => error.to_string().into(),
        })
    }
}

fn info() -> Value {
    json!({"name": "countersign", "version": env!("CARGO_PKG_VERSION")})
}

fn probe_failure(error: &ProbeError) -> UpstreamFailure {
    match error {
        ProbeError::Request(error) => request_failure(DISCOVER, error),
        error => error.to_string().into(),
    }
}

/// Separates an error that the server worded from our own words.
pub(super) fn request_failure(method: &str, error: &RequestError) -> UpstreamFailure {
    match error {
        RequestError::Refused(refused) => refusal(method, refused),
        error => format!("{method}: {error}").into(),
    }
}

fn refusal(method: &str, refused: &ErrorObject) -> UpstreamFailure {
    let reason = format!("{method}: the server answered with error {}", refused.code);
    let failure = UpstreamFailure::new(&reason, Some(&refused.message));
    UpstreamFailure { retry_after: refused.retry_after(), ..failure }
}

fn retry_after(error: &RequestError) -> Option<Duration> {
    match error {
        RequestError::Refused(refused) => refused.retry_after(),
        _ => None,
    }
}
