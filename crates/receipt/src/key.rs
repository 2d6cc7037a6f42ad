//! The Ed25519 keys that sign receipts, and their encodings: PKCS#8 and SPKI PEM, multibase,
//! fingerprint; [`super::did`] has `did:key`. The caller supplies seeds; the secret never appears
//! in debug output.

use std::fmt;
use std::sync::OnceLock;

use aws_lc_rs::signature::Ed25519KeyPair;
use base64ct::{Base64UrlUnpadded, Encoding as _};
use ed25519_dalek::pkcs8::{
    DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _,
    KeypairBytes, spki::der::pem::LineEnding,
};
use ed25519_dalek::{Signature, VerifyingKey};

use super::Hash;

pub const SEED_BYTES: usize = 32;
pub(super) const SIGNATURE_BYTES: usize = 64;
/// Multibase prefix of base64url without padding.
const BASE64URL: char = 'u';

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("not an Ed25519 private key in PKCS#8 PEM")]
    PrivatePem,
    #[error("not an Ed25519 public key in SPKI PEM")]
    PublicPem,
    #[error("not an Ed25519 public key: not a point on the curve")]
    Point,
    #[error("not an Ed25519 public key in multibase (u and 43 base64url characters)")]
    Multibase,
    #[error("not the did:key of an Ed25519 key")]
    Did,
}

pub struct SigningKey {
    key: ed25519_dalek::SigningKey,
    /// The same key in a library that signs in less than two thirds of the time. It is created at
    /// the first signature, because the library allocates memory as soon as it is used.
    quick: OnceLock<Ed25519KeyPair>,
    verification_method: String,
}

#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

/// PEM text of a private key. It is wiped on drop and has no `Debug`.
pub struct PrivatePem(ed25519_dalek::pkcs8::spki::der::zeroize::Zeroizing<String>);

impl PrivatePem {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SigningKey {
    pub fn from_seed(seed: &[u8; SEED_BYTES]) -> SigningKey {
        SigningKey::new(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    pub fn from_pem(pem: &str) -> Result<SigningKey, KeyError> {
        let key = ed25519_dalek::SigningKey::from_pkcs8_pem(pem);
        key.map(SigningKey::new).map_err(|_| KeyError::PrivatePem)
    }

    /// Encodes the key without its public half: OpenSSL before 3.5 cannot read the form that
    /// includes it.
    pub fn to_pem(&self) -> PrivatePem {
        let pair = KeypairBytes { secret_key: self.key.to_bytes(), public_key: None };
        PrivatePem(
            pair.to_pkcs8_pem(LineEnding::LF).expect("a key of 32 bytes can be written as PEM"),
        )
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.key.verifying_key())
    }

    /// Returns the DID URL of this key, as it appears in proofs.
    pub fn verification_method(&self) -> &str {
        &self.verification_method
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let quick = self.quick.get_or_init(|| {
            Ed25519KeyPair::from_seed_unchecked(self.key.as_bytes()).expect("a seed has 32 bytes")
        });
        let signature = quick.sign(bytes);
        signature.as_ref().try_into().expect("an Ed25519 signature has 64 bytes")
    }

    fn new(key: ed25519_dalek::SigningKey) -> SigningKey {
        let verification_method = PublicKey(key.verifying_key()).verification_method();
        SigningKey { key, quick: OnceLock::new(), verification_method }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public().did())
    }
}

impl PublicKey {
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<PublicKey, KeyError> {
        VerifyingKey::from_bytes(bytes).map(PublicKey).map_err(|_| KeyError::Point)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    pub fn from_pem(pem: &str) -> Result<PublicKey, KeyError> {
        VerifyingKey::from_public_key_pem(pem).map(PublicKey).map_err(|_| KeyError::PublicPem)
    }

    pub fn to_pem(&self) -> String {
        self.0.to_public_key_pem(LineEnding::LF).expect("a key of 32 bytes can be written as PEM")
    }

    pub fn from_multibase(text: &str) -> Result<PublicKey, KeyError> {
        let bytes = from_multibase::<32>(text).ok_or(KeyError::Multibase)?;
        PublicKey::from_bytes(&bytes)
    }

    pub fn to_multibase(&self) -> String {
        to_multibase(self.as_bytes())
    }

    /// Returns the SHA-256 of the 32 raw bytes, not of any encoding.
    pub fn fingerprint(&self) -> Hash {
        Hash::of(self.as_bytes())
    }

    /// Verifies strictly: each signature has one encoding, and weak keys, under which any signature
    /// verifies, are rejected.
    pub(super) fn verifies(&self, bytes: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        self.0.verify_strict(bytes, &Signature::from_bytes(signature)).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.did())
    }
}

pub(super) fn to_multibase(bytes: &[u8]) -> String {
    format!("{BASE64URL}{}", Base64UrlUnpadded::encode_string(bytes))
}

/// Returns `None` for a wrong length, foreign characters, padding, or leftover bits at the end.
pub(super) fn from_multibase<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let decoded = Base64UrlUnpadded::decode(text.strip_prefix(BASE64URL)?, &mut bytes).ok()?;
    (decoded.len() == N && to_multibase(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJqomA2cjqhLUYPhkMJyg4+A7hU8GiZtVzkN0Yz6jJPF\n-----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAZMzh2Qtdx/p40WlXhD+gKmaTDv3rLGm6TeY7TsJUKSQ=\n-----END PUBLIC KEY-----\n";

    #[test]
    fn pem_is_written_as_it_was_read() {
        let key = SigningKey::from_pem(PRIVATE).unwrap();
        assert_eq!(key.to_pem().as_str(), PRIVATE);
        assert_eq!(key.public().to_pem(), PUBLIC);
        assert_eq!(PublicKey::from_pem(PUBLIC).unwrap(), key.public());
        assert_eq!(PublicKey::from_pem(PRIVATE), Err(KeyError::PublicPem));
        assert_eq!(SigningKey::from_pem(PUBLIC).unwrap_err(), KeyError::PrivatePem);
        assert_eq!(SigningKey::from_pem("").unwrap_err(), KeyError::PrivatePem);
    }

    #[test]
    fn debug_output_shows_the_public_part_only() {
        let key = SigningKey::from_seed(&[7; SEED_BYTES]);
        assert_eq!(format!("{key:?}"), format!("SigningKey({})", key.public().did()));
    }

    #[test]
    fn multibase_has_one_spelling() {
        let key = SigningKey::from_seed(&[7; SEED_BYTES]).public();
        let text = key.to_multibase();
        assert_eq!(PublicKey::from_multibase(&text).unwrap(), key);
        let mut other_bits = text.clone();
        let last = other_bits.pop().unwrap();
        other_bits.push(char::from(last as u8 + 1));
        for bad in [&text[1..], &format!("z{}", &text[1..]), &format!("{text}="), &other_bits, "u"]
        {
            assert_eq!(PublicKey::from_multibase(bad), Err(KeyError::Multibase), "{bad}");
        }
    }
}
