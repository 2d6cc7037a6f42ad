//! What was done, as values: receipts, their canonical bytes and hashes, the keys that sign them,
//! and the check of a chain. Writing them down is for others.

pub mod canonical;
pub mod chain;
pub mod did;
pub mod disclosure;
pub mod hash;
pub mod key;
pub mod receipt;
pub mod rotation;
pub mod runtime;
pub mod verify;

pub use hash::Hash;
pub use key::{PublicKey, SigningKey};
pub use receipt::Receipt;
pub use runtime::Runtime;
