//! A command of a workflow: a call of Bash through the step's gate, so that it is recorded, bounded
//! and ended like any other.

use std::sync::Arc;
use std::time::Duration;

use domain::Code;
use domain::json::Object;
use domain::workflow::{Outcome, Status};
use provider::{Call, CallContext, Declared, ProviderError, Surface, TraceContext};
use serde_json::{Value, json};
use store::run::StepRecord;
use tools::builtin::{COMMAND_META, Command};

use super::{Attempt, Failure};
use crate::gate::{StepGate, Wanted};

/// What the call may take beyond the command's own time: to end it, and to record that.
const MARGIN: Duration = Duration::from_secs(10);

/// Part of who calls, in the place where an agent's provider stands.
const SHELL: &str = "sh";

impl Attempt {
    pub(super) async fn command(
        &self,
        (command, dir): (&str, Option<&str>),
        record: &mut StepRecord,
        trace: TraceContext,
        opened: &mut Option<Arc<dyn StepGate>>,
    ) -> Result<Outcome, Failure> {
        let within = self.within();
        let wanted = Wanted {
            agent: self.identity(SHELL),
            root: self.dir(dir)?,
            builtins: true,
            servers: Vec::new(),
            patience: within,
            trace: trace.clone(),
        };
        let gate = self.open(wanted, record, opened).await?;
        // A call is made in whole seconds.
        let seconds = within.as_secs().max(1);
        let arguments = json!({"command": command, "timeout_seconds": seconds}).to_string();
        let arguments = Object::parse(&arguments).ok().flatten().unwrap_or_else(Object::empty);
        let session: Arc<str> = uuid::Uuid::now_v7().to_string().into();
        record.sessions.push(session.to_string());
        let call = Call {
            id: uuid::Uuid::now_v7().to_string(),
            caller: gate.caller(),
            client: None,
            session: Some(session),
            request_id: None,
            surface: Surface::Run,
            tool: gate.shell(),
            arguments,
            declared: Declared::Nothing,
            other: Vec::new(),
        };
        let ctx = CallContext {
            cancel: self.cancel.clone(),
            trace,
            ..CallContext::within(within + MARGIN)
        };
        outcome(gate.gate().call(call, &ctx).await, within)
    }
}

fn outcome(called: provider::Outcome, within: Duration) -> Result<Outcome, Failure> {
    let reply = match called {
        provider::Outcome::Replied { reply, .. } => reply,
        provider::Outcome::Refused(refusal) => {
            return Err(Failure::new(refusal.code, refusal.message));
        }
        provider::Outcome::Failed { error: ProviderError::Cancelled, .. } => {
            return Err(Failure::cancelled());
        }
        provider::Outcome::Failed { refusal, .. } => {
            return Err(Failure::new(refusal.code, refusal.message));
        }
    };
    let result: Value = serde_json::from_str(reply.result.get()).unwrap_or_default();
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let Ok(command) = serde_json::from_value::<Command>(result["_meta"][COMMAND_META].clone())
    else {
        return Err(Failure::new(Code::UpstreamError, text));
    };
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
    let outcome = Outcome {
        output: part(command.stdout),
        stderr: part(command.stderr),
        exit_code: command.exit_code,
        ..Outcome::new(Status::Success)
    };
    match command.exit_code {
        Some(0) => Ok(outcome),
        _ if command.timed_out => {
            let outcome = Outcome { status: Status::TimedOut, ..outcome };
            Err(Failure { outcome: Box::new(outcome), ..Failure::timed_out(within) })
        }
        code => {
            let message = match code {
                Some(code) => format!("the command ended with exit code {code}"),
                None => "the command was ended by a signal".to_owned(),
            };
            let outcome = Outcome { status: Status::Failure, ..outcome };
            Err(Failure::with(Code::CommandFailed, message, outcome))
        }
    }
}
