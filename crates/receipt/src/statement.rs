//! Signatures over texts that are not receipts. A statement names its purpose, so that the
//! signature of one kind of text never passes for that of another, nor for that of a receipt.

use crate::Hash;
use crate::key::{PublicKey, SigningKey, from_multibase, to_multibase};

/// Signs a text; the result is in multibase, as in proofs.
pub fn sign(key: &SigningKey, purpose: &str, text: &str) -> String {
    to_multibase(&key.sign(content(purpose, text).as_bytes()))
}

/// Reports whether this key signed this text for this purpose.
pub fn is_signed(key: &PublicKey, purpose: &str, text: &str, signature: &str) -> bool {
    let signature = from_multibase(signature);
    signature.is_some_and(|signature| key.verifies(content(purpose, text).as_bytes(), &signature))
}

/// Returns the bytes that are signed. A receipt begins with a brace, a statement does not.
fn content(purpose: &str, text: &str) -> String {
    format!("statement {purpose}\n{}", Hash::of(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_counts_for_its_text_its_purpose_and_its_key() {
        let (key, other) = (SigningKey::from_seed(&[1; 32]), SigningKey::from_seed(&[2; 32]));
        let signature = sign(&key, "decisions", "text");
        assert!(is_signed(&key.public(), "decisions", "text", &signature));
        assert!(!is_signed(&key.public(), "decisions", "texts", &signature));
        assert!(!is_signed(&key.public(), "checkpoint", "text", &signature));
        assert!(!is_signed(&other.public(), "decisions", "text", &signature));
        for bad in ["", "u", &signature[1..]] {
            assert!(!is_signed(&key.public(), "decisions", "text", bad), "{bad}");
        }
    }
}
