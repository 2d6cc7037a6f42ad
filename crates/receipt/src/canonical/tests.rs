//! Compares the canonical form with an independent implementation, and checks which numbers are
//! faithful.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn a_number_that_would_be_rounded_gives_the_hash_of_the_exact_text() {
    for (literal, canonical) in [
        ("9007199254740992", true),
        ("-9007199254740992", true),
        ("9007199254740993", false),
        ("-9007199254740993", false),
        ("18446744073709551615", false),
        ("18446744073709551616", false),
        ("-9223372036854775809", false),
        ("123456789012345678901234567890", false),
        ("9007199254740993.0", false),
        ("1e20", false),
        ("1e400", false),
        ("-0", true),
        ("1.5e3", true),
        ("0.1", true),
        ("1e-300", true),
    ] {
        let text = format!(r#"{{ "n": [{literal}] }}"#);
        let digest = Digest::of_text(&text);
        assert_eq!(matches!(digest, Digest::Canonical(_)), canonical, "{literal}");
        if !canonical {
            assert_eq!(digest, Digest::Exact(Hash::of(text.as_bytes())));
        }
        if let Ok(Some(object)) = Object::parse(&text) {
            assert_eq!(Digest::of_object(&object), digest, "{literal}");
        }
    }
}

#[test]
fn spelling_does_not_change_a_canonical_hash() {
    let digest = Digest::of_text(r#"{ "b": 1.0, "a": "\u0041", "c": -0 }"#);
    assert_eq!(digest, Digest::Canonical(Hash::of(br#"{"a":"A","b":1,"c":0}"#)));
    assert_eq!(Digest::of_value(&json!({"c": 0, "a": "A", "b": 1})), digest);
}

#[test]
fn a_long_text_is_hashed_as_it_is() {
    let long = format!(r#"["{}"]"#, "x".repeat(CANONICAL_BYTES_MAX));
    assert_eq!(Digest::of_text(&long), Digest::Exact(Hash::of(long.as_bytes())));
    assert_eq!(
        Digest::of_value(&json!(["x".repeat(CANONICAL_BYTES_MAX)])).hash(),
        Hash::of(long.as_bytes())
    );
}

#[test]
fn invalid_json_has_no_canonical_form() {
    for bad in [r#"{"a":1,"a":2}"#, r#"{"a":1,"b":0,"\u0061":2}"#, "", "[1", "[1]]", "1e999"] {
        assert!(text(bad).is_err(), "{bad}");
        assert_eq!(Digest::of_text(bad), Digest::Exact(Hash::of(bad.as_bytes())));
    }
}

/// Generates JSON of every kind, with names and strings from all planes of Unicode.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-(1i64 << 53)..=1i64 << 53).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("\\PC{0,3}|[\u{e000}\u{ffff}\u{10000}😀]{1,2}", inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_an_independent_implementation(json in any_json()) {
        let expect = serde_json_canonicalizer::to_string(&json).unwrap();
        prop_assert_eq!(&value(&json), &expect);
        prop_assert_eq!(&text(&json.to_string()).unwrap(), &expect);
        prop_assert_eq!(&text(&serde_json::to_string_pretty(&json).unwrap()).unwrap(), &expect);
    }
}
