//! Calls of a wrapped server's client that have not been answered yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use mcp::message::Raw;
use mcp::{ErrorObject, Id};
use provider::ProviderError;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::limits::WRAP_CALLS_MAX;

/// Calls by the client's request id.
#[derive(Default)]
pub(super) struct CallsInFlight(Mutex<HashMap<Id, CallInFlight>>);

pub(super) struct CallInFlight {
    pub(super) cancel: CancellationToken,
    pub(super) answer: oneshot::Sender<Result<Raw, ProviderError>>,
    /// The response line, unchanged.
    pub(super) line: Arc<OnceLock<Bytes>>,
}

impl CallsInFlight {
    /// Adds a call, or returns one sentence saying why it cannot.
    pub(super) fn insert(&self, id: &Id, call: CallInFlight) -> Result<(), &'static str> {
        let mut calls = self.lock();
        if calls.contains_key(id) {
            return Err("a call with this id is still running");
        }
        if calls.len() >= WRAP_CALLS_MAX {
            return Err("too many calls are running, try again later");
        }
        calls.insert(id.clone(), call);
        Ok(())
    }

    /// Takes the response to a call, which is sent once it has been recorded; returns any other
    /// response.
    pub(super) fn answer(
        &self,
        id: &Id,
        outcome: Result<Raw, ErrorObject>,
        line: Bytes,
    ) -> Option<Bytes> {
        let Some(call) = self.lock().remove(id) else {
            return Some(line);
        };
        let _ = call.line.set(line);
        // The call may have been cancelled; then nothing waits for the response.
        let _ = call.answer.send(outcome.map_err(ProviderError::Protocol));
        None
    }

    /// Fails a call whose response cannot be used; reports whether there is such a call.
    pub(super) fn fail(&self, id: &Id, error: ProviderError) -> bool {
        let Some(call) = self.lock().remove(id) else {
            return false;
        };
        let _ = call.answer.send(Err(error));
        true
    }

    pub(super) fn cancel(&self, id: &Id) {
        if let Some(call) = self.lock().get(id) {
            call.cancel.cancel();
        }
    }

    pub(super) fn remove(&self, id: &Id) {
        self.lock().remove(id);
    }

    /// Fails every waiting call: the server is gone.
    pub(super) fn end_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, CallInFlight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call as the provider forwards it: the client's bytes, and the channel for the response.
pub(super) struct ForwardedCall {
    pub(super) line: Bytes,
    pub(super) answer: oneshot::Receiver<Result<Raw, ProviderError>>,
}

/// Calls that the pipeline has not handed over yet, by record id.
#[derive(Default)]
pub(super) struct Handover(Mutex<HashMap<String, ForwardedCall>>);

impl Handover {
    pub(super) fn put(&self, id: String, call: ForwardedCall) {
        self.lock().insert(id, call);
    }

    pub(super) fn take(&self, id: &str) -> Option<ForwardedCall> {
        self.lock().remove(id)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ForwardedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
