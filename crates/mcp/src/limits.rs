//! Every bound of the protocol layer, each with its reason.

use std::time::Duration;

/// One JSON-RPC message. The official SDKs stop at 16 MiB too; larger payloads belong in resources.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Messages waiting to be written to one connection; past this the producer waits.
pub const OUTBOX_MESSAGES_MAX: usize = 256;

/// Requests of the other side that run at once on one connection; past this they are refused.
pub const INCOMING_REQUESTS_MAX: usize = 1024;

/// Messages in one batch array (2025-03-26 only).
pub const BATCH_MESSAGES_MAX: usize = 128;

/// How long requests in flight may go on after the other side closed its end.
pub const DRAIN: Duration = Duration::from_secs(10);

/// A child gets this long after its stdin was closed, and again after SIGTERM.
pub const CHILD_GRACE: Duration = Duration::from_secs(2);

/// A child that is a supervisor takes the same steps, and needs a moment more to kill what is left.
pub const CHILD_LAST_STEP: Duration = Duration::from_secs(1);

/// After a child's end, how long its stderr may take to arrive; a grandchild may hold it open.
pub const LAST_WORDS: Duration = Duration::from_millis(100);

/// Lines of a child's stderr kept for people to read.
pub const STDERR_LINES_MAX: usize = 1000;

/// One line of stderr; the rest of a longer one is dropped.
pub const STDERR_LINE_BYTES_MAX: usize = 8 * 1024;

/// Sessions one HTTP server holds; past this `initialize` is answered with 503.
pub const HTTP_SESSIONS_MAX: usize = 4096;

/// A session that nobody used for this long is closed.
pub const HTTP_SESSION_IDLE: Duration = Duration::from_secs(60 * 60);

/// Messages kept for a client that has no standing stream open; the oldest leave first.
pub const HTTP_BACKLOG_MESSAGES_MAX: usize = 64;

/// A POST that has not been answered by then becomes an event stream, so that clients which
/// time out on silent headers keep waiting.
pub const HTTP_STREAM_AFTER: Duration = Duration::from_secs(5);

/// Comment lines keep idle event streams open through proxies.
pub const HTTP_KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Waits between attempts to open the standing stream to an upstream again.
pub const HTTP_LISTEN_RETRY: Duration = Duration::from_secs(5);

/// How much of a body that is too large is read and thrown away, and for how long, before the
/// answer says so.
pub const HTTP_DISCARD_BYTES_MAX: usize = 4 * FRAME_BYTES_MAX;
pub const HTTP_DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// A request body must arrive whole within this time.
pub const HTTP_BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A client that takes nothing from its stream for this long gets no more of it: the service that
/// writes must not wait for ever.
pub const HTTP_SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// To reach an upstream: name, connection and TLS.
pub const HTTP_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An upstream must take a notification or a response of ours within this time.
pub const HTTP_POST_TIMEOUT: Duration = Duration::from_secs(30);

/// Idle connections are left before node and uvicorn close them (5 s): a POST that meets the
/// closing would fail, and cannot be sent twice.
pub const HTTP_POOL_IDLE: Duration = Duration::from_secs(4);

/// Idle connections kept to one upstream; more calls at once than this pay for connections of their
/// own, and a burst leaves no more sockets than this behind.
pub const HTTP_POOL_CONNECTIONS_MAX: usize = 128;

/// Saying goodbye to an upstream's session is a courtesy, not worth a longer wait.
pub const HTTP_DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// Attempts in a row to take up a broken answer stream again, without one new event.
pub const HTTP_RESUMES_MAX: usize = 3;

/// The shortest wait that an upstream may ask for with `retry`: no busy loop.
pub const HTTP_RETRY_MIN: Duration = Duration::from_millis(100);

/// The longest wait that an upstream may ask for with `retry`.
pub const HTTP_RETRY_MAX: Duration = Duration::from_secs(60);

/// Of the body of an error answer, only this much is read for a JSON-RPC error.
pub const HTTP_ERROR_BYTES_MAX: usize = 64 * 1024;

/// Pages of one list: past this the server is looping or hostile.
pub const LIST_PAGES_MAX: usize = 1000;

/// All pages of one list together.
pub const LIST_TIME_MAX: Duration = Duration::from_secs(120);

/// Items of one list, over all pages.
pub const LIST_ITEMS_MAX: usize = 100_000;
