//! Verifies one signed receipt from its JSON, ours or another issuer's, versions 0.1.0 to 0.6.0.
//! Unknown members are kept: every member counts for the hash and the signature.

use serde_json::{Map, Value};

use crate::content::Termination;
use crate::key::{PublicKey, SIGNATURE_BYTES, from_multibase};
use crate::proof::{PROOF_TYPE, PURPOSE};
use crate::rotation::{Rotation, RotationError};
use crate::{Hash, canonical, did};
use text::json;

const CREDENTIALS: &str = "https://www.w3.org/ns/credentials/v2";
const CREDENTIAL_TYPE: [&str; 2] = ["VerifiableCredential", "AgentReceipt"];

/// The published versions, each with the context that defines its fields.
const VERSIONS: [(&str, &str); 7] = [
    ("0.1.0", "https://agentreceipts.ai/context/v1"),
    ("0.2.0", "https://agentreceipts.ai/context/v1"),
    ("0.2.1", "https://agentreceipts.ai/context/v1"),
    ("0.3.0", "https://agentreceipts.ai/context/v1"),
    ("0.4.0", "https://agentreceipts.ai/context/v1"),
    ("0.5.0", "https://agentreceipts.ai/context/v2"),
    ("0.6.0", "https://agentreceipts.ai/context/v3"),
];

/// A well-formed receipt. Its signature is checked by `verify`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedReceipt {
    pub id: String,
    pub link: ChainLink,
    pub hash: Hash,
    /// The event of a receipt that rotates the key; an error in it counts only if the rotation is
    /// followed.
    pub rotation: Option<Result<Rotation, RotationError>>,
    body: String,
    issuer_is_did_key: bool,
    signature: [u8; SIGNATURE_BYTES],
    verification_method: String,
    /// The key that is known to have signed it.
    proven_by: Option<PublicKey>,
}

/// A receipt's position in its chain, as the receipt states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    pub chain_id: String,
    pub sequence: u64,
    pub previous: Option<Hash>,
    pub termination: Option<Termination>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    #[error("not valid JSON: {0}")]
    Json(String),
    #[error("{0} is missing or malformed")]
    Malformed(&'static str),
    #[error("unsupported format version \"{0}\"")]
    Version(String),
    #[error("unsupported proof type \"{0}\", expected {PROOF_TYPE}")]
    ProofType(String),
    #[error("proof purpose is \"{0}\", expected {PURPOSE}")]
    Purpose(String),
    #[error("proofValue is not a signature: expected 'u' and 86 base64url characters")]
    ProofValue,
    #[error("contains a number beyond 2^53, which has no exact canonical form")]
    Number,
    #[error("claims to be signed with another key ({0})")]
    OtherKey(String),
    #[error("signature does not match the content and the key {0}")]
    Signature(String),
}

/// Checks the form and signature of one receipt.
pub fn receipt(raw: &str, key: &PublicKey) -> Result<SignedReceipt, ReceiptError> {
    let signed = SignedReceipt::parse(raw)?;
    signed.verify(key)?;
    Ok(signed)
}

impl SignedReceipt {
    pub fn parse(raw: &str) -> Result<SignedReceipt, ReceiptError> {
        SignedReceipt::read(raw).map(|(signed, _)| signed)
    }

    /// Parses a receipt, and returns its members too.
    pub fn read(raw: &str) -> Result<(SignedReceipt, Value), ReceiptError> {
        let value = json::parse(raw).map_err(|error| ReceiptError::Json(json::explain(&error)))?;
        let receipt = value.as_object().ok_or(ReceiptError::Malformed("the receipt object"))?;
        check_envelope(receipt)?;
        let issuer_is_did_key = did::is_did_key(issuer_id(receipt)?);
        let id = text(receipt, "id")?.to_owned();
        let link = link(&value)?;
        let (signature, verification_method) = proof(receipt)?;
        let rotation = value.pointer("/credentialSubject/keyRotation");
        let rotation = rotation.filter(|event| !event.is_null()).map(Rotation::parse);
        let body = canonical::receipt(&value).ok_or(ReceiptError::Number)?;
        let hash = Hash::of(body.as_bytes());
        let signed = SignedReceipt {
            id,
            link,
            hash,
            rotation,
            body,
            issuer_is_did_key,
            signature,
            verification_method,
            proven_by: None,
        };
        Ok((signed, value))
    }

    /// Returns the one of these keys that the receipt names as its signer.
    pub fn key_among<'a>(&self, keys: &'a [PublicKey]) -> Option<&'a PublicKey> {
        keys.iter().find(|key| key.verification_method() == self.verification_method)
    }

    /// Verifies the signature with the one of these keys that the receipt names, and remembers the
    /// key if it fits, so that verifying it again costs nothing.
    pub(crate) fn prove(&mut self, keys: &[PublicKey]) {
        let named = self.key_among(keys);
        self.proven_by = named.filter(|key| self.verify(key).is_ok()).cloned();
    }

    /// Verifies the signature. A `did:key` has exactly one key, so the proof of such an issuer must
    /// name `key`; other key names are ignored.
    pub fn verify(&self, key: &PublicKey) -> Result<(), ReceiptError> {
        let named = &self.verification_method;
        let is_did_key = self.issuer_is_did_key || did::is_did_key(named);
        if is_did_key && *named != key.verification_method() {
            return Err(ReceiptError::OtherKey(named.clone()));
        }
        let is_proven = self.proven_by.as_ref() == Some(key);
        if !is_proven && !key.verifies(self.body.as_bytes(), &self.signature) {
            return Err(ReceiptError::Signature(key.did()));
        }
        Ok(())
    }

    /// Returns the canonical text that is signed.
    pub fn body(&self) -> &str {
        &self.body
    }
}

