//! A failure in the words of the program that failed.

use domain::last_words::LastWords;

/// Lines that a failure quotes.
const QUOTED_LINES_MAX: usize = 5;

/// Adds what stderr says about the failure.
pub(super) fn with_last_words(message: String, stderr: &str) -> String {
    let last_words = LastWords::of(stderr.lines(), QUOTED_LINES_MAX);
    let origin = match &last_words {
        LastWords::Error(_) => "stderr",
        LastWords::Ending(_) => "last lines of stderr",
    };
    match last_words.lines() {
        [] => message,
        quoted => format!("{message}; {origin}: {}", quoted.join(" | ")),
    }
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
