//! How the program ends: the exit code, and one clear message on stderr.

use std::io::Write;
use std::process::ExitCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    /// The user's input is wrong.
    Input = 1,
    /// The config or workflow is wrong.
    Config = 2,
    /// A call or run failed.
    Call = 3,
    /// A file, port or permission failed.
    System = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    /// Empty where everything has been said already.
    message: String,
}

impl Failure {
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure::with_status(Exit::Input as u8, message)
    }

    pub(crate) fn config(message: impl Into<String>) -> Failure {
        Failure::with_status(Exit::Config as u8, message)
    }

    pub(crate) fn call(message: impl Into<String>) -> Failure {
        Failure::with_status(Exit::Call as u8, message)
    }

    pub(crate) fn system(message: impl Into<String>) -> Failure {
        Failure::with_status(Exit::System as u8, message)
    }

    /// Ends with the exit code of another program.
    pub(crate) fn with_status(status: u8, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into() }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn report(self) -> ExitCode {
        if !self.message.is_empty() {
            // stderr may be closed; there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "countersign: {}", self.message);
        }
        ExitCode::from(self.status)
    }
}

/// Help and version are no errors; anything else that clap refuses is wrong input.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    let exit = if error.use_stderr() { Exit::Input } else { Exit::Done };
    exit.into()
}
