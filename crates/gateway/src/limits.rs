//! Every bound of the gateway, each with its reason.

use std::time::Duration;

/// Progress notifications of one call that wait for the client; more are dropped, since the next
/// one tells the same.
pub(crate) const PROGRESS_WAITING_MAX: usize = 64;

/// How long a search waits for servers that have not finished their first connection attempt: an
/// agent that asks in the first second should not conclude that there are no tools.
pub(crate) const FIRST_CONNECT_WAIT: Duration = Duration::from_secs(5);

/// How long a check of arguments against a costly schema is waited for.
pub(crate) const CHECK_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a result that was cut stays readable.
pub(crate) const CACHE_AGE_MAX: Duration = Duration::from_secs(2 * 60 * 60);

/// Results kept whole for `read_cache`, and their size together; the oldest leave first.
pub(crate) const CACHE_ENTRIES_MAX: usize = 256;
pub(crate) const CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Sessions look at least this often whether their token has expired: the machine may have slept.
pub(crate) const TOKEN_LOOK_EVERY: Duration = Duration::from_secs(60);

/// Definitions that one `describe_tool` gives.
pub(crate) const DESCRIBE_MAX: usize = 5;

/// Locked tools in one search result: they are there to explain, not to be called.
pub(crate) const LOCKED_SHOWN_MAX: usize = 10;

/// Most tools that one search gives.
pub(crate) const SEARCH_LIMIT_MAX: u64 = 100;

/// Commands that wait for one connection's driver.
pub(crate) const DRIVER_COMMANDS_MAX: usize = 64;

/// How long a lost child gets to report its exit status before it is described without one.
pub(crate) const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// Clients with a connection of their own to one server, each of which may be a process.
pub(crate) const OWN_CONNECTIONS_MAX: usize = 32;

/// A client's own connection that was not used for this long is closed.
pub(crate) const OWN_CONNECTION_IDLE: Duration = Duration::from_secs(10 * 60);

/// A client's own connection that could not be opened is not tried again for this long: a call wants
/// it twice, to be checked against its list and to be made.
pub(crate) const OWN_CONNECTION_RETRY: Duration = Duration::from_secs(1);

/// How long a client may take to answer what a server asks between two calls; servers made with the
/// official SDKs wait as long.
pub(crate) const QUESTION_WAIT: Duration = Duration::from_secs(60);

/// Bytes in flight to a server in this process, each way.
pub(crate) const EMBEDDED_PIPE_BYTES: usize = 64 * 1024;

/// Several list changes within this time are one.
pub(crate) const RELIST_PAUSE: Duration = Duration::from_millis(50);

/// Larger results are hashed and searched for secrets off the async threads: it takes about half a
/// millisecond from here on.
pub(crate) const INLINE_BYTES_MAX: usize = 32 * 1024;

/// Lines that wait for one side of a wrapped server; beyond it the other side is not read.
pub(crate) const WRAP_LINES_WAITING_MAX: usize = 64;

/// Calls to a wrapped server at a time; a client has a few.
pub(crate) const WRAP_CALLS_MAX: usize = 1024;

/// How long a call to a wrapped server may take. Its client has a patience of its own, which the
/// gate must not cut short.
pub(crate) const WRAP_CALL_MAX: Duration = Duration::from_hours(24);

/// Lists that a client waits for at a time; further ones are passed on unread.
pub(crate) const WRAP_LISTS_WAITING_MAX: usize = 64;

/// Pages of one list; a cursor that goes on and on leads nowhere.
pub(crate) const WRAP_PAGES_MAX: u32 = 1000;

/// Senders of events that are heard at a time; each is an agent or a hook of one.
pub(crate) const EVENT_SENDERS_MAX: usize = 256;

/// A sender that is silent for this long is let go; it connects again for its next event.
pub(crate) const EVENT_SILENCE_MAX: Duration = Duration::from_secs(10 * 60);

/// A frame that has begun must be whole by then.
pub(crate) const EVENT_FRAME_TIME_MAX: Duration = Duration::from_secs(10);

/// How soon events that were lost are owned up to, once they can be.
pub(crate) const EVENTS_DROPPED_EVERY: Duration = Duration::from_secs(1);

/// How often another process's decisions are looked for; an approval is in effect a second later.
pub(crate) const DECISIONS_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of randomness in a token: no search finds it.
pub(crate) const TOKEN_BYTES: usize = 32;

/// Servers whose calls are counted by name. More than anybody runs; it bounds what servers that are
/// added and removed for ever leave behind.
pub(crate) const COUNTED_SERVERS_MAX: usize = 1024;
