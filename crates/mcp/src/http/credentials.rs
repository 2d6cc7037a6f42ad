//! The source of the bearer token that requests to a server carry.

use futures_util::future::BoxFuture;
use http::HeaderValue;

use super::challenge::Challenge;

/// Supplies the token of each request, and decides what happens when the server refuses it. The
/// errors are sentences for the callers.
pub trait Credentials: Send + Sync {
    /// Returns the value of `Authorization` for the next request; `None` sends none.
    fn token(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>>;

    /// Handles a refusal. Without an error, the request is sent again, once.
    fn refused<'a>(&'a self, refusal: TokenRefusal<'a>) -> BoxFuture<'a, Result<(), String>>;
}

/// A request that the server did not authorize.
pub struct TokenRefusal<'a> {
    /// The value that it was sent with.
    pub sent: Option<&'a HeaderValue>,
    /// The token is valid, but not for this request (HTTP 403).
    pub is_insufficient: bool,
    pub challenge: Challenge,
    /// The request was sent again already.
    pub is_second: bool,
}
