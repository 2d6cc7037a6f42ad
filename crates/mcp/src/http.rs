//! Streamable HTTP: [`server`] for incoming clients, [`client`] for servers we connect to
//! ([`legacy`] for those of the older HTTP+SSE), and
//! [`guard`] against web pages that try to reach a local port. [`target`] is the plain HTTP below
//! the client, for other code that sends HTTP requests.

use http::HeaderName;

pub(crate) mod address;
mod challenge;
pub mod client;
pub mod credentials;
mod dial;
mod event_log;
mod failure;
pub mod guard;
mod inbound;
pub mod legacy;
mod open_sessions;
mod outbound;
mod pool;
mod refusal;
pub mod server;
mod session;
mod streams;
pub mod target;

pub use address::{AddressRule, names_this_machine};
pub use challenge::Challenge;
pub use pool::PooledResponse;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

/// Returns the media type of a `Content-Type` or of one part of `Accept`, without its parameters.
/// It is case-insensitive.
fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}
