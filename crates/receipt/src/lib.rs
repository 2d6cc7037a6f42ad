//! Signed receipts in the Agent Receipts format: the body and its canonical form, hashes, keys,
//! chains, verification and audit. The crate does not depend on the gate, tools or store and does
//! no I/O, so an auditor can use it alone.

pub mod audit;
pub mod canonical;
pub mod chain;
pub mod content;
pub mod did;
pub mod disclosure;
pub mod hash;
pub mod json;
pub mod key;
mod proof;
mod risk;
pub mod rotation;
pub mod runtime;
pub mod verify;

pub use content::Receipt;
pub use hash::Hash;
pub use key::{PublicKey, SigningKey};
pub use risk::RiskLevel;
pub use runtime::Runtime;
