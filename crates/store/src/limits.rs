//! Every bound of the store, with its reason.

use std::time::Duration;

/// Entries that wait for the writer. A caller has one or two under way, so this is thousands of
/// callers; beyond it the machine is past helping. Only the ends of calls are taken then.
pub(crate) const INBOX_MAX: usize = 8_192;

/// Entries in one commit; enough to make its cost small, few enough to keep its wait short.
pub(crate) const COMMIT_MAX: usize = 256;

/// Entries that a caller commits on its own thread, tens of microseconds; more are for the writer's.
pub(crate) const AT_ONCE_MAX: usize = 4;

/// A journal begins anew once it is so long; by then nearly all of it has been filed.
pub(crate) const JOURNAL_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// From here on it does so even if a quarter of it must be written again.
pub(crate) const JOURNAL_BYTES_LARGE: u64 = 64 * 1024 * 1024;

/// Memory kept for what is written to it, a few hundred calls of the usual size.
pub(crate) const JOURNAL_BYTES_KEPT: usize = 512 * 1024;

/// Rows are signed and filed once there are so many, and so many at a time: the pages of indexes are
/// written once for all of them.
pub(crate) const FILE_MAX: usize = 512;

/// Rows filed before it is looked at whether a commit waits, about 20 µs each.
pub(crate) const FILE_AT_ONCE: usize = 32;

/// Rows are filed at the latest so much after their commit; readers promise a second.
pub(crate) const FILE_AFTER: Duration = Duration::from_millis(50);

/// Rows that wait to be filed before commits wait for them, in number and in bytes of what is kept.
pub(crate) const UNFILED_MAX: usize = 8_192;
pub(crate) const UNFILED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The start of a call that only reads is written with its end if that comes within this time: one
/// commit in place of two. A crash sooner leaves no trace of a call that changed nothing and that
/// nobody was answered.
pub(crate) const HOLD: Duration = Duration::from_millis(50);

/// Entries kept in memory while the file cannot be written.
pub(crate) const QUEUE_MAX: usize = 1_000;

/// The time between two attempts to write the queue.
pub(crate) const RETRY_EVERY: Duration = Duration::from_millis(250);

/// Another process holds the file for milliseconds when it commits; so long it has hung.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// While the file is known to be out of reach, nobody waits long to hear it again.
pub(crate) const BUSY_TIMEOUT_FAILING: Duration = Duration::from_millis(50);

/// The time between two rounds of retention.
pub(crate) const RETENTION_EVERY: Duration = Duration::from_secs(600);

/// Between two steps of it while there is more to do.
pub(crate) const RETENTION_PAUSE: Duration = Duration::from_millis(250);

/// Rows that retention deletes in one transaction, so that calls hardly wait for it.
pub(crate) const RETENTION_CHUNK: usize = 500;

/// Runs that are looked at together for whether their process is gone; each costs a look at a file.
pub(crate) const LOST_RUNS_CHUNK: usize = 100;

/// Steps of a run that are shown, the newest: more than a person looks through.
pub(crate) const STEPS_MAX: usize = 1_000;

/// Bytes in the write-ahead log before a thread of its own copies them into the file.
pub(crate) const CHECKPOINT_BYTES: u64 = 8 * 1024 * 1024;

/// Between two looks of that thread: pages that are written again and again are copied once.
pub(crate) const CHECKPOINT_EVERY: Duration = Duration::from_millis(200);

/// A page of the file. A receipt takes more than half of SQLite's usual 4 KiB, so that each would lie
/// on a page of its own and be written with all of it.
pub(crate) const PAGE_BYTES: u32 = 8_192;

/// Pages in the log before the writer does it, and calls wait: that thread did not keep up (64 MB).
pub(crate) const CHECKPOINT_PAGES_MAX: u32 = 8_000;

/// Another process that opens the ledger takes milliseconds, or seconds after a crash.
pub(crate) const MAINTENANCE_MAX: Duration = Duration::from_secs(30);

/// Between two looks at whether it has finished.
pub(crate) const MAINTENANCE_LOOK: Duration = Duration::from_millis(20);

/// Connections kept for reading.
pub(crate) const READERS_MAX: usize = 4;

/// Names of agents and targets kept in memory with their numbers.
pub(crate) const NAMES_MAX: usize = 4_096;

/// Records looked at in one step of a search that no index answers: some 20 ms of work.
pub(crate) const SEARCH_STEP: i64 = 20_000;

/// After so long a page is handed out with what was found; its cursor goes on from there.
pub(crate) const SEARCH_TIME: Duration = Duration::from_millis(1_000);

/// After so long the rest is not counted any more, and the total is a lower bound.
pub(crate) const COUNT_TIME: Duration = Duration::from_millis(250);

/// Records that an index may hand over out of order, to be sorted; of more than that, every few
/// records are one, and walking them in order is quicker.
pub(crate) const SORT_MAX: u64 = 50_000;

/// Rows that an export or a check holds in memory at a time.
pub(crate) const EXPORT_PAGE: usize = 256;

/// Names in each table of a summary, the busiest first.
pub(crate) const SUMMARY_NAMES_MAX: usize = 100;

/// As much of the file as readers look at in place, instead of copying each page: a ledger of the
/// largest size that retention allows by default.
pub(crate) const READ_IN_PLACE_BYTES: i64 = 1 << 30;
