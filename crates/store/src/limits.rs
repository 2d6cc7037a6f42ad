//! Every limit of the store, with its reason.

use std::time::Duration;

/// One text of a record, such as a client's name, an id or an error message; payloads have their
/// own bound. Longer ones would push others' records out of the ledger.
pub(crate) const TEXT_BYTES_MAX: usize = 4 * 1024;

/// Warnings of one record; the gate's own are a handful.
pub(crate) const WARNINGS_MAX: usize = 64;

/// Entries that wait for the writer. A caller has one or two in flight, so this is thousands of
/// callers; beyond it the machine is overloaded, and only the ends of calls are accepted.
pub(crate) const INBOX_MAX: usize = 8_192;

/// Entries in one commit: enough to make its cost small, few enough to keep the wait short.
pub(crate) const COMMIT_MAX: usize = 256;

/// Entries that a caller commits on its own thread, in tens of microseconds; more go to the
/// writer's.
pub(crate) const AT_ONCE_MAX: usize = 4;

/// The length at which a journal is restarted; by then nearly all of it has been filed.
pub(crate) const JOURNAL_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// The length from which it is restarted even if a quarter of it must be rewritten.
pub(crate) const JOURNAL_BYTES_LARGE: u64 = 64 * 1024 * 1024;

/// Memory kept for journal writes, enough for a few hundred calls of the usual size.
pub(crate) const JOURNAL_BYTES_KEPT: usize = 512 * 1024;

/// The number of rows that triggers signing and filing, and the size of a batch: index pages are
/// written once for all of them.
pub(crate) const FILE_MAX: usize = 512;

/// Rows filed between two checks for a waiting commit, about 20 µs each.
pub(crate) const FILE_AT_ONCE: usize = 32;

/// The longest time between commit and filing of a row; readers promise a second. The longer, the
/// more rows share the cost of a transaction and the pages that it writes.
pub(crate) const FILE_AFTER: Duration = Duration::from_millis(200);

/// Rows that wait to be filed before commits wait for them, in number and in bytes of kept
/// payloads.
pub(crate) const UNFILED_MAX: usize = 8_192;
pub(crate) const UNFILED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The time for which the start of a call that only reads is held, so that start and end take one
/// commit instead of two. An earlier crash leaves no trace of a call that changed nothing and got
/// no response.
pub(crate) const HOLD: Duration = Duration::from_millis(50);

/// Entries kept in memory while the file cannot be written.
pub(crate) const QUEUE_MAX: usize = 1_000;

/// The time between two attempts to write the queue.
pub(crate) const RETRY_EVERY: Duration = Duration::from_millis(250);

/// The time to wait for another process's lock. A commit holds it for milliseconds; a longer hold
/// means that the process hangs.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// The lock timeout while the file is known to be unavailable, so that the next error comes soon.
pub(crate) const BUSY_TIMEOUT_FAILING: Duration = Duration::from_millis(50);

/// The time between two rounds of retention.
pub(crate) const RETENTION_EVERY: Duration = Duration::from_secs(600);

/// The pause before the first round, and before another attempt while another process does upkeep.
pub(crate) const RETENTION_PAUSE: Duration = Duration::from_millis(250);

/// The shortest time between two rounds, however much is filed.
pub(crate) const RETENTION_ROUNDS_APART: Duration = Duration::from_secs(1);

/// The longest time that a step of retention should take: calls wait for it, and may wait for a
/// batch that is being filed too.
pub(crate) const RETENTION_STEP: Duration = Duration::from_millis(3);

/// Rows that one step deletes, which adapts to the time it takes.
pub(crate) const RETENTION_ROWS_MIN: usize = 16;
pub(crate) const RETENTION_ROWS_MAX: usize = 512;

/// The pause between two steps, so that retention takes a tenth of the writer's time at most, and the
/// write-ahead log can be copied back meanwhile.
pub(crate) const RETENTION_REST_MIN: Duration = Duration::from_millis(5);
pub(crate) const RETENTION_REST_MAX: Duration = Duration::from_millis(100);

/// Holders that a statement of deletions names for one kind of data; the rest are counted together.
pub(crate) const STATED_HOLDERS_MAX: usize = 100;

/// The time between the first entry that no checkpoint covers and the next checkpoint.
pub(crate) const CHECKPOINT_AFTER: Duration = Duration::from_secs(60);

/// Heads that one checkpoint names: its receipt stays under 200 KB. The rest come with the next.
pub(crate) const HEADS_MAX: usize = 1_000;

/// The time that an anchor's command has for one checkpoint; then it is killed.
pub(crate) const ANCHOR_TIME_MAX: Duration = Duration::from_secs(30);

/// The pauses between two attempts of an anchor: doubled after each failure.
pub(crate) const ANCHOR_PAUSE_MIN: Duration = Duration::from_secs(1);
pub(crate) const ANCHOR_PAUSE_MAX: Duration = Duration::from_secs(300);

