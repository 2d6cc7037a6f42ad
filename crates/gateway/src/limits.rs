//! Every limit of the gateway, each with its reason.

use std::time::Duration;

/// Progress notifications of one call that wait for the client; more are dropped, since the next
/// one supersedes them.
pub(crate) const PROGRESS_WAITING_MAX: usize = 64;

/// Bytes of one progress notification; larger ones are dropped too.
pub(crate) const PROGRESS_BYTES_MAX: usize = 16 * 1024;

/// Notifications of a server on their way to one client; more are dropped, as a slow client would
/// otherwise hold them all.
pub(crate) const NOTICES_WAITING_MAX: usize = 64;

/// A larger notification is data, and does not pass.
pub(crate) const NOTICE_BYTES_MAX: usize = 64 * 1024;

/// Resources of one server that a client is subscribed to.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 256;

/// A larger declaration of experimental capabilities or extensions is left out.
pub(crate) const OPEN_CAPABILITY_BYTES_MAX: usize = 16 * 1024;

/// A server's `serverInfo` as pass-through clients see it, and each of its names where it is cut.
pub(crate) const SERVER_INFO_BYTES_MAX: usize = 1024;
pub(crate) const SERVER_NAME_BYTES_MAX: usize = 256;

/// Maximum wait of a search for servers that have not finished their first connection attempt: an
/// agent that searches in the first second should not conclude that there are no tools.
pub(crate) const FIRST_CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Wait for more lists before vectors are made, and the longest time until changed settings take
/// effect on them.
pub(crate) const VECTORS_DELAY: Duration = Duration::from_millis(50);
pub(crate) const VECTORS_INTERVAL: Duration = Duration::from_secs(2);

/// Vectors that are written to the home at a time: some hundred milliseconds of work.
pub(crate) const VECTORS_PER_WRITE: usize = 64;

/// The length of a query that its vector is made from; the model reads 64 tokens.
pub(crate) const VECTOR_QUERY_BYTES_MAX: usize = 4096;

/// Maximum wait of a connection for the server's list of resources; its tools do not wait longer.
pub(crate) const RESOURCES_WAIT: Duration = Duration::from_secs(2);

/// Resources of one server that are listed with those of all others, and their total size. Any other
/// can be read.
pub(crate) const RESOURCES_MAX: usize = 10_000;
pub(crate) const RESOURCES_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Maximum wait of a list over all servers for the client's own connections to them. Whatever
/// connects later is announced.
pub(crate) const OWN_LISTS_WAIT: Duration = Duration::from_secs(5);

/// Maximum wait for a check of arguments against a costly schema.
pub(crate) const CHECK_TIME_MAX: Duration = Duration::from_secs(5);

/// Lifetime of a truncated result's full text.
pub(crate) const CACHE_AGE_MAX: Duration = Duration::from_secs(2 * 60 * 60);

/// Results kept in full for `read_cache`, and their total size; the oldest are dropped first.
pub(crate) const CACHE_ENTRIES_MAX: usize = 256;
pub(crate) const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Definitions that one `describe_tool` returns.
pub(crate) const DESCRIBE_MAX: usize = 5;

/// Characters of an unusable id that `describe_tool` repeats; names are shorter.
pub(crate) const SHOWN_ID_CHARS_MAX: usize = 200;

/// Locked tools in one search result: they are there to explain, not to be called.
pub(crate) const LOCKED_SHOWN_MAX: usize = 10;

/// Maximum number of tools in one search result.
pub(crate) const SEARCH_LIMIT_MAX: u64 = 100;

/// Commands that wait for one connection's driver.
pub(crate) const DRIVER_COMMANDS_MAX: usize = 64;

/// Time a lost child gets to report its exit status before it is described without one.
pub(crate) const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// Connections on one listener; a new one waits in the system's queue, or replaces one that showed
/// no token.
pub(crate) const CONNECTIONS_MAX: usize = 1024;

/// Connections of one address without a valid token so far: more than a browser or a pool of
/// clients opens before its first request.
pub(crate) const ADDRESS_CONNECTIONS_MAX: usize = 64;

/// Wrong tokens or codes of one address that are answered at once, and within which time.
pub(crate) const FAILED_ENTRIES_FREE: u32 = 10;
pub(crate) const FAILED_ENTRY_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Delay of each further answer. With the connections that an address may have, it leaves a few
/// hundred guesses a second at secrets of 256 bits.
pub(crate) const FAILED_ENTRY_DELAY: Duration = Duration::from_millis(250);

/// Addresses whose failures are counted; the oldest is forgotten first.
pub(crate) const FAILED_ENTRY_SOURCES_MAX: usize = 4096;

/// Calls in flight, and the bytes of their arguments, which stay in memory until they are recorded.
pub(crate) const CALLS_MAX: usize = 4096;
pub(crate) const CALL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Interval at which a token's refused overuse is recorded.
pub(crate) const OVERUSE_RECORD_EVERY: Duration = Duration::from_secs(60);

/// Clients with their own connection to one server, each of which may be a process.
pub(crate) const OWN_CONNECTIONS_MAX: usize = 32;

