//! Who may use a route.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever reaches the listener: it tells no more than whether the gate works, and has the
    /// files of the page, which hold nothing of anybody.
    Anyone,
    /// Whoever holds the code of a link: it is what signs a browser in.
    Code,
    Admin,
}
