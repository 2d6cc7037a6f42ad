//! One receipt as this program issues it (format version 0.5.0), with everything known when a call
//! ends. Its position in a chain is added later, and its proof last.

mod body;
mod parts;
mod write;

pub use body::{Body, BodyError};
pub use parts::{
    Action, ActionTarget, Issuer, Operator, OutcomeStatus, PeerCredential, Position, Principal,
    PrincipalKind, Receipt, ReceiptOutcome, Termination,
};
