//! The Model Context Protocol, both directions, over stdio and streamable HTTP. No byte is lost
//! that the crate does not understand: params and results stay the JSON text that was received.
//!
//! [`peer::Peer`] is the symmetrical core: one side of a connection over any transport. The
//! transports ([`lines`], [`http`]) pass it messages and send what it writes. [`client`] and
//! [`server`] are small conveniences on top. Nothing in this crate knows of Countersign.
//!
//! A server with one tool, and a client of it, over a pipe in memory:
//!
//! ```rust
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use futures_util::FutureExt;
//! use mcp::client::{self, List};
//! use mcp::message::{raw, to_raw};
//! use mcp::peer::Ask;
//! use mcp::server::{Server, text_result};
//! use mcp::{handshake, lines};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let timeout = Duration::from_secs(5);
//! let mut clock = Server::new("clock", "1.0.0");
//! let definition = json!({"name": "now", "inputSchema": {"type": "object"}, "unknown": [1]});
//! clock.register_tool(&definition, |_call| async { Ok(text_result("12:00")) }.boxed());
//! let (near, far) = tokio::io::duplex(4096);
//! let (reader, writer) = tokio::io::split(far);
//! tokio::spawn(clock.serve(reader, writer));
//!
//! // The client answers requests of the server too; this one has no tools.
//! let (reader, writer) = tokio::io::split(near);
//! let peer = lines::connect(reader, writer, Arc::new(Server::new("client", "1.0.0")));
//! let info = json!({"name": "client", "version": "1.0.0"});
//! handshake::initialize(&peer, &info, &raw("{}".to_owned()), timeout).await?;
//!
//! let tools = client::list(&peer, List::Tools, timeout).await?;
//! assert_eq!(tools.len(), 1);
//! assert_eq!(tools[0].get(), definition.to_string());
//! let params = to_raw(&json!({"name": "now", "arguments": {}}));
//! let result = peer.request(Ask::new("tools/call", Some(params), timeout)).await?;
//! assert_eq!(result.get(), r#"{"content":[{"type":"text","text":"12:00"}]}"#);
//! # Ok(())
//! # }
//! ```

pub mod authorization;
pub mod child;
pub mod client;
pub mod delivery;
pub mod error;
mod fault;
pub mod handshake;
pub mod http;
pub mod id;
pub mod limits;
pub mod lines;
pub mod message;
pub mod object;
mod overlong;
pub mod peer;
mod raw;
pub mod server;
pub mod sse;
pub mod task;
pub mod trace;
pub mod version;

pub use error::ErrorObject;
pub use id::Id;
pub use message::{Message, Notification, Raw, Request, Response};
pub use peer::{Peer, RequestContext, RequestError, Service};
pub use version::Version;
