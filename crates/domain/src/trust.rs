//! Compares what servers list now with what a person approved: fingerprints, pending reviews, and
//! aids for the reviewer. This module stores nothing.

mod difference;
mod fingerprint;
mod identity;
mod review;
mod tokens;
mod visible;
mod warning;

pub use difference::{DifferenceLine, LineChange, change_fingerprint, difference};
pub use fingerprint::Fingerprint;
pub use identity::identity;
pub use review::{AcceptanceReason, ApprovedDefinition, ItemKind, ReviewChange, Standing, stand};
pub use visible::{hidden_characters, is_hidden, visible};
pub use warning::{KnownNames, Warning, WarningKind, reference, warnings};
