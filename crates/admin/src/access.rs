//! The callers that may use a route.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// Anyone who reaches the listener. These routes report only whether the gate works, serve the
    /// page's files, which hold no user data, and take the response to a sign-in, which is known by
    /// its random `state`.
    Anyone,
    /// Anyone who holds the code of a link, which signs a browser in.
    Code,
    Admin,
}
