//! Sealed parameters: the published envelopes are accepted, every deviation from their shape is
//! rejected.

use receipt::canonical;
use receipt::disclosure::{Disclosure, DisclosureError, Envelope};
use serde_json::{Value, json};

use crate::sample::vector;

fn cases() -> Vec<Value> {
    let vectors = vector("spec/test-vectors/disclosure-envelope/vectors.json");
    vectors["vectors"].as_array().unwrap().clone()
}

#[test]
fn published_envelopes_are_read() {
    let cases = cases();
    assert_eq!(cases.len(), 2);
    for case in cases {
        let object = &case["envelope_object"];
        assert_eq!(canonical::value(object), case["envelope_canonical_jcs"]);
        assert_eq!(canonical::value(&case["plaintext_object"]), case["plaintext_canonical_jcs"]);
        let envelope = Envelope::parse(object).unwrap();
        assert_eq!(envelope.recipient, object["recipients"][0]["kid"]);
        let plain = case["plaintext_canonical_jcs"].as_str().unwrap().len();
        assert_eq!(envelope.ciphertext.len(), plain + 16);
        assert_eq!(Disclosure::parse(object), Ok(Disclosure::Envelope(envelope)));
    }
}

#[test]
fn disclosures_of_published_receipts_are_read() {
    for (file, name) in [
        ("v020_vectors.json", "parametersDisclosureReceipt"),
        ("v030_vectors.json", "parametersDisclosureEnvelopeReceipt"),
    ] {
        let receipt = &vector(file)[name]["receipt"];
        let field = &receipt["credentialSubject"]["action"]["parameters_disclosure"];
        let disclosure = Disclosure::parse(field).unwrap();
        assert_eq!(matches!(disclosure, Disclosure::Envelope(_)), file == "v030_vectors.json");
    }
    assert_eq!(Disclosure::parse(&json!("text")), Err(DisclosureError::Shape));
}

#[test]
fn an_envelope_of_another_shape_is_refused() {
    use DisclosureError::*;
    let good = &cases()[0]["envelope_object"];
    let recipient = &good["recipients"][0];
    let enc = recipient["enc"].as_str().unwrap();
    let with = |name: &str, value: Value| {
        let mut recipient = recipient.clone();
        recipient[name] = value;
        json!([recipient])
    };
    for (name, value, expect) in [
        ("v", json!(1), Version),
        ("v", json!("2"), Version),
        ("alg", json!("HPKE-X25519-HKDF-SHA256-AES-256-GCM"), Algorithm),
        ("alg", json!("hpke-x25519-hkdf-sha256-aes-256-gcm "), Algorithm),
        ("nonce", json!("AAAA"), Members),
        ("recipients", json!([]), Recipient),
        ("recipients", json!([recipient, recipient]), Recipient),
        ("recipients", json!({}), Recipient),
        ("recipients", with("kid", json!("")), Recipient),
        ("recipients", with("kid", json!(1)), Recipient),
        ("recipients", with("more", json!(1)), Recipient),
        ("recipients", with("enc", json!(&enc[1..])), EncapsulatedKey),
        ("recipients", with("enc", json!(format!("{enc}="))), EncapsulatedKey),
        ("recipients", with("enc", json!("<enc-bytes-base64url-unpadded>")), EncapsulatedKey),
        ("ct", json!("A".repeat(23)), Ciphertext),
        ("ct", json!("A".repeat(25)), Ciphertext),
        ("ct", json!("+/+/+/+/+/+/+/+/+/+/+/+/"), Ciphertext),
        ("ct", json!("AAAAAAAAAAAAAAAAAAAAAAAAAA=="), Ciphertext),
        ("ct", json!(null), Ciphertext),
    ] {
        let mut envelope = good.clone();
        envelope[name] = value;
        assert_eq!(Envelope::parse(&envelope), Err(expect), "{envelope}");
    }
    for name in ["v", "alg", "recipients", "ct"] {
        let mut envelope = good.clone();
        envelope.as_object_mut().unwrap().remove(name);
        assert_eq!(Envelope::parse(&envelope), Err(Members));
    }
}
