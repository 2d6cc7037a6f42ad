//! The kind of test run, and the report of tests that are skipped in it.

use std::io::Write;

/// The variable that names the file in which skipped tests are listed; `./test` prints it at the
/// end.
const SKIPPED: &str = "COUNTERSIGN_TEST_SKIPPED";

/// Reports whether repetitions, soaks and big data are wanted: `./test --long`.
pub fn is_long() -> bool {
    std::env::var_os("COUNTERSIGN_TEST_LONG").is_some()
}

/// Reports whether only the product's own programs may be used: `./test --quick`.
pub fn is_quick() -> bool {
    std::env::var_os("COUNTERSIGN_TEST_QUICK").is_some()
}

/// Records that the test of this thread is skipped, and the reason. For the harness, which knows no
/// third outcome, it passes.
pub fn skipped(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let Some(file) = std::env::var_os(SKIPPED) else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
    // One write, so that lines of several processes do not mix.
    file.unwrap().write_all(format!("{test}: {reason}\n").as_bytes()).unwrap();
}

/// Reports whether this is a long run; otherwise records the test as skipped.
pub fn is_long_or_skipped() -> bool {
    if !is_long() {
        skipped("only with ./test --long");
    }
    is_long()
}
