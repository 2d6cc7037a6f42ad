//! Plugins for Countersign and AWF: a process that writes its address to stdout, and serves gRPC
//! there. [`Plugin`] serves one; the generated types of the protocol are for hosts as well. Depends
//! on nothing else of Countersign.

pub mod handshake;
#[cfg(feature = "server")]
mod plugin;
pub mod protocol;
#[cfg(feature = "server")]
mod service;

#[cfg(feature = "server")]
pub use plugin::{Answer, Input, Kind, Operation, Plugin, Request};
