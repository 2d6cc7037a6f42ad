//! Signed receipts in the Agent Receipts format: the body and its canonical form, hashes, keys,
//! chains, verification and audit. The crate does not depend on the gate, tools or store and does
//! no I/O, so an auditor can use it alone.
//!
//! Sign a chain of two receipts, verify it, and notice a change:
//!
//! ```rust
//! use receipt::chain::{self, ChainExpectation, ChainStatus};
//! use receipt::content::{
//!     Action, ActionTarget, Issuer, OutcomeStatus, Position, Principal, Receipt, ReceiptOutcome,
//!     Termination,
//! };
//! use receipt::{Hash, RiskLevel, SigningKey};
//!
//! let time = "2026-11-15T05:30:00.123Z";
//! let key = SigningKey::from_seed(&[7; 32]); // in earnest, 32 random bytes
//! let issuer = key.public().did();
//! let receipt = Receipt {
//!     id: "0193f2a0-1111-7111-8111-111111111111",
//!     issuer: Issuer { id: &issuer, ..Issuer::default() },
//!     issued_at: time,
//!     principal: Principal { id: "did:user:me", kind: None },
//!     action: Action {
//!         id: "0193f2a0-2222-7222-8222-222222222222",
//!         action_type: "filesystem.file.read",
//!         risk: RiskLevel::Low,
//!         target: Some(ActionTarget { system: "filesystem", resource: Some("notes.txt") }),
//!         parameters_hash: Some(Hash::of(br#"{"path":"notes.txt"}"#)),
//!         peer: None,
//!         drop_count: None,
//!         timestamp: time,
//!         idempotency_key: None,
//!     },
//!     outcome: ReceiptOutcome {
//!         status: OutcomeStatus::Success,
//!         error: None,
//!         response_hash: None,
//!     },
//!     correlation_id: None,
//!     rotation: None,
//! };
//!
//! let chain_id = "chain_0193f2a0-0000-7000-8000-000000000001";
//! let (mut receipts, mut previous) = (Vec::new(), None);
//! for (sequence, termination) in [(1, None), (2, Some(Termination::Complete))] {
//!     let body = receipt.body(&Position { chain_id, sequence, previous, termination });
//!     previous = Some(body.hash());
//!     receipts.push(body.sign(&key, time));
//! }
//! let check = chain::verify(&receipts, &key.public(), ChainExpectation::default());
//! assert!(check.valid);
//! assert_eq!((check.length, check.status), (2, ChainStatus::Complete));
//!
//! receipts[0] = receipts[0].replace("notes.txt", "other.txt");
//! let check = chain::verify(&receipts, &key.public(), ChainExpectation::default());
//! assert_eq!((check.valid, check.broken_at), (false, Some(0)));
//! ```

pub mod audit;
pub mod canonical;
pub mod chain;
pub mod checkpoint;
pub mod content;
pub mod did;
pub mod disclosure;
pub mod hash;
pub mod key;
pub mod packed;
mod proof;
mod risk;
pub mod rotation;
pub mod runtime;
pub mod statement;
pub mod verify;

pub use content::Receipt;
pub use hash::Hash;
pub use key::{PublicKey, SigningKey};
pub use risk::RiskLevel;
pub use runtime::Runtime;
