//! Every vector on which independent implementations of the format agree.

use receipt::canonical::{self, Digest};
use receipt::chain::{self, ChainExpectation, ChainStatus};
use receipt::rotation::Rotation;
use receipt::verify::{self, SignedReceipt};
use receipt::{Hash, PublicKey, SigningKey};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::sample::{vector, vector_text};

#[derive(Deserialize)]
struct Canonicalization {
    canonicalization_vectors: Vec<Case>,
    receipt_hash_vectors: Vec<HashCase>,
}

/// The input stays text: `-0.0` and `1e21` must be kept as written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    name: String,
    input: Box<RawValue>,
    canonical: String,
    expected_hash: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HashCase {
    name: String,
    receipt: Option<Value>,
    expected_hash: Option<String>,
    must_contain_substring: Option<String>,
}

fn canonicalization() -> Canonicalization {
    serde_json::from_str(&vector_text("canonicalization_vectors.json")).unwrap()
}

fn public_key(vectors: &Value) -> PublicKey {
    PublicKey::from_pem(vectors["keys"]["publicKey"].as_str().unwrap()).unwrap()
}

fn texts(receipts: &Value) -> Vec<String> {
    receipts.as_array().unwrap().iter().map(Value::to_string).collect()
}

#[test]
fn canonical_forms() {
    let cases = canonicalization().canonicalization_vectors;
    assert_eq!(cases.len(), 32);
    for case in cases {
        let canonical = canonical::text(case.input.get()).unwrap();
        assert_eq!(canonical, case.canonical, "{}", case.name);
        let value: Value = serde_json::from_str(case.input.get()).unwrap();
        assert_eq!(canonical::value(&value), case.canonical, "{}", case.name);
        if let Some(expect) = case.expected_hash {
            let digest = Digest::of_text(case.input.get());
            assert_eq!(digest, Digest::Canonical(expect.parse().unwrap()), "{}", case.name);
        }
    }
}

#[test]
fn receipt_hashes() {
    let cases = canonicalization().receipt_hash_vectors;
    let baseline = cases[0].expected_hash.clone().unwrap();
    let mut checked = 0;
    for case in cases {
        // the one without a receipt refers to the 0.2.0 chain, which is verified below
        let (Some(receipt), Some(expect)) = (case.receipt, case.expected_hash) else { continue };
        let text = canonical::receipt(&receipt).unwrap();
        let expect = if expect.starts_with("SAME_AS_") { &baseline } else { &expect };
        assert_eq!(Hash::of(text.as_bytes()).to_string(), *expect, "{}", case.name);
        if let Some(part) = case.must_contain_substring {
            assert!(text.contains(&part), "{}", case.name);
        }
        checked += 1;
    }
    assert_eq!(checked, 10);
}

#[test]
fn receipts_of_the_first_version_in_three_languages() {
    for file in ["go_vectors.json", "py_vectors.json", "ts_vectors.json"] {
        let vectors = vector(file);
        let key = public_key(&vectors);
        let private = vectors["keys"]["privateKey"].as_str().unwrap();
        assert_eq!(SigningKey::from_pem(private).unwrap().public(), key);
        let forms = &vectors["canonicalization"];
        assert_eq!(canonical::value(&forms["simpleInput"]), forms["simpleExpected"]);
        let body = canonical::receipt(&forms["receiptInput"]).unwrap();
        assert_eq!(body, forms["receiptExpected"]);
        let hashes = &vectors["hashing"];
        assert_eq!(Hash::of(body.as_bytes()).to_string(), hashes["receiptExpected"]);
        let simple = hashes["simpleInput"].as_str().unwrap();
        assert_eq!(Hash::of(simple.as_bytes()).to_string(), hashes["simpleExpected"]);
        let signed = vectors["signing"]["signed"].to_string();
        let signed = verify::receipt(&signed, &key).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert_eq!(signed.body(), canonical::receipt(&vectors["signing"]["unsigned"]).unwrap());
    }
}

#[test]
fn single_receipts_of_later_versions() {
    let mut checked = 0;
    for file in ["v020_vectors.json", "v030_vectors.json", "v040_vectors.json", "v050_vectors.json"]
    {
        let vectors = vector(file);
        let key = public_key(&vectors);
        for (name, case) in vectors.as_object().unwrap() {
            let Some(receipt) = case.get("receipt") else { continue };
            assert_eq!(case["expectedValid"], true);
            let signed = verify::receipt(&receipt.to_string(), &key)
                .unwrap_or_else(|error| panic!("{file} {name}: {error}"));
            assert_eq!(signed.hash.to_string(), case["expectedReceiptHash"], "{file} {name}");
            checked += 1;
        }
    }
    assert_eq!(checked, 8);
}

#[test]
fn the_hash_of_a_response_is_taken_after_redaction() {
    let case = &vector("v020_vectors.json")["responseHash"];
    let digest = Digest::of_value(&case["redactedResponse"]);
    assert_eq!(digest.hash().to_string(), case["expectedHash"]);
    assert_ne!(Digest::of_value(&case["rawResponse"]), digest);
}

