//! The progress of what lasts, on stderr: one line that is overwritten on a terminal. Counted work
//! is reported elsewhere too, by a line every few seconds.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The time between two reports on a terminal, and elsewhere.
const ON_TERMINAL: Duration = Duration::from_millis(500);
const ELSEWHERE: Duration = Duration::from_secs(5);

/// Work that takes less than this is not worth a word.
const PATIENCE: Duration = Duration::from_secs(1);

/// The time between two pictures of the wheel.
const TURN: Duration = Duration::from_millis(100);

const WHEEL: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

pub(crate) struct Progress {
    what: &'static str,
    /// The number at the end, if it is known.
    total: Option<u64>,
    count: u64,
    told: Instant,
    is_terminal: bool,
    has_told: bool,
}

impl Progress {
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        Progress { what, total, count: 0, told: Instant::now(), is_terminal, has_told: false }
    }

    /// Counts one more.
    pub(crate) fn tick(&mut self) {
        self.count += 1;
        // A look at the clock for each would cost more than the rest.
        if self.count.is_multiple_of(256) {
            let pause = if self.is_terminal { ON_TERMINAL } else { ELSEWHERE };
            if self.told.elapsed() >= pause {
                self.told = Instant::now();
                self.tell();
            }
        }
    }

    fn tell(&mut self) {
        self.has_told = true;
        let text = text(self.count, self.total, self.what);
        if self.is_terminal {
            overwrite(&text);
        } else {
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    }

    /// Clears the line on a terminal.
    pub(crate) fn end(&self) {
        if self.is_terminal && self.has_told {
            overwrite("");
        }
    }
}

/// Shows a turning wheel with the text if the work takes longer than a moment. Only a terminal
/// shows it.
pub(crate) async fn while_waiting<T>(text: &str, work: impl Future<Output = T>) -> T {
    if !std::io::stderr().is_terminal() {
        return work.await;
    }
    let began = Instant::now();
    let mut work = std::pin::pin!(work);
    let mut pause = PATIENCE;
    for picture in WHEEL.iter().cycle() {
        if let Ok(done) = tokio::time::timeout(pause, &mut work).await {
            if began.elapsed() >= PATIENCE {
                overwrite("");
            }
            return done;
        }
        overwrite(&format!("{picture} {text} ({} s)", began.elapsed().as_secs()));
        pause = TURN;
    }
    work.await
}

/// Replaces the current line of the terminal on stderr.
fn overwrite(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "\r\u{1b}[K{text}").and_then(|()| stderr.flush());
}

fn text(count: u64, total: Option<u64>, what: &str) -> String {
    match total.filter(|total| *total >= count && *total > 0) {
        Some(total) => format!("{count} of {total} {what} ({} %)", count * 100 / total),
        None => format!("{count} {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_told_only_if_the_total_is_known() {
        for (count, total, expected) in [
            (5, Some(10), "5 of 10 receipts (50 %)"),
            (5, None, "5 receipts"),
            // More were written meanwhile.
            (11, Some(10), "11 receipts"),
            (0, Some(0), "0 receipts"),
        ] {
            assert_eq!(text(count, total, "receipts"), expected);
        }
    }
}
