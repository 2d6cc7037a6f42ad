//! The lines of a program's stderr that say why it failed. Node and others print a stack after the
//! message, so the last lines alone say little.

/// Lines that a failure quotes.
const QUOTED_LINES_MAX: usize = 5;

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

/// Adds what stderr says about the failure: the first lines that look like an error, otherwise the
/// last lines.
pub(super) fn with_last_words(message: String, stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| is_telling(line)).collect();
    let (words, quoted) = match lines.iter().position(|line| is_error(line)) {
        Some(first) => ("stderr", &lines[first..lines.len().min(first + QUOTED_LINES_MAX)]),
        None => ("last lines of stderr", &lines[lines.len().saturating_sub(QUOTED_LINES_MAX)..]),
    };
    match quoted {
        [] => message,
        quoted => format!("{message}; {words}: {}", quoted.join(" | ")),
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
    // Node shows this line of code above the message.
    !lower.starts_with("throw ") && CLUES.iter().any(|clue| lower.contains(clue))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "node:internal/modules/cjs/loader:1215
  throw err;
  ^

Error: Cannot find module '/opt/x.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1212:15)
    at Function.executeUserEntryPoint [as runMain] (node:internal/modules/run_main:171:5)
    at node:internal/main/run_main_module:36:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v22.22.0";

    #[test]
    fn a_crash_is_told_by_its_first_error() {
        let panicked = "thread 'main' panicked at src/a.rs:1:2:\nboom";
        for (stderr, expected) in [
            ("", "it failed"),
            (" \n\n", "it failed"),
            ("one\ntwo\n", "it failed; last lines of stderr: one | two"),
            ("a\nb\nc\nd\ne\nf", "it failed; last lines of stderr: b | c | d | e | f"),
            ("loading\nfatal: no\nthen this", "it failed; stderr: fatal: no | then this"),
            (panicked, "it failed; stderr: thread 'main' panicked at src/a.rs:1:2: | boom"),
        ] {
            assert_eq!(with_last_words("it failed".to_owned(), stderr), expected);
        }
        let told = with_last_words("it failed".to_owned(), NODE);
        let expected = "it failed; stderr: Error: Cannot find module '/opt/x.js' | \
                        code: 'MODULE_NOT_FOUND', | requireStack: [] | Node.js v22.22.0";
        assert_eq!(told, expected);
    }
}
