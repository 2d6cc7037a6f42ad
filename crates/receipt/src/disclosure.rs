//! The parameters that a receipt discloses. Our receipts disclose none; those of other issuers
//! carry a plain map (up to 0.2.1) or an HPKE envelope for one reader. Both are parsed and checked;
//! an envelope is not opened.

use base64ct::{Base64UrlUnpadded, Encoding as _};
use serde_json::{Map, Value};

const VERSION: &str = "1";
const ALGORITHM: &str = "hpke-x25519-hkdf-sha256-aes-256-gcm";
const ENCAPSULATED_BYTES: usize = 32;
/// The AES-GCM tag plus `{}`, the shortest possible parameters.
const CIPHERTEXT_BYTES_MIN: usize = 18;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disclosure {
    Map(Vec<(String, String)>),
    Envelope(Envelope),
}

/// An envelope of the first version, for exactly one reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub recipient: String,
    pub encapsulated_key: [u8; ENCAPSULATED_BYTES],
    pub ciphertext: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DisclosureError {
    #[error("a disclosure must be an object of strings or an envelope")]
    Shape,
    #[error("an envelope must have exactly the members v, alg, recipients and ct")]
    Members,
    #[error("an envelope's v must be the string \"1\"")]
    Version,
    #[error("an envelope's alg must be \"{ALGORITHM}\"")]
    Algorithm,
    #[error("an envelope must have exactly one recipient, with only kid and enc")]
    Recipient,
    #[error("enc must be 32 bytes in base64url without padding")]
    EncapsulatedKey,
    #[error("ct must be at least 18 bytes in base64url without padding")]
    Ciphertext,
}

impl Disclosure {
    pub fn parse(value: &Value) -> Result<Disclosure, DisclosureError> {
        let object = value.as_object().ok_or(DisclosureError::Shape)?;
        let is_map = object.values().all(Value::is_string);
        if !is_map {
            return Envelope::parse(value).map(Disclosure::Envelope);
        }
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let pairs = object.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?)));
        Ok(Disclosure::Map(pairs.collect()))
    }
}

impl Envelope {
    pub fn parse(value: &Value) -> Result<Envelope, DisclosureError> {
        let envelope = value.as_object().ok_or(DisclosureError::Shape)?;
        if !has_exactly(envelope, &["v", "alg", "recipients", "ct"]) {
            return Err(DisclosureError::Members);
        }
        if envelope["v"] != VERSION {
            return Err(DisclosureError::Version);
        }
        if envelope["alg"] != ALGORITHM {
            return Err(DisclosureError::Algorithm);
        }
        let (recipient, encapsulated_key) = parse_recipient(&envelope["recipients"])?;
        let ciphertext = decode(&envelope["ct"])
            .filter(|bytes| bytes.len() >= CIPHERTEXT_BYTES_MIN)
            .ok_or(DisclosureError::Ciphertext)?;
        Ok(Envelope { recipient, encapsulated_key, ciphertext })
    }
}

fn parse_recipient(
    recipients: &Value,
) -> Result<(String, [u8; ENCAPSULATED_BYTES]), DisclosureError> {
    let recipient = match recipients.as_array().map(Vec::as_slice) {
        Some([recipient]) => recipient.as_object(),
        _ => None,
    };
    let recipient = recipient
        .filter(|recipient| has_exactly(recipient, &["kid", "enc"]))
        .ok_or(DisclosureError::Recipient)?;
    let kid = recipient["kid"].as_str().filter(|kid| !kid.is_empty());
    let encapsulated_key = decode(&recipient["enc"])
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or(DisclosureError::EncapsulatedKey)?;
    Ok((kid.ok_or(DisclosureError::Recipient)?.to_owned(), encapsulated_key))
}

fn has_exactly(object: &Map<String, Value>, names: &[&str]) -> bool {
    object.len() == names.len() && names.iter().all(|name| object.contains_key(*name))
}

fn decode(value: &Value) -> Option<Vec<u8>> {
    Base64UrlUnpadded::decode_vec(value.as_str()?).ok()
}
