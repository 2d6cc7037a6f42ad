//! The end of the program: the exit code, and one clear message on stderr.

use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use domain::trust::visible;

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

/// The exit code of `receipt verify` and `ledger check`, as of other verifiers, if something is
/// broken.
pub(crate) const BROKEN: u8 = 1;
/// The exit code of `receipt verify` and `ledger check` if nothing could be checked.
pub(crate) const NOT_CHECKED: u8 = 2;

#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    /// The message; empty if everything has been reported already.
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

    /// Returns the failure for a ledger that cannot be used.
    pub(crate) fn store(error: store::StoreError) -> Failure {
        Failure::system(format!("{}: {error}", error.code()))
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
            // stderr may be closed; then the message is lost.
            let _ = writeln!(std::io::stderr(), "countersign: {}", visible(&self.message));
        }
        ExitCode::from(self.status)
    }
}

/// Exits after clap's message. Help and version are not errors; any other refusal is wrong input.
/// For a verifier the code 1 means that something is broken, so wrong arguments must not end with
/// it.
pub(crate) fn usage(mut error: clap::Error, words: impl Iterator<Item = String>) -> ExitCode {
    hide_supervise(&mut error);
    let _ = error.print();
    if !error.use_stderr() {
        return Exit::Done.into();
    }
    let words: Vec<String> = words.collect();
    let has = |pair: [&str; 2]| words.windows(2).any(|two| two == pair);
    let is_verifying = has(["receipt", "verify"]) || has(["ledger", "check"]);
    if is_verifying { NOT_CHECKED.into() } else { Exit::Input.into() }
}

/// Removes the hidden command from the list of commands in an error.
fn hide_supervise(error: &mut clap::Error) {
    let Some(ContextValue::Strings(names)) = error.get(ContextKind::ValidSubcommand) else {
        return;
    };
    let shown = names.iter().filter(|name| *name != "supervise").cloned().collect();
    error.insert(ContextKind::ValidSubcommand, ContextValue::Strings(shown));
}
