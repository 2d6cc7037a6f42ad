//! The place at which a run is shown: a terminal, on which the last lines are repainted, a stream of
//! lines, or one of JSON objects.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use super::moment::Moment;
use super::tree::{Colour, Size, Tree};
use crate::cli::RunFormat;
use crate::output;

/// The place at which a run is shown.
pub(super) enum Screen {
    Nothing,
    /// A terminal: a frame below what stays.
    Terminal {
        tree: Tree,
        drawn: Vec<String>,
    },
    Lines(Tree),
    Json,
}

impl Screen {
    pub(super) fn of(format: RunFormat) -> Screen {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match format {
            RunFormat::Quiet | RunFormat::Json => Screen::Nothing,
            RunFormat::Jsonl => Screen::Json,
            RunFormat::Text if std::io::stderr().is_terminal() && !dumb => {
                let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                let colour = if is_plain { Colour::No } else { Colour::Yes };
                Screen::Terminal { tree: Tree::new(colour), drawn: Vec::new() }
            }
            RunFormat::Text => Screen::Lines(Tree::new(Colour::No)),
        }
    }

    pub(super) fn show(&mut self, moment: &Moment, now: Duration) {
        match self {
            Screen::Nothing => {}
            Screen::Json => {
                let _ = output::line(&moment.json_line());
            }
            Screen::Lines(tree) => tree.lines(moment, now).iter().for_each(|line| write_line(line)),
            Screen::Terminal { tree, drawn } => {
                let lines = tree.on(moment, size(), now);
                if !lines.is_empty() {
                    redraw(drawn, &lines, Vec::new());
                }
            }
        }
    }

    pub(super) fn remark(&mut self, text: &str) {
        match self {
            Screen::Terminal { drawn, .. } => redraw(drawn, &[output::plain(text)], Vec::new()),
            Screen::Nothing | Screen::Json | Screen::Lines(_) => output::note(text),
        }
    }

    pub(super) fn draw(&mut self, now: Duration) {
        if let Screen::Terminal { tree, drawn } = self {
            let frame = tree.frame(size(), now);
            if frame != *drawn {
                redraw(drawn, &[], frame);
            }
        }
    }

    pub(super) fn end(&mut self) {
        if let Screen::Terminal { drawn, .. } = self {
            redraw(drawn, &[], Vec::new());
        }
    }
}

fn write_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Replaces the frame by lines that stay and a new frame.
fn redraw(drawn: &mut Vec<String>, lines: &[String], frame: Vec<String>) {
    let text = replacement(drawn.len(), lines, &frame);
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    *drawn = frame;
}

/// Returns the bytes that replace a frame of so many lines. Long lines do not wrap meanwhile, so
/// that each takes one row whatever the terminal makes of its characters.
fn replacement(drawn: usize, lines: &[String], frame: &[String]) -> String {
    let mut text = String::from("\x1b[?7l");
    if drawn > 0 {
        text.push_str(&format!("\x1b[{drawn}A"));
    }
    text.push_str("\r\x1b[J\x1b[?7h");
    for line in lines {
        text.push_str(&format!("{line}\r\n"));
    }
    text.push_str("\x1b[?7l");
    for line in frame {
        text.push_str(&format!("{line}\r\n"));
    }
    text + "\x1b[?7h"
}

/// Returns the size of the terminal on stderr.
fn size() -> Size {
    let found = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let side = |found: Option<u16>, usual: usize| {
        found.map(usize::from).filter(|side| *side > 0).unwrap_or(usual)
    };
    let columns = side(found.map(|found| found.ws_col), 80);
    Size { columns, rows: side(found.map(|found| found.ws_row), 24) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_one_before_it() {
        let [lines, frame] = [["ok  a".to_owned()], ["b  0.1 s".to_owned()]];
        let text = replacement(2, &lines, &frame);
        let expected = "\x1b[?7l\x1b[2A\r\x1b[J\x1b[?7hok  a\r\n\x1b[?7lb  0.1 s\r\n\x1b[?7h";
        assert_eq!(text, expected);
        assert_eq!(replacement(0, &[], &[]), "\x1b[?7l\r\x1b[J\x1b[?7h\x1b[?7l\x1b[?7h");
    }
}