fn check_envelope(receipt: &Map<String, Value>) -> Result<(), ReceiptError> {
    let version = text(receipt, "version")?;
    let (_, context) = VERSIONS
        .into_iter()
        .find(|(known, _)| *known == version)
        .ok_or_else(|| ReceiptError::Version(version.to_owned()))?;
    let contexts = receipt.get("@context").and_then(Value::as_array);
    match contexts.map(Vec::as_slice) {
        Some([first, second, ..]) if first == CREDENTIALS && second == context => {}
        _ => return Err(ReceiptError::Malformed("@context")),
    }
    if receipt.get("type") != Some(&CREDENTIAL_TYPE.as_slice().into()) {
        return Err(ReceiptError::Malformed("type"));
    }
    text(receipt, "issuanceDate")?;
    check_subject(receipt.get("credentialSubject").unwrap_or(&Value::Null))
}

fn issuer_id(receipt: &Map<String, Value>) -> Result<&str, ReceiptError> {
    let id = receipt.get("issuer").and_then(|issuer| issuer.get("id"));
    id.and_then(Value::as_str).ok_or(ReceiptError::Malformed("issuer.id"))
}

fn check_subject(subject: &Value) -> Result<(), ReceiptError> {
    for (pointer, place) in [
        ("/principal/id", "principal.id"),
        ("/action/id", "action.id"),
        ("/action/type", "action.type"),
        ("/action/timestamp", "action.timestamp"),
    ] {
        let found = subject.pointer(pointer).filter(|value| value.is_string());
        found.ok_or(ReceiptError::Malformed(place))?;
    }
    let one_of = |pointer: &str, words: &[&str]| {
        subject.pointer(pointer).and_then(Value::as_str).is_some_and(|word| words.contains(&word))
    };
    if !one_of("/action/risk_level", &["low", "medium", "high", "critical"]) {
        return Err(ReceiptError::Malformed("action.risk_level"));
    }
    if !one_of("/outcome/status", &["success", "failure", "pending"]) {
        return Err(ReceiptError::Malformed("outcome.status"));
    }
    Ok(())
}

fn link(receipt: &Value) -> Result<ChainLink, ReceiptError> {
    let chain = receipt.pointer("/credentialSubject/chain").and_then(Value::as_object);
    let chain = chain.ok_or(ReceiptError::Malformed("credentialSubject.chain"))?;
    let chain_id = chain.get("chain_id").and_then(Value::as_str);
    let sequence = chain.get("sequence").and_then(Value::as_u64).filter(|at| *at >= 1);
    let previous = match chain.get("previous_receipt_hash") {
        Some(Value::Null) => Some(None),
        Some(hash) => hash.as_str().and_then(|hash| hash.parse().ok()).map(Some),
        None => None,
    };
    Ok(ChainLink {
        chain_id: chain_id.ok_or(ReceiptError::Malformed("chain.chain_id"))?.to_owned(),
        sequence: sequence.ok_or(ReceiptError::Malformed("chain.sequence"))?,
        previous: previous.ok_or(ReceiptError::Malformed("chain.previous_receipt_hash"))?,
        termination: termination(chain)?,
    })
}

/// Reads how the chain ended. A terminal receipt without a status is complete; a status requires a
/// terminal receipt.
fn termination(chain: &Map<String, Value>) -> Result<Option<Termination>, ReceiptError> {
    let present = |name: &str| chain.get(name).filter(|value| !value.is_null());
    match (present("terminal"), present("status").map(Value::as_str)) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(ReceiptError::Malformed("chain.terminal")),
        (Some(Value::Bool(true)), None | Some(Some("complete"))) => Ok(Some(Termination::Complete)),
        (Some(Value::Bool(true)), Some(Some("interrupted"))) => Ok(Some(Termination::Interrupted)),
        (Some(Value::Bool(true)), Some(_)) => Err(ReceiptError::Malformed("chain.status")),
        (Some(_), _) => Err(ReceiptError::Malformed("chain.terminal")),
    }
}

fn proof(receipt: &Map<String, Value>) -> Result<([u8; SIGNATURE_BYTES], String), ReceiptError> {
    let proof = receipt.get("proof").and_then(Value::as_object);
    let proof = proof.ok_or(ReceiptError::Malformed("proof"))?;
    let part = |name: &str| proof.get(name).and_then(Value::as_str);
    let kind = part("type").ok_or(ReceiptError::Malformed("proof.type"))?;
    if kind != PROOF_TYPE {
        return Err(ReceiptError::ProofType(kind.to_owned()));
    }
    let purpose = part("proofPurpose").ok_or(ReceiptError::Malformed("proof.proofPurpose"))?;
    if purpose != PURPOSE {
        return Err(ReceiptError::Purpose(purpose.to_owned()));
    }
    part("created").ok_or(ReceiptError::Malformed("proof.created"))?;
    let method = part("verificationMethod");
    let method = method.ok_or(ReceiptError::Malformed("proof.verificationMethod"))?;
    let value = part("proofValue").ok_or(ReceiptError::Malformed("proof.proofValue"))?;
    let signature = from_multibase(value).ok_or(ReceiptError::ProofValue)?;
    Ok((signature, method.to_owned()))
}

fn text<'a>(object: &'a Map<String, Value>, name: &'static str) -> Result<&'a str, ReceiptError> {
    object.get(name).and_then(Value::as_str).ok_or(ReceiptError::Malformed(name))
}