/// The time that a process which ends waits for its last checkpoint to be anchored.
pub(crate) const ANCHOR_CLOSE_MAX: Duration = Duration::from_secs(5);

/// The lines of an anchor that are compared with the ledger, from its end: a home that was replaced by
/// an earlier copy is found before it adds to them, and a process adds one a minute at most.
pub(crate) const ANCHOR_LINES_MAX: usize = 16;

/// The bytes of an anchor that are read for that; the longest checkpoint takes a fifth.
pub(crate) const ANCHOR_TAIL_BYTES: u64 = 1024 * 1024;

/// The interval between two checks of whether an anchor's command has ended.
pub(crate) const ANCHOR_LOOK: Duration = Duration::from_millis(20);

/// The part of an anchor's error output that is shown.
pub(crate) const ANCHOR_WORDS_MAX: u64 = 400;

/// Runs that are checked together for a dead process; each check opens a file.
pub(crate) const LOST_RUNS_CHUNK: usize = 100;

/// The number of steps of a run that are shown, the newest ones: more than a person reads.
pub(crate) const STEPS_MAX: usize = 1_000;

/// The bytes of each text of a state's outcome that are kept for a run which continues from it.
pub(crate) const OUTCOME_BYTES_MAX: usize = 256 * 1024;

/// The number of texts of a run's agents that are shown: more than a person reads.
pub(crate) const TEXTS_MAX: usize = 2_000;

/// Bytes added to the write-ahead log after which a separate thread copies it into the file.
pub(crate) const LOG_COPY_BYTES: u64 = 8 * 1024 * 1024;

/// The interval of that thread: pages that are rewritten repeatedly are copied once.
pub(crate) const LOG_COPY_EVERY: Duration = Duration::from_millis(200);

/// The number of times that it copies what was added while it copied; each time that is less.
pub(crate) const LOG_COPY_PASSES_MAX: usize = 16;

/// The page size of the file. A receipt takes more than half of SQLite's usual 4 KiB, so each would
/// have its own page and be written with all of it.
pub(crate) const PAGE_BYTES: u32 = 8_192;

/// Pages in the log (64 MB) at which the writer itself copies them and calls wait, because that
/// thread did not keep up.
pub(crate) const LOG_PAGES_MAX: u32 = 8_000;

/// The time to wait for another process that opens the ledger, which takes milliseconds, or seconds
/// after a crash.
pub(crate) const MAINTENANCE_MAX: Duration = Duration::from_secs(30);

/// The interval between two checks of whether it has finished.
pub(crate) const MAINTENANCE_LOOK: Duration = Duration::from_millis(20);

/// Connections kept for reading.
pub(crate) const READERS_MAX: usize = 4;

/// Names of agents and targets kept in memory with their numbers.
pub(crate) const NAMES_MAX: usize = 4_096;

/// Records with one tool-use id that are compared: a call has three, one of the gate and two events.
pub(crate) const SIGHTINGS_MAX: usize = 16;

/// The time after which an announced call counts as never made. A person may think for long about a
/// request for permission; if the call is reported later, its record is corrected.
pub(crate) const UNMADE_AFTER: Duration = Duration::from_secs(3_600);

/// Recent touches of a resource that a write is compared with as it is filed.
pub(crate) const MEETING_TOUCHES_MAX: usize = 32;

/// The time by which a touch that was filed earlier may be later than a write: each process files its
/// own records.
pub(crate) const MEETING_LATER: Duration = Duration::from_secs(60);

/// The time within which one meeting of two agents at a resource is logged only once.
pub(crate) const MEETING_LOG_EVERY: Duration = Duration::from_secs(60);

/// Records examined in one step of a search that no index answers: some 20 ms of work.
pub(crate) const SEARCH_STEP: i64 = 20_000;

/// The time after which a page is returned with the records found so far; its cursor continues
/// there.
pub(crate) const SEARCH_TIME: Duration = Duration::from_millis(1_000);

/// The time after which counting stops, and the total is a lower bound.
pub(crate) const COUNT_TIME: Duration = Duration::from_millis(250);

/// The number of records that an index may return out of order, to be sorted. Beyond it matches are
/// so dense that walking all records in order is quicker.
pub(crate) const SORT_MAX: u64 = 50_000;

/// Rows that an export or a check holds in memory at a time.
pub(crate) const EXPORT_PAGE: usize = 256;

/// Names in each table of a summary, busiest first.
pub(crate) const SUMMARY_NAMES_MAX: usize = 100;

/// The part of the file that readers map instead of copying each page: a ledger of the largest size
/// that retention allows by default.
pub(crate) const READ_IN_PLACE_BYTES: i64 = 1 << 30;

/// The entries of the log of decisions, after which one holds everything.
pub(crate) const DECISION_ENTRIES_MAX: usize = 32;
