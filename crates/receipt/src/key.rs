//! The Ed25519 keys that sign receipts, and their encodings: PKCS#8 and SPKI PEM, multibase,
//! fingerprint; [`super::did`] has `did:key`. The caller supplies seeds; the secret never appears
//! in debug output.

use std::fmt;
use std::sync::OnceLock;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use base64ct::{Base64UrlUnpadded, Encoding as _};
use ed25519_dalek::VerifyingKey;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey as _, DecodePublicKey as _, EncodePrivateKey as _, EncodePublicKey as _,
    KeypairBytes, spki::der::pem::LineEnding,
};

use super::Hash;
use super::did::{self, DidDocument};

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

#[derive(Clone)]
pub struct PublicKey {
    key: VerifyingKey,
    /// Encoded at the first use: every verification compares it.
    verification_method: OnceLock<String>,
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &PublicKey) -> bool {
        self.key == other.key
    }
}

impl Eq for PublicKey {}

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
        PublicKey::new(self.key.verifying_key())
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
        let verification_method = did::verification_method(key.verifying_key().as_bytes());
        SigningKey { key, quick: OnceLock::new(), verification_method }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public().did())
    }
}

impl PublicKey {
    fn new(key: VerifyingKey) -> PublicKey {
        PublicKey { key, verification_method: OnceLock::new() }
    }

    /// Returns the DID URL of a `did:key`'s only key.
    pub(super) fn verification_method(&self) -> &str {
        self.verification_method.get_or_init(|| did::verification_method(self.as_bytes()))
    }

    pub fn from_bytes(bytes: &[u8; 32]) -> Result<PublicKey, KeyError> {
        VerifyingKey::from_bytes(bytes).map(PublicKey::new).map_err(|_| KeyError::Point)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    pub fn from_pem(pem: &str) -> Result<PublicKey, KeyError> {
        VerifyingKey::from_public_key_pem(pem).map(PublicKey::new).map_err(|_| KeyError::PublicPem)
    }

    pub fn to_pem(&self) -> String {
        self.key.to_public_key_pem(LineEnding::LF).expect("a key of 32 bytes can be written as PEM")
    }

    pub fn from_multibase(text: &str) -> Result<PublicKey, KeyError> {
        let bytes = from_multibase::<32>(text).ok_or(KeyError::Multibase)?;
        PublicKey::from_bytes(&bytes)
    }

    pub fn to_multibase(&self) -> String {
        to_multibase(self.as_bytes())
    }

    pub fn from_did(did: &str) -> Result<PublicKey, KeyError> {
        PublicKey::from_bytes(&did::decode(did).ok_or(KeyError::Did)?)
    }

    pub fn did(&self) -> String {
        did::encode(self.as_bytes())
    }

    /// Returns the document that the `did:key` resolves to.
    pub fn did_document(&self) -> DidDocument {
        did::document(self.as_bytes())
    }

    /// Returns the SHA-256 of the 32 raw bytes, not of any encoding.
    pub fn fingerprint(&self) -> Hash {
        Hash::of(self.as_bytes())
    }

    /// Verifies strictly: each signature has one encoding, and weak keys, under which any signature
    /// verifies, are rejected, as is a signature that begins with a point of small order. The
    /// library is the one that signs, since it takes less time.
    pub(super) fn verifies(&self, bytes: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let is_weak =
            self.key.is_weak() || SMALL_ORDER.iter().any(|point| signature.starts_with(point));
        !is_weak
            && UnparsedPublicKey::new(&ED25519, self.as_bytes()).verify(bytes, signature).is_ok()
    }
}

/// The points of small order, each in its one canonical encoding.
const SMALL_ORDER: [[u8; 32]; 8] = {
    let mut points = [[0; 32]; 8];
    points[0][0] = 1;
    points[1] = [0xff; 32];
    (points[1][0], points[1][31]) = (0xec, 0x7f);
    points[3][31] = 0x80;
    points[4] = [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67,
        0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac,
        0x03, 0x7a,
    ];
    points[5] = points[4];
    points[5][31] |= 0x80;
    points[6] = [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98,
        0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53,
        0xfc, 0x05,
    ];
    points[7] = points[6];
    points[7][31] |= 0x80;
    points
};

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
    fn weak_keys_and_points_are_rejected() {
        let mut distinct = SMALL_ORDER.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 8);
        for point in SMALL_ORDER {
            let weak = PublicKey::from_bytes(&point).unwrap();
            assert!(weak.key.is_weak(), "{point:?}");
            // Under such a key, zero is a signature of every message.
            let mut signature = [0; SIGNATURE_BYTES];
            signature[0] = 1;
            assert!(!weak.verifies(b"anything", &signature));
        }
    }

    #[test]
    fn both_libraries_accept_the_same_signatures() {
        let key = SigningKey::from_seed(&[7; SEED_BYTES]);
        let (public, signature) = (key.public(), key.sign(b"text"));
        let strict = |signature: &[u8; SIGNATURE_BYTES], text: &[u8]| {
            let signature = ed25519_dalek::Signature::from_bytes(signature);
            public.key.verify_strict(text, &signature).is_ok()
        };
        assert!(public.verifies(b"text", &signature) && strict(&signature, b"text"));
        for bit in 0..SIGNATURE_BYTES * 8 {
            let mut other = signature;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!public.verifies(b"text", &other) && !strict(&other, b"text"), "bit {bit}");
        }
        assert!(!public.verifies(b"test", &signature));
        // The same signature with the order of the group added to its second half.
        let order = [
            0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9,
            0xde, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
        ];
        let (mut other, mut carry) = (signature, 0);
        for (byte, more) in other[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + more + carry;
            (*byte, carry) = (sum.to_le_bytes()[0], sum >> 8);
        }
        assert!(!public.verifies(b"text", &other) && !strict(&other, b"text"));
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
