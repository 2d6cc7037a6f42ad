//! What kind of run this is, and what a test says that does not take part in it.

use std::io::Write;

/// Names the file in which tests that were not run are listed; `./test` prints it at the end.
const SKIPPED: &str = "COUNTERSIGN_TEST_SKIPPED";

/// Whether there is time for repetitions, soaks and big data: `./test --long`.
pub fn is_long() -> bool {
    std::env::var_os("COUNTERSIGN_TEST_LONG").is_some()
}

/// Whether nothing but the product's own programs may be used: `./test --quick`.
pub fn is_quick() -> bool {
    std::env::var_os("COUNTERSIGN_TEST_QUICK").is_some()
}

/// Says that the test of this thread is not run, and why. It counts as passed for the harness, which
/// knows no third way.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let Some(file) = std::env::var_os(SKIPPED) else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
    // One write, so that lines of several processes stay apart.
    file.unwrap().write_all(format!("{test}: {reason}\n").as_bytes()).unwrap();
}

/// The same for a test that is only for the long run; tells whether to go on.
pub fn is_long_or_skipped() -> bool {
    if !is_long() {
        skipped("only with ./test --long");
    }
    is_long()
}
