//! What a person approved, and how what servers list now stands to it: fingerprints, what waits
//! for a review, and what helps the reviewer to see what is there. It remembers nothing itself.

mod difference;
mod fingerprint;
mod identity;
mod review;
mod tokens;
mod visible;
mod warning;

pub use difference::{DifferenceLine, LineChange, difference};
pub use fingerprint::Fingerprint;
pub use identity::identity;
pub use review::{AcceptanceReason, ApprovedDefinition, ItemKind, ReviewChange, Standing, stand};
pub use visible::{hidden_characters, visible};
pub use warning::{KnownNames, Warning, WarningKind, reference, warnings};
