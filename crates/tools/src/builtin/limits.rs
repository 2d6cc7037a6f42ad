//! Limits of the built-in tools, each with its reason.

use std::time::Duration;

/// Maximum output of one Read or Grep: more than any model can take in.
pub(super) const TEXT_BYTES_MAX: usize = 5 * 1024 * 1024;

/// Bytes inspected to tell text from binary.
pub(super) const SNIFFED_BYTES: usize = 8 * 1024;

/// An Edit holds the file twice in memory.
pub(super) const EDIT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Lines of the diff that an Edit shows; the agent knows what it sent.
pub(super) const DIFF_LINES_MAX: usize = 40;

/// Places listed when a text is found more than once.
pub(super) const PLACES_MAX: usize = 10;

/// Lines that Grep prints.
pub(super) const GREP_LINES_MAX: usize = 10_000;

/// Lines around a match; Read is the better tool for more.
pub(super) const GREP_CONTEXT_MAX: u64 = 100;

/// The longest line that Grep searches; a longer one is noted.
pub(super) const GREP_LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Size up to which Grep reads a file whole: as much as the library checks for bytes that no text
/// has, so that all of the file is checked for them.
pub(super) const GREP_WHOLE_BYTES_MAX: usize = 64 * 1024;

/// Unreadable files that are listed by name.
pub(super) const NOTED_MAX: usize = 20;

/// Bytes of a glob, as many as a path may have.
pub(super) const GLOB_BYTES_MAX: usize = 4096;

/// Paths that Glob holds to find the newest.
pub(super) const GLOB_FOUND_MAX: usize = 200_000;

/// Paths that Glob returns.
pub(super) const GLOB_PATHS_MAX: usize = 10_000;

/// Nesting of folders; deeper ones are noted, not entered. Each is an open descriptor.
pub(super) const DEPTH_MAX: usize = 128;

/// Bytes of one ignore file; git itself reads larger ones, people do not write them.
pub(super) const IGNORE_FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Links on one path, as in Linux.
pub(super) const LINKS_MAX: usize = 40;

/// Attempts at a path that changes while it is walked.
pub(super) const ATTEMPTS_MAX: usize = 16;

pub(super) const BASH_TIMEOUT: Duration = Duration::from_secs(120);
pub(super) const BASH_TIMEOUT_SECONDS_MAX: u64 = 600;

/// A command's own timeout, plus the time to end it.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(BASH_TIMEOUT_SECONDS_MAX + 10);

/// The longest command that is passed as an argument: Linux allows 128 KiB.
pub(super) const BASH_ARGUMENT_BYTES_MAX: usize = 100 * 1024;

/// Of the 1 MiB of a command's output, stderr takes at most a quarter.
pub(super) const BASH_STDOUT_BYTES_MAX: usize = 768 * 1024;
pub(super) const BASH_STDERR_BYTES_MAX: usize = 256 * 1024;

/// Remaining time of the call at which a command is ended, so that its output can still be
/// returned.
pub(super) const BASH_MARGIN: Duration = Duration::from_millis(500);

/// Time for the pipes to close when the group is dead; processes that left the group may hold them
/// open.
pub(super) const BASH_LAST_WORDS: Duration = Duration::from_secs(1);
