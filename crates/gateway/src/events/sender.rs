//! The origin of an event: its sender and the channel it arrived through.

use tokio::net::unix::UCred;
use uuid::Uuid;

/// The sender of an event, as the operating system identifies it.
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

/// An event's id, sender and channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventOrigin {
    pub(super) id: Uuid,
    pub(super) sender: Option<Sender>,
    pub(super) arrival: Arrival,
}

/// The channel through which an event arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    Socket,
    /// Written to the spool by a hook while no gate was listening.
    Spool,
}
