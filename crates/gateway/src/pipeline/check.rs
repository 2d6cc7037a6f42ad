//! Checks the arguments against the tool's input schema: at once if the schema is known to be
//! cheap, else on a separate thread with a deadline, one at a time for each server. A server with a
//! costly schema delays only the calls to it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::schema::SchemaVerdict;
use domain::tool::Tool;
use provider::{Call, CallContext};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use crate::limits::CHECK_TIME_MAX;

/// The long checks under way, by server.
#[derive(Default)]
pub(crate) struct Checks {
    by_server: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Checks {
    pub(super) async fn arguments(
        &self,
        tool: &Arc<Tool>,
        call: &Call,
        ctx: &CallContext,
    ) -> SchemaVerdict {
        let at_once = tool.schema_at_once();
        if let Some(checked) = at_once.and_then(|schema| schema.check_at_once(&call.arguments)) {
            return checked;
        }
        let deadline = ctx.deadline.min(Instant::now() + CHECK_TIME_MAX);
        let late = || unknown("the check took too long");
        tokio::select! {
            checked = self.at_length(tool, call) => checked,
            () = ctx.cancel.cancelled() => late(),
            () = tokio::time::sleep_until(deadline) => late(),
        }
    }

    async fn at_length(&self, tool: &Arc<Tool>, call: &Call) -> SchemaVerdict {
        let Ok(turn) = self.turn(&call.tool.server).acquire_owned().await else {
            return unknown("the gate is shutting down");
        };
        let (done, checked) = oneshot::channel();
        match start(turn, tool.clone(), call.arguments.clone(), done) {
            Ok(()) => checked.await.unwrap_or_else(|_| unknown("the check failed")),
            Err(error) => unknown(&format!("cannot start a thread: {error}")),
        }
    }

    /// Bounded by the listed servers: calls to any other server stop at its lock.
    fn turn(&self, server: &str) -> Arc<Semaphore> {
        let mut by_server = self.by_server.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = by_server.entry(server.to_owned());
        turn.or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
    }
}

/// Runs on its own thread: the program would wait for a thread of the runtime before it exits.
fn start(
    turn: OwnedSemaphorePermit,
    tool: Arc<Tool>,
    arguments: text::json::Object,
    done: oneshot::Sender<SchemaVerdict>,
) -> std::io::Result<()> {
    let work = move || {
        let checked = tool.schema().check(&arguments);
        drop(turn);
        // The caller may have gone meanwhile.
        let _ = done.send(checked);
    };
    std::thread::Builder::new().name("schema".to_owned()).spawn(work).map(drop)
}

fn unknown(why: &str) -> SchemaVerdict {
    SchemaVerdict::Unknown(format!(
        "the arguments were not checked against the tool's input schema: {why}"
    ))
}
