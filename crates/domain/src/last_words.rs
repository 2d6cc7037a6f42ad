//! The lines of a program's stderr that say why it failed. Node and others print a stack after the
//! message, so the last lines alone say little.

/// Parts of lines that name an error, in lower case.
const CLUES: [&str; 14] = [
    "error",
    "exception",
    "fatal",
    "panic",
    "fail",
    "cannot",
    "can't",
    "could not",
    "denied",
    "not found",
    "no such",
    "invalid",
    "unknown",
    "refused",
];

/// Beginnings of lines that are no message, in lower case: code in a stack, warnings and remarks.
const OTHER_LINES: [&str; 8] =
    ["throw ", "raise ", "file \"", "npm warn", "warn", "[warn", "info", "debug"];

#[derive(Debug, PartialEq, Eq)]
pub enum LastWords<'a> {
    /// The first lines from one that looks like an error.
    Error(Vec<&'a str>),
    /// The last lines; none looks like an error.
    Ending(Vec<&'a str>),
}

impl<'a> LastWords<'a> {
    /// Picks at most `count` lines.
    pub fn of(lines: impl IntoIterator<Item = &'a str>, count: usize) -> LastWords<'a> {
        let lines: Vec<&str> =
            lines.into_iter().map(str::trim).filter(|line| is_telling(line)).collect();
        match lines.iter().position(|line| is_error(line)) {
            Some(first) => LastWords::Error(lines[first..lines.len().min(first + count)].to_vec()),
            None => LastWords::Ending(lines[lines.len().saturating_sub(count)..].to_vec()),
        }
    }

    pub fn lines(&self) -> &[&'a str] {
        match self {
            LastWords::Error(lines) | LastWords::Ending(lines) => lines,
        }
    }
}

/// Leaves out empty lines, frames of a stack, marks below a line of code, and our own on omitted
/// lines.
fn is_telling(line: &str) -> bool {
    let is_mark = line.chars().all(|c| matches!(c, '^' | '~' | '-' | '{' | '}' | ' '));
    !is_mark && !line.starts_with("at ") && !line.starts_with('…') && !is_place(line)
}

/// Reports whether a line is a mere position in a file, such as `node:internal/modules:1215`.
fn is_place(line: &str) -> bool {
    let (_, number) = line.rsplit_once(':').unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()) && !line.contains(' ')
}

fn is_error(line: &str) -> bool {
    let lower = line.to_lowercase();
    !OTHER_LINES.iter().any(|start| lower.starts_with(start))
        && CLUES.iter().any(|clue| lower.contains(clue))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "node:internal/modules/cjs/loader:1215
  throw err;
  ^

Error: Cannot find module '/opt/x.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1212:15)
    at node:internal/main/run_main_module:36:49 {
  code: 'MODULE_NOT_FOUND',
}

Node.js v22.22.0";

    const PYTHON: &str = "Traceback (most recent call last):
  File \"/opt/errors.py\", line 3, in <module>
    raise ValueError(text)
ValueError: no token";

    #[test]
    fn a_crash_is_told_by_its_first_error() {
        for (stderr, count, expected) in [
            ("loading\nfatal: no\nthen this", 2, LastWords::Error(vec!["fatal: no", "then this"])),
            ("npm warn Unknown setting\nok", 1, LastWords::Ending(vec!["ok"])),
            ("a\nb\nc", 2, LastWords::Ending(vec!["b", "c"])),
            (" \n\n", 2, LastWords::Ending(vec![])),
            (NODE, 1, LastWords::Error(vec!["Error: Cannot find module '/opt/x.js'"])),
            (PYTHON, 1, LastWords::Error(vec!["ValueError: no token"])),
        ] {
            assert_eq!(LastWords::of(stderr.lines(), count), expected, "{stderr}");
        }
    }
}
