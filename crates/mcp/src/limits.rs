//! Every limit of the protocol layer, each with its reason.

use std::time::Duration;

/// One JSON-RPC message. The official SDKs stop at 16 MiB too; larger payloads belong in resources.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The id of a request. Ids are kept until the response is sent; the longest in use are UUIDs.
pub const ID_BYTES_MAX: usize = 4 * 1024;

/// Messages waiting to be written to one connection, and their total size; past either the producer
/// waits. A single message may be as large as a frame.
pub const OUTBOX_MESSAGES_MAX: usize = 256;
pub const OUTBOX_BYTES_MAX: usize = FRAME_BYTES_MAX;

/// Total size of the responses that wait for room in the outbox. While it is reached, nothing is
/// read from the other side, which would only cause more responses.
pub const UNSENT_BYTES_MAX: usize = 1024 * 1024;

/// Memory of an unsent response besides its text: a task and, over HTTP, a connection.
pub const UNSENT_RESPONSE_BYTES: usize = 16 * 1024;

/// Concurrent requests of the other side on one connection; past this they are rejected.
pub const INCOMING_REQUESTS_MAX: usize = 1024;

/// Messages in one batch array (2025-03-26 only).
pub const BATCH_MESSAGES_MAX: usize = 128;

/// Name and version of a client; they are kept as long as its session, and recorded with its calls.
pub const CLIENT_NAME_BYTES_MAX: usize = 256;

/// The capabilities of a client, which are kept as long as its session.
pub const CLIENT_CAPABILITIES_BYTES_MAX: usize = 64 * 1024;

/// A server's answer to `initialize`, which is kept as long as the connection.
pub const WELCOME_BYTES_MAX: usize = 1024 * 1024;

/// The reason of a cancellation that is passed on; people write a line.
pub const CANCEL_REASON_BYTES_MAX: usize = 1024;

/// The words about an answer that is not valid; they may quote a name from it.
pub(crate) const ANSWER_FAULT_BYTES_MAX: usize = 256;

/// Time for requests in flight to finish after the other side closed its end.
pub const DRAIN: Duration = Duration::from_secs(10);

/// Time a child gets to exit after its stdin was closed, and again after SIGTERM.
pub const CHILD_GRACE: Duration = Duration::from_secs(2);

/// A child that is a supervisor takes the same steps, and needs a moment more to kill the rest.
pub const CHILD_LAST_STEP: Duration = Duration::from_secs(1);

/// Time for a child's stderr to arrive after its exit; a grandchild may hold it open.
pub const LAST_WORDS: Duration = Duration::from_millis(100);

/// Lines of a child's stderr kept for people to read.
pub const STDERR_LINES_MAX: usize = 1000;

/// One line of stderr; the rest of a longer one is dropped.
pub const STDERR_LINE_BYTES_MAX: usize = 8 * 1024;

/// Sessions of one HTTP server; past this `initialize` gets a 503.
pub const HTTP_SESSIONS_MAX: usize = 4096;

/// Sessions of one caller, so that the others can still open some.
pub const HTTP_SESSIONS_PER_HOLDER_MAX: usize = HTTP_SESSIONS_MAX / 2;

/// Idle time after which a session is closed.
pub const HTTP_SESSION_IDLE: Duration = Duration::from_secs(60 * 60);

/// Messages kept for a client without an open standing stream; the oldest are dropped first.
pub const HTTP_BACKLOG_MESSAGES_MAX: usize = 64;

/// A POST not answered by then becomes an event stream: clients that time out without headers keep
/// waiting, and only a stream can be resumed when the connection breaks.
pub const HTTP_STREAM_AFTER: Duration = Duration::from_secs(1);

/// Comment lines keep idle event streams open through proxies.
pub const HTTP_KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Delay between attempts to reopen the standing stream to an upstream.
pub const HTTP_LISTEN_RETRY: Duration = Duration::from_secs(5);

