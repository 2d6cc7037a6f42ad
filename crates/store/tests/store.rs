//! The ledger through its public API: appended entries are present, signed and chained, whatever
//! happens to the process, the file and the keys.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod store {
    mod anchors;
    mod bound;
    mod copies;
    mod crash;
    mod decisions;
    mod disk;
    mod drill;
    mod entries;
    mod faults;
    mod keys;
    mod load;
    mod losses;
    mod pieces;
    mod retention;
    mod runs;
    mod state;
    mod support;
    mod touches;
    mod unsigned;
}
