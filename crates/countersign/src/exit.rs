//! The end of the program: the exit code, and one clear message on stderr.

use std::io::Write;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use serde_json::{Value, json};
use text::visible;

use crate::json::compact;

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
const BROKEN: u8 = 1;
/// The exit code of `receipt verify` and `ledger check` if nothing could be checked.
const NOT_CHECKED: u8 = 2;

#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    /// The code for programs, unless the message begins with one.
    kind: &'static str,
    /// The message; empty if everything has been reported already.
    message: String,
}

impl Failure {
    pub(crate) fn input(message: impl Into<String>) -> Failure {
        Failure { status: Exit::Input as u8, kind: "INVALID_INPUT", message: message.into() }
    }

    pub(crate) fn config(message: impl Into<String>) -> Failure {
        Failure { status: Exit::Config as u8, kind: "INVALID_CONFIG", message: message.into() }
    }

    pub(crate) fn call(message: impl Into<String>) -> Failure {
        Failure { status: Exit::Call as u8, kind: "CALL_FAILED", message: message.into() }
    }

    pub(crate) fn system(message: impl Into<String>) -> Failure {
        Failure { status: Exit::System as u8, kind: "SYSTEM_FAILURE", message: message.into() }
    }

    /// A verifier found something broken.
    pub(crate) fn broken(message: impl Into<String>) -> Failure {
        Failure { status: BROKEN, kind: "BROKEN", message: message.into() }
    }

    /// A verifier could not check anything.
    pub(crate) fn not_checked(message: impl Into<String>) -> Failure {
        Failure { status: NOT_CHECKED, kind: "NOT_CHECKED", message: message.into() }
    }

    /// Returns the failure for a ledger that cannot be used.
    pub(crate) fn store(error: store::StoreError) -> Failure {
        Failure::system(format!("{}: {error}", error.code()))
    }

    /// Ends with the exit code of another program.
    pub(crate) fn with_status(status: u8, message: impl Into<String>) -> Failure {
        Failure { status, kind: "FAILED", message: message.into() }
    }

    /// Adds words to the message.
    pub(crate) fn with(self, words: &str) -> Failure {
        Failure { message: format!("{}; {words}", self.message), ..self }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn report(self, form: ErrorForm) -> ExitCode {
        // stderr may be closed; then the message is lost.
        let mut stderr = std::io::stderr();
        let _ = match form {
            _ if self.message.is_empty() => Ok(()),
            ErrorForm::Text => writeln!(stderr, "countersign: {}", visible(&self.message)),
            ErrorForm::Json => writeln!(stderr, "{}", compact(&self.as_json())),
        };
        ExitCode::from(self.status)
    }

    fn as_json(&self) -> Value {
        let is_code = |code: &&str| {
            code.contains('_') && code.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        };
        let (code, message) = match self.message.split_once(": ") {
            Some((code, message)) if is_code(&code) => (code, message),
            _ => (self.kind, self.message.as_str()),
        };
        json!({"error": {"code": code, "message": message}})
    }
}

/// The form of an error on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    Text,
    Json,
}

impl ErrorForm {
    /// Reads the form from the program's arguments, which may be wrong otherwise: JSON if that is
    /// the form of the output.
    pub(crate) fn asked_for(mut words: impl Iterator<Item = String>) -> ErrorForm {
        let is_json = |form: &str| matches!(form, "json" | "jsonl");
        while let Some(word) = words.next() {
            let form = match word.as_str() {
                "--" => break,
                "-o" | "--output" | "--format" => words.next(),
                word => ["--output=", "--format=", "-o"]
                    .iter()
                    .find_map(|flag| word.strip_prefix(flag))
                    .map(|form| form.trim_start_matches('=').to_owned()),
            };
            if form.as_deref().is_some_and(is_json) {
                return ErrorForm::Json;
            }
        }
        ErrorForm::Text
    }
}

/// Exits after clap's message. Help and version are not errors; any other refusal is wrong input.
/// For a verifier the code 1 means that something is broken, so wrong arguments must not end with
/// it.
pub(crate) fn usage(mut error: clap::Error, words: impl Iterator<Item = String>) -> ExitCode {
    hide_supervise(&mut error);
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::Done.into();
    }
    let words: Vec<String> = words.collect();
    match ErrorForm::asked_for(words.iter().cloned()) {
        ErrorForm::Text => {
            let _ = error.print();
        }
        ErrorForm::Json => {
            let text = error.render().to_string();
            let _ = Failure::input(text.trim_start_matches("error: ").trim_end())
                .report(ErrorForm::Json);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_for_programs_have_a_code() {
        for (failure, code, message) in [
            (Failure::input("no such tool"), "INVALID_INPUT", "no such tool"),
            (Failure::call("TOOL_BLOCKED: locked: ask"), "TOOL_BLOCKED", "locked: ask"),
            (Failure::system("NOTE: this"), "SYSTEM_FAILURE", "NOTE: this"),
            (Failure::broken("chain a is broken"), "BROKEN", "chain a is broken"),
        ] {
            let expected = json!({"error": {"code": code, "message": message}});
            assert_eq!(failure.as_json(), expected);
        }
    }

    #[test]
    fn errors_have_the_form_of_the_output() {
        for (words, form) in [
            ("countersign tools list", ErrorForm::Text),
            ("countersign tools list -o json", ErrorForm::Json),
            ("countersign tools list -ojson", ErrorForm::Json),
            ("countersign tools list --output=json --nonsense", ErrorForm::Json),
            ("countersign run x --format jsonl", ErrorForm::Json),
            ("countersign tools list -o yaml", ErrorForm::Text),
            ("countersign receipt export -o json.txt", ErrorForm::Text),
            ("countersign wrap -- server -o json", ErrorForm::Text),
        ] {
            assert_eq!(ErrorForm::asked_for(words.split(' ').map(str::to_owned)), form, "{words}");
        }
    }
}
