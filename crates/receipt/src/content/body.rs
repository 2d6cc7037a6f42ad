//! The signed part of a receipt. It may be stored before it is signed, also by a process that
//! then dies, and signed from the stored text by the next one.

use super::write::{HEAD, TAIL};
use crate::canonical::{self, write_text};
use crate::json;
use crate::key::{SigningKey, to_multibase};
use crate::{Hash, verify};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    text: String,
    hash: Hash,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the unsigned text of a receipt of ours")]
pub struct BodyError;

impl Body {
    pub(super) fn new(text: String) -> Body {
        let hash = Hash::of(text.as_bytes());
        Body { text, hash }
    }

    /// A body as it was stored. Anything but canonical text is refused: its hash would not be that
    /// of the receipt.
    pub fn from_text(text: String) -> Result<Body, BodyError> {
        let value = json::parse(&text).map_err(|_| BodyError)?;
        let is_ours =
            text.starts_with(HEAD) && text.ends_with(TAIL) && value.get("proof").is_none();
        if !is_ours || canonical::receipt(value).as_ref() != Some(&text) {
            return Err(BodyError);
        }
        Ok(Body::new(text))
    }

    /// The canonical text, without a proof.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The receipt's hash, which the next one in the chain names.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// The receipt's JSON, canonical too: the proof stands at its place between issuer and type.
    pub fn sign(&self, key: &SigningKey, created_at: &str) -> String {
        let proof_value = to_multibase(&key.sign(self.text.as_bytes()));
        let before = &self.text[..self.text.len() - TAIL.len()];
        let mut out = String::with_capacity(self.text.len() + 400);
        out.push_str(before);
        out.push_str(r#","proof":{"created":"#);
        write_text(&mut out, created_at);
        out.push_str(r#","proofPurpose":""#);
        out.push_str(verify::PURPOSE);
        out.push_str(r#"","proofValue":""#);
        out.push_str(&proof_value);
        out.push_str(r#"","type":""#);
        out.push_str(verify::PROOF_TYPE);
        out.push_str(r#"","verificationMethod":"#);
        write_text(&mut out, key.verification_method());
        out.push('}');
        out.push_str(TAIL);
        out
    }
}
