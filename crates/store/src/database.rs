//! The file of the ledger: how it is opened, its tables, its transactions, and the locks beside it.
//! Everything else works on a connection from here; what the rows mean is not known here.

pub(crate) mod change;
pub(crate) mod connection;
pub(crate) mod lock;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod timestamp;
pub(crate) mod transaction;

/// The file of the ledger in the home.
pub const FILE: &str = "ledger.db";

/// The folder in the home where those who write hold their locks.
pub(crate) const WRITERS: &str = "writers";
