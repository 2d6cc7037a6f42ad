//! The ledger's file: opening it, its tables, its transactions, and its lock files. Everything else
//! uses a connection from here; this module does not know what the rows mean.

pub(crate) mod change;
pub(crate) mod connection;
pub(crate) mod lock;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod timestamp;
pub(crate) mod transaction;

/// The name of the ledger's file in the home.
pub const FILE: &str = "ledger.db";

/// The folder in the home that holds the locks of writers.
pub(crate) const WRITERS: &str = "writers";
