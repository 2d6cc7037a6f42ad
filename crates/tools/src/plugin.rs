//! Plugins: programs that offer operations over gRPC, as HashiCorp's go-plugin starts them, and how
//! those become tools. [`find`] says which there are and starts none; a [`Plugin`] can be started,
//! and then is a provider of tools. Who may start one is decided elsewhere.

mod connection;
mod file;
mod find;
mod host;
mod limits;
mod manifest;
mod private;
mod process;
mod reply;
mod schema;
mod start;
mod yaml;

pub use connection::{Plugin, operations};
pub use find::{Findings, FoundPlugin, MANIFEST, Places, PluginOrigin, Variables, find};
pub use start::StartOptions;
