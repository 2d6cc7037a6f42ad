//! Compares what servers list now with what a person approved: fingerprints, pending reviews, and
//! aids for the reviewer. This module stores nothing.

mod difference;
mod fingerprint;
mod identity;
mod review;
mod server_text;

pub use difference::{DifferenceLine, LineChange, change_fingerprint, difference, line_difference};
pub use fingerprint::Fingerprint;
pub use identity::{ServerChange, identity, reviewed};
pub use review::{
    AcceptanceReason, ApprovedDefinition, ItemKind, ReviewChange, ReviewState, review_state,
};
pub use server_text::ServerText;
