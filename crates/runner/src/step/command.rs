//! A command of a workflow: a Bash call through the step's gate, so that it is recorded, limited
//! and ended like any other.

use std::time::Duration;

use domain::Code;
use serde_json::{Value, json};
use tools::builtin::{COMMAND_META, CommandResult};
use workflow::{OUTPUT_BYTES_MAX, Status, StepOutcome};

use crate::gate::GateRequest;
use crate::step::attempt::{Failure, Work};

/// Time for the call beyond the command's own timeout: to end the command, and to record that.
const MARGIN: Duration = Duration::from_secs(10);

/// Bytes of a command's stdout that are read: more than later steps can use, so that a longer one
/// is recognised.
const READ_BYTES_MAX: usize = OUTPUT_BYTES_MAX + 1024;

/// Linux's limit for one argument of a program.
const ARGUMENT_BYTES_MAX: usize = 128 * 1024;

/// A shell's exit code for a program that was found but could not be started.
const NOT_STARTED: i32 = 126;

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
            kept_bytes: Some(READ_BYTES_MAX),
            withheld: Vec::new(),
            trace: self.trace.clone(),
            cancel: self.attempt.cancel.clone(),
        };
        let gate = self.open(request).await?;
        let arguments = json!({"command": command, "timeout_seconds": within.as_secs_f64()});
        let result = self.call(&*gate, gate.shell(), &arguments, within + MARGIN).await?;
        outcome(&result, within).map_err(|failure| explained(failure, command))
    }
}

/// Explains the failure of a program that was given too long a value.
fn explained(failure: Failure, command: &str) -> Failure {
    if failure.outcome.exit_code != Some(NOT_STARTED) || command.len() < ARGUMENT_BYTES_MAX {
        return failure;
    }
    let message = format!(
        "{}: a program takes no argument over {} KiB; pass a longer value through a pipe, as in \
         printf %s {{{{.states.S.Output}}}} | program",
        failure.message,
        ARGUMENT_BYTES_MAX / 1024
    );
    Failure { message, ..failure }
}

/// Judges a command. One that was killed may have stopped halfway, so that it is not run again.
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
            let (status, is_unclear) = (Status::TimedOut, true);
            Err(Failure::timed_out(within).with(StepOutcome { status, is_unclear, ..outcome }))
        }
        code => {
            let message = match code {
                Some(code) => format!("the command failed with exit code {code}"),
                None => "the command was killed by a signal".to_owned(),
            };
            let (status, is_unclear) = (Status::Failure, code.is_none());
            let outcome = StepOutcome { status, is_unclear, ..outcome };
            Err(Failure::new(Code::CommandFailed, message).with(outcome))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_was_killed_is_not_run_again_and_one_that_failed_is() {
        for (exit_code, timed_out, expected) in
            [(Some(7), false, false), (None, false, true), (None, true, true)]
        {
            let range = json!({"start": 0, "end": 0});
            let command = json!({"exit_code": exit_code, "timed_out": timed_out,
                                 "stdout": range, "stderr": range});
            let result = json!({"_meta": {COMMAND_META: command}});
            let Err(failure) = outcome(&result, Duration::from_secs(1)) else { panic!("{result}") };
            assert_eq!(failure.outcome.is_unclear, expected, "{result}");
        }
    }
}
