//! One receipt as this program issues it (format version 0.5.0): what is known when a call ends.
//! Its place in a chain comes later, and its proof last.

mod body;
mod parts;
mod write;

pub use body::{Body, BodyError};
pub use parts::{
    Action, ActionTarget, Issuer, Operator, OutcomeStatus, PeerCredential, Position, Principal,
    PrincipalKind, Receipt, ReceiptOutcome, Termination,
};