#[test]
fn chains_of_earlier_versions() {
    for (file, name, status) in [
        ("v020_vectors.json", "terminalChain", ChainStatus::Complete),
        ("v040_vectors.json", "duplicateIdempotencyChain", ChainStatus::Unknown),
    ] {
        let vectors = vector(file);
        let receipts = texts(&vectors[name]["receipts"]);
        let check = chain::verify(&receipts, &public_key(&vectors), ChainExpectation::default());
        assert!(check.valid, "{file}: {check:?}");
        assert_eq!((check.status, check.length), (status, receipts.len() as u64));
    }
}

#[test]
fn a_chain_of_the_version_after_ours() {
    let vectors = vector("v060/chain.json");
    let key = public_key(&vectors);
    let cases = vectors["receipts"].as_array().unwrap();
    let raw: Vec<&str> = cases.iter().map(|case| case["raw"].as_str().unwrap()).collect();
    for (case, raw) in cases.iter().zip(&raw) {
        assert_eq!(verify::receipt(raw, &key).unwrap().hash.to_string(), case["hash"]);
    }
    let check = chain::verify(&raw, &key, ChainExpectation::default());
    assert!(check.valid, "{check:?}");
    assert_eq!((check.status, check.length), (ChainStatus::Interrupted, 3));
}

#[test]
fn malformed_receipts_are_refused_for_their_fault() {
    let vectors = vector("malformed_vectors.json");
    let key = public_key(&vectors);
    let expect = [
        ("wrong_proof_type", "unsupported proof type \"RsaSignature2018\""),
        ("mutated_action_type", "signature does not match"),
        ("mutated_principal_id", "signature does not match"),
        ("truncated_proof_value", "proofValue is not"),
        ("wrong_multibase_prefix", "proofValue is not"),
        ("flipped_proof_byte", "signature does not match"),
    ];
    let cases = vectors["receipts"].as_array().unwrap();
    assert_eq!(cases.len(), expect.len());
    for (case, (name, reason)) in cases.iter().zip(expect) {
        assert_eq!(case["name"], name);
        let error = verify::receipt(&case["receipt"].to_string(), &key).unwrap_err().to_string();
        assert!(error.contains(reason), "{name}: {error}");
    }
}

#[test]
fn a_malformed_chain_is_broken_where_its_link_is_missing() {
    let vectors = vector("malformed_vectors.json");
    let case = &vectors["chains"][0];
    let check =
        chain::verify(texts(&case["receipts"]), &public_key(&vectors), ChainExpectation::default());
    assert_eq!((check.valid, check.broken_at), (false, Some(1)), "{check:?}");
    assert!(!check.receipts[1].hash_link_valid);
}

#[test]
fn examples_of_the_specification_are_well_formed() {
    for name in [
        "chain-receipt-1",
        "chain-receipt-2",
        "chain-receipt-3",
        "delegation-receipt",
        "full-receipt",
        "minimal-receipt",
        "parameters-disclosure-receipt",
        "v0-2-response-hash-receipt",
        "v0-2-terminal-chain-receipt-3",
    ] {
        let text = vector_text(&format!("spec/examples/{name}.json"));
        SignedReceipt::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn did_keys_resolve_to_their_documents() {
    for case in vector("spec/test-vectors/did-key/vectors.json")["vectors"].as_array().unwrap() {
        let key = PublicKey::from_did(case["did"].as_str().unwrap()).unwrap();
        let hex: String = key.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, case["public_key_hex"]);
        assert_eq!(key.did(), case["did"]);
        assert_eq!(json!(key.did_document()), case["did_document"]);
    }
}

#[test]
fn a_rotation_is_followed_to_the_new_key() {
    // RFC 8032, 7.1, test 2 and 3
    let old =
        PublicKey::from_did("did:key:z6MkiaMbhXHNA4eJVCCj8dbzKzTgYDKf6crKgHVHid1F1WCT").unwrap();
    let raw = vector_text("spec/test-vectors/rotation-event/example.json");
    let signed = verify::receipt(&raw, &old).unwrap();
    assert_eq!(
        signed.hash.to_string(),
        "sha256:6983c9bd6fb24e844b90f7616315a914fdedc5fef8126e11d46149ba2f320457"
    );
    let event = &vector("spec/test-vectors/rotation-event/example.json")["credentialSubject"]["keyRotation"];
    let new = PublicKey::from_multibase(event["new_public_key"].as_str().unwrap()).unwrap();
    assert_eq!(old.fingerprint().to_string(), event["old_key_fingerprint"]);
    assert_eq!(new.fingerprint().to_string(), event["new_key_fingerprint"]);
    assert_eq!(signed.rotation, Some(Ok(Rotation::new(&old, &new))));
    let mut chain = chain::Chain::new(old);
    assert!(chain.push(&raw).signature_valid);
    assert_eq!(chain.active_key(), &new);
}