/// Size and time limits for reading and discarding a body that is too large before the error
/// response.
pub const HTTP_DISCARD_BYTES_MAX: usize = 4 * FRAME_BYTES_MAX;
pub const HTTP_DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for a request body to arrive completely.
pub const HTTP_BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A client that reads nothing from its stream for this long gets no more of it: the service that
/// writes must not wait forever.
pub const HTTP_SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Time to reach an upstream: name resolution, connection and TLS.
pub const HTTP_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for an upstream to accept a notification or a response of ours.
pub const HTTP_POST_TIMEOUT: Duration = Duration::from_secs(30);

/// Idle connections are closed before node and uvicorn close them (5 s): a POST that races with the
/// close would fail, and cannot be sent twice.
pub const HTTP_POOL_IDLE: Duration = Duration::from_secs(4);

/// Idle connections kept to one upstream; more concurrent calls than this open new connections, and
/// a burst leaves no more sockets than this behind.
pub const HTTP_POOL_CONNECTIONS_MAX: usize = 128;

/// Ending an upstream's session is a courtesy, not worth a longer wait.
pub const HTTP_DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// Consecutive attempts to resume a broken response stream without one new event.
pub const HTTP_RESUMES_MAX: usize = 3;

/// The shortest wait that an upstream may request with `retry`, to prevent a busy loop.
pub const HTTP_RETRY_MIN: Duration = Duration::from_millis(100);

/// The longest wait that an upstream may request with `retry`.
pub const HTTP_RETRY_MAX: Duration = Duration::from_secs(60);

/// Bytes of an error response's body that are read for a JSON-RPC error.
pub const HTTP_ERROR_BYTES_MAX: usize = 64 * 1024;

/// Pages of one list; past this the server is looping or hostile.
pub const LIST_PAGES_MAX: usize = 1000;

/// Total time for all pages of one list.
pub const LIST_TIME_MAX: Duration = Duration::from_secs(120);

/// Items of one list, over all pages.
pub const LIST_ITEMS_MAX: usize = 100_000;

/// Total size of the items of one list, over all pages.
pub const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The cursor of one page; all cursors of a list are kept to detect a loop.
pub const CURSOR_BYTES_MAX: usize = 4 * 1024;

/// Events of one stream that are kept after they were sent, for a client whose connection broke. A
/// client notices the break after some seconds; few streams have more events in that time.
pub const REPLAY_EVENTS_MAX: usize = 64;

/// Total size of these events, apart from a response: progress and log messages are small.
pub const REPLAY_STREAM_BYTES_MAX: usize = 1024 * 1024;

/// Responses that one session keeps for a client that comes back; an agent has a few calls at once.
pub const REPLAY_ANSWERS_MAX: usize = 32;

/// Total size of the responses that one session keeps: the largest one fits.
pub const REPLAY_BYTES_MAX: usize = FRAME_BYTES_MAX;

/// Total size of the events that all sessions of a server keep.
pub const REPLAY_TOTAL_BYTES_MAX: usize = 4 * FRAME_BYTES_MAX;

/// Time that a response is kept: a laptop that was closed for a moment, a network that changes.
pub const REPLAY_TIME: Duration = Duration::from_secs(5 * 60);

/// The time a client is asked to wait before it reconnects. The call continues meanwhile, so a long
/// wait is not needed.
pub const REPLAY_RETRY: Duration = Duration::from_secs(1);

/// One request about authorization: metadata, a registration, a token.
pub const AUTHORIZATION_TIMEOUT: Duration = Duration::from_secs(20);

/// The response to it. Metadata documents have a few kilobytes.
pub const AUTHORIZATION_BYTES_MAX: usize = 256 * 1024;

/// A token, which every request carries in a header; those in use have up to 4 KB.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// A `WWW-Authenticate` header that is read.
pub const CHALLENGE_BYTES_MAX: usize = 8 * 1024;

/// Authorization servers of one resource that are tried.
pub const AUTHORIZATION_SERVERS_MAX: usize = 4;

/// Scopes that one request names.
pub const SCOPES_MAX: usize = 256;

/// Characters of an authorization server's own words that are shown.
pub const AUTHORIZATION_WORDS_MAX: usize = 300;
