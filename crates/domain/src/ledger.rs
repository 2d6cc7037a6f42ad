//! What was done, as values: receipts, their canonical bytes and hashes, the keys that sign them,
//! the check of a chain; which resource a call touched, how risky it was, what must not be stored
//! of it, and who else touched the same thing. Writing them down is for others.

pub mod audit;
pub mod canonical;
pub mod chain;
pub mod contention;
pub mod did;
pub mod disclosure;
pub mod frame;
pub mod hash;
pub mod hook;
pub mod key;
pub mod receipt;
pub mod redaction;
pub mod rotation;
pub mod runtime;
pub mod target;
pub mod taxonomy;
pub mod verify;

pub use hash::Hash;
pub use key::{PublicKey, SigningKey};
pub use receipt::Receipt;
pub use runtime::Runtime;
