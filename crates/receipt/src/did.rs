//! `did:key` for Ed25519 keys: the identifier contains the 32 bytes of the key, so no lookup is
//! needed. They are not checked to be a key.

use serde::Serialize;

const PREFIX: &str = "did:key:";
/// Multibase prefix of base58btc.
const BASE58: char = 'z';
/// Multicodec prefix of an Ed25519 public key.
const ED25519: [u8; 2] = [0xed, 0x01];
const PAYLOAD_BYTES: usize = 34;
/// 34 bytes need at most 47 digits. Decoding is quadratic in the length, so longer input is
/// rejected.
const DIGITS_MAX: usize = 47;
const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// The document that a `did:key` resolves to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DidDocument {
    #[serde(rename = "@context")]
    context: [&'static str; 2],
    id: String,
    verification_method: [VerificationMethod; 1],
    authentication: [String; 1],
    assertion_method: [String; 1],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct VerificationMethod {
    id: String,
    r#type: &'static str,
    controller: String,
    public_key_multibase: String,
}

pub(super) fn encode(key: &[u8; 32]) -> String {
    format!("{PREFIX}{}", multibase(key))
}

pub(super) fn decode(did: &str) -> Option<[u8; 32]> {
    let payload = from_base58(did.strip_prefix(PREFIX)?.strip_prefix(BASE58)?)?;
    payload.strip_prefix(&ED25519)?.try_into().ok()
}

/// Returns the DID URL of a `did:key`'s only key.
pub(super) fn verification_method(key: &[u8; 32]) -> String {
    let multibase = multibase(key);
    format!("{PREFIX}{multibase}#{multibase}")
}

pub(super) fn is_did_key(did: &str) -> bool {
    did.starts_with(PREFIX)
}

pub(super) fn document(key: &[u8; 32]) -> DidDocument {
    let (id, method) = (encode(key), verification_method(key));
    DidDocument {
        context: ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        verification_method: [VerificationMethod {
            id: method.clone(),
            r#type: "Multikey",
            controller: id.clone(),
            public_key_multibase: multibase(key),
        }],
        id,
        authentication: [method.clone()],
        assertion_method: [method],
    }
}

fn multibase(key: &[u8; 32]) -> String {
    let mut payload = [0; PAYLOAD_BYTES];
    payload[..ED25519.len()].copy_from_slice(&ED25519);
    payload[ED25519.len()..].copy_from_slice(key);
    format!("{BASE58}{}", to_base58(&payload))
}

/// Encodes the payload, which begins with 0xed and so has no leading zeros.
fn to_base58(payload: &[u8; PAYLOAD_BYTES]) -> String {
    let mut digits: Vec<u8> = Vec::with_capacity(DIGITS_MAX);
    for byte in payload {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry += u32::from(*digit) << 8;
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    digits.iter().rev().map(|digit| char::from(ALPHABET[usize::from(*digit)])).collect()
}

fn from_base58(text: &str) -> Option<[u8; PAYLOAD_BYTES]> {
    if text.is_empty() || text.len() > DIGITS_MAX || text.starts_with('1') {
        return None;
    }
    let mut payload = [0; PAYLOAD_BYTES];
    for digit in text.bytes() {
        let mut carry = ALPHABET.iter().position(|known| *known == digit)?;
        for byte in payload.iter_mut().rev() {
            carry += usize::from(*byte) * 58;
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return None;
        }
    }
    Some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw";

    #[test]
    fn a_did_that_is_no_ed25519_key_is_refused() {
        assert_eq!(encode(&decode(GOOD).unwrap()), GOOD);
        for bad in [
            "",
            "did:key:",
            "did:key:z",
            "did:agent:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw",
            "did:key:u6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw",
            "DID:KEY:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw",
            // characters outside the alphabet
            "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMs0",
            "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsé",
            // one digit fewer, one more, a leading zero byte
            "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMs",
            "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsww",
            "did:key:z16MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw",
            // an X25519 key
            "did:key:z6LSeu9HkTHSfLLeUs2nnzUSNedgDUevfNQUQUaHL9XJ7Z5W",
            // with a fragment it is a DID URL
            "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw#key-1",
        ] {
            assert!(decode(bad).is_none(), "{bad}");
        }
        assert!(decode(&format!("did:key:z{}", "6".repeat(1_000_000))).is_none());
    }
}
