//! The callers that may use a route.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    /// Anyone who reaches the listener. These routes report only whether the gate works and serve
    /// the page's files, which hold no user data.
    Anyone,
    /// Anyone who holds the code of a link, which signs a browser in.
    Code,
    Admin,
}
