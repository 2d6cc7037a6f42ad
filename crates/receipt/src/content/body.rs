//! The signed part of a receipt. It may be stored before it is signed; if the process dies in
//! between, the next one signs the stored text.

use crate::Hash;
use crate::canonical::{self, write_text};
use crate::content::parts::{Position, Receipt};
use crate::content::write::{self, HEAD, TAIL};
use crate::key::{SigningKey, to_multibase};
use crate::proof::{PROOF_TYPE, PURPOSE};
use text::json;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    text: String,
    hash: Hash,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an unsigned receipt made by this program")]
pub struct BodyError;

impl Receipt<'_> {
    /// Returns the canonical text at this position of a chain, which is signed and hashed.
    pub fn body(&self, position: &Position<'_>) -> Body {
        Body::new(write::receipt(self, position))
    }
}

impl Body {
    fn new(text: String) -> Body {
        let hash = Hash::of(text.as_bytes());
        Body { text, hash }
    }

    /// Reads a stored body. Text that is not canonical is rejected: its hash would differ from the
    /// receipt's.
    pub fn from_text(text: String) -> Result<Body, BodyError> {
        let value = json::parse(&text).map_err(|_| BodyError)?;
        let is_ours =
            text.starts_with(HEAD) && text.ends_with(TAIL) && value.get("proof").is_none();
        if !is_ours || canonical::receipt(&value).as_ref() != Some(&text) {
            return Err(BodyError);
        }
        Ok(Body::new(text))
    }

    /// Returns the canonical text, without a proof.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the receipt's hash, which the next receipt in the chain refers to.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Returns the receipt's JSON, also canonical: the proof goes between issuer and type.
    pub fn sign(&self, key: &SigningKey, created_at: &str) -> String {
        let proof_value = to_multibase(&key.sign(self.text.as_bytes()));
        let before = &self.text[..self.text.len() - TAIL.len()];
        let mut out = String::with_capacity(self.text.len() + 400);
        out.push_str(before);
        out.push_str(r#","proof":{"created":"#);
        write_text(&mut out, created_at);
        out.push_str(r#","proofPurpose":""#);
        out.push_str(PURPOSE);
        out.push_str(r#"","proofValue":""#);
        out.push_str(&proof_value);
        out.push_str(r#"","type":""#);
        out.push_str(PROOF_TYPE);
        out.push_str(r#"","verificationMethod":"#);
        write_text(&mut out, key.verification_method());
        out.push('}');
        out.push_str(TAIL);
        out
    }
}
