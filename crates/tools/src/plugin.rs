//! Plugins: programs that offer operations over gRPC, started as by HashiCorp's go-plugin, and the
//! mapping of operations to tools. [`find`] lists them and starts none; a [`Plugin`] can be
//! started, and then is a provider of tools. The decision who may start one is made elsewhere.

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

pub use connection::{Plugin, PluginOperations, operations};
pub use find::{Findings, FoundPlugin, MANIFEST, Places, PluginOrigin, Variables, find};
pub use start::{SecretSource, StartOptions};