/// Idle time after which a client's own connection is closed.
pub(crate) const OWN_CONNECTION_IDLE: Duration = Duration::from_secs(10 * 60);

/// Time before a client's own connection that failed to open is tried again: one call needs it
/// twice, for the check against its list and for the call itself.
pub(crate) const OWN_CONNECTION_RETRY: Duration = Duration::from_secs(1);

/// Time a client has to answer a request for its roots between two calls; servers built with the
/// official SDKs wait as long.
pub(crate) const QUESTION_WAIT: Duration = Duration::from_secs(60);

/// Sampling and elicitation within one call; a dialogue needs a few, a flood wears its user down.
pub(crate) const CALL_QUESTIONS_MAX: usize = 8;

/// Concurrent requests of one connection for the client's roots, and the params of each, which are
/// normally empty.
pub(crate) const ROOTS_REQUESTS_MAX: usize = 8;
pub(crate) const ROOTS_PARAMS_BYTES_MAX: usize = 4 * 1024;

/// Bytes in flight to a server in this process, each way.
pub(crate) const EMBEDDED_PIPE_BYTES: usize = 64 * 1024;

/// List changes within this time count as one. While changes keep being announced, the pause doubles
/// up to the maximum; after a quiet time it starts over.
pub(crate) const RELIST_PAUSE: Duration = Duration::from_millis(50);
pub(crate) const RELIST_PAUSE_MAX: Duration = Duration::from_secs(2);
pub(crate) const RELIST_QUIET: Duration = Duration::from_secs(5);

/// Log lines about the lists of one server within this time: a list may have thousands of tools and
/// change many times a second.
pub(crate) const LIST_LINES_MAX: u32 = 100;
pub(crate) const LIST_LINES_WINDOW: Duration = Duration::from_secs(60);

/// Approved items of a server that it no longer lists. Beyond this, `auto_approve` accepts no new
/// ones: each is kept, so that its return can be compared.
pub(crate) const GONE_ITEMS_MAX: usize = 1_000;

/// Larger results are hashed and searched for secrets off the async threads: from this size on it
/// takes about half a millisecond.
pub(crate) const INLINE_BYTES_MAX: usize = 32 * 1024;

/// Lines that wait for one side of a wrapped server; beyond this the other side is not read.
pub(crate) const WRAP_LINES_WAITING_MAX: usize = 64;

/// Concurrent calls to a wrapped server; a client makes a few.
pub(crate) const WRAP_CALLS_MAX: usize = 1024;

/// Time limit of a call to a wrapped server. Its client has its own timeout, which the gate must
/// not shorten.
pub(crate) const WRAP_CALL_MAX: Duration = Duration::from_hours(24);

/// Concurrent list requests of a client; the responses to further ones are forwarded unread.
pub(crate) const WRAP_LISTS_WAITING_MAX: usize = 64;

/// Maximum pages of one list, since a cursor may never end.
pub(crate) const WRAP_PAGES_MAX: u32 = 1000;

/// Concurrent senders of events; each is an agent or one of its hooks.
pub(crate) const EVENT_SENDERS_MAX: usize = 256;

/// Idle time after which a sender is disconnected; it reconnects for its next event.
pub(crate) const EVENT_SILENCE_MAX: Duration = Duration::from_secs(10 * 60);

/// Time that a sender has for what it was sending when the gate ends.
pub(crate) const EVENT_REST_MAX: Duration = Duration::from_millis(100);

/// Time a frame may take from its first byte to its last.
pub(crate) const EVENT_FRAME_TIME_MAX: Duration = Duration::from_secs(10);

/// Events of the spool whose senders are remembered until the events are taken: a spool full of the
/// smallest ones.
pub(crate) const SPOOL_NOTES_MAX: usize = 8192;

/// Delay before lost events are reported, once they can be.
pub(crate) const EVENTS_DROPPED_EVERY: Duration = Duration::from_secs(1);

/// Time that the links in a path may take to be followed; then the path counts as it was given. A
/// disk takes microseconds, a network mount that is gone takes forever.
pub(crate) const LINK_TIME_MAX: Duration = Duration::from_millis(250);

/// Threads that follow links. Each path on a mount that hangs blocks one; once all are blocked,
/// nothing waits for any of them.
pub(crate) const LINK_THREADS_MAX: usize = 4;

/// Calls that may wait for such a thread.
pub(crate) const LINKS_WAITING_MAX: usize = 4096;

/// Idle time after which such a thread ends.
pub(crate) const LINK_THREAD_IDLE: Duration = Duration::from_secs(10);

/// Links in one path; systems give up at the same number.
pub(crate) const LINKS_MAX: usize = 40;

/// Interval at which other processes' decisions are polled; an approval takes effect within a
/// second.
pub(crate) const DECISIONS_INTERVAL: Duration = Duration::from_secs(1);

/// Sign-ins that wait for their browser; the oldest is dropped first.
pub(crate) const LOGINS_PENDING_MAX: usize = 16;

/// Servers whose calls are counted by name. More than anybody runs; it bounds the counters left
/// behind by servers that are added and removed.
pub(crate) const COUNTED_SERVERS_MAX: usize = 1024;
