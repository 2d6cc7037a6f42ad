//! The Model Context Protocol, both directions, over stdio and streamable HTTP. No byte is lost
//! that the crate does not understand: params and results stay the JSON text that was received.
//!
//! [`peer::Peer`] is the symmetrical core: one side of a connection over any transport. The
//! transports ([`lines`], [`http`]) pass it messages and send what it writes. [`client`] and
//! [`server`] are small conveniences on top. Nothing in this crate knows of Countersign.

pub mod child;
pub mod client;
pub mod error;
pub mod handshake;
pub mod http;
pub mod id;
pub mod limits;
pub mod lines;
pub mod message;
pub mod object;
pub mod peer;
mod raw;
pub mod server;
pub mod sse;
pub mod version;

pub use error::ErrorObject;
pub use id::Id;
pub use message::{Message, Notification, Raw, Request, Response};
pub use peer::{Peer, RequestContext, RequestError, Service};
pub use version::Version;
