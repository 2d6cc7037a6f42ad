//! Authorization to MCP servers, as a client: finds the authorization server of a protected server,
//! identifies this client to it, and obtains tokens (MCP 2025-11-25; RFC 8414, 8707, 9207, 9728,
//! 7591, 8628). Keeps nothing: the caller stores what it is given.
//!
//! Everything that a server names here is checked before it is used: the scheme and host of each
//! address, the issuer, the resource. No redirect is followed.

mod device;
mod discovery;
mod error;
mod exchange;
mod fetch;
mod identity;
mod jwt;
mod login;
mod metadata;
mod secret;

pub use device::{DeviceCode, DevicePoll};
pub use discovery::{ProtectedServer, ServerAuthorization};
pub use error::AuthorizationError;
pub use exchange::{IssuedTokens, TokenEndpoint};
pub use identity::{ClientAuth, ClientChoice, ClientIdentity};
pub use login::{AuthorizationRequest, CallbackParameters, redirect_port};
pub use metadata::AuthorizationServer;
pub use secret::SecretText;
