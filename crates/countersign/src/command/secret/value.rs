//! The value of a secret: piped in, or typed without being shown.

use std::io::{self, IsTerminal, Read, Stdin, Write};

use mcp::task;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use tokio::signal::unix::{SignalKind, signal};
use vault::{SECRET_BYTES_MAX, Secret};

use crate::exit::Failure;

/// The longest input: a value and the end of its line.
const INPUT_BYTES_MAX: usize = SECRET_BYTES_MAX + 2;

/// Reads the value from stdin. A person at a terminal is asked for it.
pub(super) async fn read(name: &str) -> Result<Secret, Failure> {
    // Heard from here on: an interruption at the prompt must not leave the terminal silent.
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| unread(&error))?;
    let hidden = if io::stdin().is_terminal() {
        let hidden = Hidden::begin().map_err(|error| unread(&error))?;
        let mut stderr = io::stderr();
        let _ = write!(stderr, "Value of '{name}' (not shown): ").and_then(|()| stderr.flush());
        Some(hidden)
    } else {
        None
    };
    let is_line = hidden.is_some();
    let reading = task::spawn_blocking(move || typed_or_piped(is_line));
    let text = tokio::select! {
        text = reading => text,
        _ = interrupted.recv() => {
            drop(hidden);
            return Err(Failure::input("nothing was set"));
        }
    };
    drop(hidden);
    let text = text.map_err(io::Error::other).flatten().map_err(|error| unread(&error))?;
    checked(name, text)
}

fn typed_or_piped(is_line: bool) -> io::Result<String> {
    // With its room from the start, so that no part of it is left where it grew.
    let mut text = String::with_capacity(INPUT_BYTES_MAX + 1);
    if is_line {
        io::stdin().read_line(&mut text)?;
    } else {
        io::stdin().lock().take(INPUT_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    }
    Ok(text)
}

/// Removes the end of the line.
fn checked(name: &str, mut text: String) -> Result<Secret, Failure> {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    let secret = Secret::new(text);
    if secret.expose().is_empty() {
        return Err(Failure::input(format!(
            "the value of '{name}' is empty: pipe it in, or type it at the prompt"
        )));
    }
    if secret.expose().contains('\0') {
        return Err(Failure::input(format!("the value of '{name}' has a NUL character")));
    }
    Ok(secret)
}

fn unread(error: &io::Error) -> Failure {
    Failure::input(format!("cannot read the value from stdin: {error}"))
}

/// A terminal that does not show what is typed, until this is dropped.
struct Hidden {
    terminal: Stdin,
    before: Termios,
}

impl Hidden {
    fn begin() -> io::Result<Hidden> {
        let terminal = io::stdin();
        let before = termios::tcgetattr(&terminal)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        silent.local_modes.insert(LocalModes::ECHONL);
        termios::tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
        Ok(Hidden { terminal, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_end_of_line_is_not_part_of_the_value() {
        for (text, value) in
            [("x", Some("x")), ("x\n", Some("x")), ("x\r\n", Some("x")), (" x \n\n", Some(" x \n"))]
        {
            assert_eq!(checked("n", text.to_owned()).ok(), value.map(Secret::from), "{text:?}");
        }
        for text in ["", "\n", "\r\n", "a\0b"] {
            let refused = checked("n", text.to_owned()).unwrap_err();
            assert!(!refused.message().contains("a\0"), "{text:?}");
        }
    }
}
