//! Where an event comes from.

use tokio::net::unix::UCred;

/// Who sent an event, as the system says.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    pub pid: Option<i32>,
    pub uid: u32,
    pub gid: u32,
}

impl From<UCred> for Sender {
    fn from(credentials: UCred) -> Self {
        Sender { pid: credentials.pid(), uid: credentials.uid(), gid: credentials.gid() }
    }
}

/// How an event came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Socket,
    /// Written down by a hook while nobody listened.
    Spool,
}
