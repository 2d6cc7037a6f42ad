//! The addressee of a refusal. A message points only at what its addressee can use.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressee {
    /// A model that has the gate's own tools.
    Discovery,
    /// A model or a client that has only the servers' own tools.
    Passthrough,
    /// A person at the command line, the REST API or the page.
    Person,
}
