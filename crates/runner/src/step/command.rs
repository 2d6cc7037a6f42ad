//! A command of a workflow: a Bash call through the step's gate, so that it is recorded, limited
//! and ended like any other.

use std::time::Duration;

use domain::Code;
use serde_json::{Value, json};
use tools::builtin::{COMMAND_META, CommandResult};
use workflow::{Status, StepOutcome};

use crate::gate::GateRequest;
use crate::step::attempt::{Failure, Work};

/// Time for the call beyond the command's own timeout: to end the command, and to record that.
const MARGIN: Duration = Duration::from_secs(10);

/// Part of the caller's name, in place of an agent's provider.
const SHELL: &str = "sh";

impl Work<'_> {
    pub(super) async fn command(
        &mut self,
        command: &str,
        dir: Option<&str>,
    ) -> Result<StepOutcome, Failure> {
        let within = self.attempt.within();
        let request = GateRequest {
            agent: self.attempt.identity(SHELL),
            root: self.attempt.dir(dir)?,
            builtins: true,
            servers: Vec::new(),
            plugins: Vec::new(),
            patience: within,
            withheld: Vec::new(),
            trace: self.trace.clone(),
            cancel: self.attempt.cancel.clone(),
        };
        let gate = self.open(request).await?;
        // A call's timeout is in whole seconds.
        let seconds = within.as_secs().max(1);
        let arguments = json!({"command": command, "timeout_seconds": seconds});
        let result = self.call(&*gate, gate.shell(), &arguments, within + MARGIN).await?;
        outcome(&result, within)
    }
}

fn outcome(result: &Value, within: Duration) -> Result<StepOutcome, Failure> {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let Ok(command) =
        serde_json::from_value::<CommandResult>(result["_meta"][COMMAND_META].clone())
    else {
        return Err(Failure::new(Code::UpstreamError, text));
    };
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
    let outcome = StepOutcome {
        output: part(command.stdout),
        stderr: part(command.stderr),
        exit_code: command.exit_code,
        ..StepOutcome::new(Status::Success)
    };
    match command.exit_code {
        Some(0) => Ok(outcome),
        _ if command.timed_out => {
            Err(Failure::timed_out(within)
                .with(StepOutcome { status: Status::TimedOut, ..outcome }))
        }
        code => {
            let message = match code {
                Some(code) => format!("the command failed with exit code {code}"),
                None => "the command was killed by a signal".to_owned(),
            };
            let outcome = StepOutcome { status: Status::Failure, ..outcome };
            Err(Failure::new(Code::CommandFailed, message).with(outcome))
        }
    }
}
