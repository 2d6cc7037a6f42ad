//! Streamable HTTP: [`server`] for clients that come to us, [`client`] for servers that we go to,
//! and [`guard`] against pages that reach for a local port. [`target`] is the plain HTTP beneath the
//! client, for whoever else has to reach a server.

use http::HeaderName;

pub mod client;
mod dial;
mod failure;
pub mod guard;
mod inbound;
mod outbound;
mod pool;
mod refusal;
pub mod server;
mod session;
mod standing;
mod streams;
pub mod target;

pub use pool::PooledResponse;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

/// The media type of a `Content-Type` or of one part of `Accept`, without its parameters. Its case
/// means nothing.
fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}
