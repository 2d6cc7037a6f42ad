//! Signed receipts in the Agent Receipts format: the body and its canonical form, hashes, keys, the
//! chain that links them, verification and audit. It knows of no gate, tool or store and does no
//! I/O, so that an auditor can use it alone.

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
