//! Constants of a receipt's proof.

pub(crate) const PROOF_TYPE: &str = "Ed25519Signature2020";
pub(crate) const PURPOSE: &str = "assertionMethod";
