//! The fingerprint of an item that a server lists: one hash for all spellings of the same
//! definition.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use receipt::{Hash, canonical};
use suspect::UNSEEN;

/// Prefix of text without a canonical form. A canonical form begins with `{`, so no text can be
/// crafted to hash like one.
const AS_IT_STANDS: &str = "countersign: text as it stands\n";

/// Formatted as `sha256:` and 64 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(Hash);

impl Fingerprint {
    /// Returns the SHA-256 of the canonical JSON (RFC 8785) of the whole object without its own
    /// `_meta` and `icons`. Text without a canonical form (not an object, a duplicate key, a number
    /// that would be rounded, nesting beyond 128) is hashed as is.
    pub fn of(definition: &str) -> Fingerprint {
        match without(definition, &UNSEEN) {
            Some(canonical) => Fingerprint(Hash::of(canonical.as_bytes())),
            None => Fingerprint::of_text(definition),
        }
    }

    /// Returns the fingerprint of plain text, such as instructions, even if it looks like an
    /// object: all of it counts.
    pub fn of_text(text: &str) -> Fingerprint {
        Fingerprint::marked(AS_IT_STANDS, text)
    }

    /// Returns the fingerprint of text other than a definition; `mark` must not begin with `{`.
    pub(super) fn marked(mark: &str, text: &str) -> Fingerprint {
        Fingerprint(Hash::of([mark, text].concat().as_bytes()))
    }

    pub fn parse(text: &str) -> Option<Fingerprint> {
        text.parse().ok().map(Fingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the canonical form of an object without the named members; `None` if it has no canonical
/// form.
pub(super) fn without(object: &str, names: &[&str]) -> Option<String> {
    let RawMembers(members) = RawMembers::read(object)?;
    let mut kept = String::with_capacity(object.len());
    kept.push('{');
    for (name, value) in members.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
        if kept.len() > 1 {
            kept.push(',');
        }
        canonical::write_text(&mut kept, name);
        kept.push(':');
        kept.push_str(value.get());
    }
    kept.push('}');
    canonical::faithful(&kept)
}

/// The members of an object in text order, including duplicates, with unparsed values.
pub(super) struct RawMembers<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'a> RawMembers<'a> {
    pub(super) fn read(object: &'a str) -> Option<RawMembers<'a>> {
        serde_json::from_str(object).ok()
    }
}

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = RawMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(RawMembers(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    #[test]
    fn the_hash_is_over_the_canonical_form_without_what_no_model_sees() {
        let text = r#"{ "name": "t", "_meta": {"a": 1}, "icons": [], "description": "\u0041" }"#;
        let canonical = r#"{"description":"A","name":"t"}"#;
        let fingerprint = Fingerprint::of(text);
        assert_eq!(fingerprint, Fingerprint(Hash::of(canonical.as_bytes())));
        assert_eq!(Fingerprint::parse(&fingerprint.to_string()), Some(fingerprint));
        assert_eq!(Fingerprint::parse("sha256:00"), None);
        // Only at the top level: a parameter may have such a name.
        let deeper = |text: &str| Fingerprint::of(&format!(r#"{{"inputSchema":{text}}}"#));
        assert_ne!(deeper(r#"{"_meta":{},"icons":1}"#), deeper("{}"));
    }

    #[test]
    fn a_text_without_canonical_form_is_hashed_as_it_stands_and_apart() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        for text in [
            "",
            "Use the tools with care.",
            r#""{}""#,
            "[1]",
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":1}"#,
            r#"{"n":9007199254740993}"#,
            r#"{"s":"\ud800"}"#,
            &deep,
        ] {
            let fingerprint = Fingerprint::of(text);
            assert_ne!(fingerprint, Fingerprint(Hash::of(text.as_bytes())), "{text:.40}");
            assert_ne!(fingerprint, Fingerprint::of(&format!("{text} ")), "{text:.40}");
        }
        let marked = Hash::of(b"countersign: text as it stands\n[1]");
        assert_eq!(Fingerprint::of("[1]"), Fingerprint(marked));
        // Members that are excluded anyway may have any content.
        let plain = Fingerprint::of(r#"{"name":"t"}"#);
        for unseen in ["9007199254740993", r#"{"a":1,"a":2}"#, &deep] {
            assert_eq!(Fingerprint::of(&format!(r#"{{"_meta":{unseen},"name":"t"}}"#)), plain);
        }
    }

    fn any_member() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-e\u{e000}😀]{1,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn any_definition() -> impl Strategy<Value = Map<String, Value>> {
        prop::collection::btree_map("[a-h]{1,3}", any_member(), 1..6)
            .prop_map(|members| members.into_iter().collect())
    }

    /// Returns the same value with members in reverse order.
    fn turned(value: &Value) -> Value {
        match value {
            Value::Object(members) => Value::Object(
                members.iter().rev().map(|(name, value)| (name.clone(), turned(value))).collect(),
            ),
            Value::Array(items) => items.iter().map(turned).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }

    /// Returns every value that differs from this one in a single place.
    fn changed(value: &Value) -> Vec<Value> {
        let mut all = vec![json!([value])];
        match value {
            Value::Null => all.push(json!(false)),
            Value::Bool(is) => all.push(json!(!is)),
            Value::Number(number) => all.push(json!(number.as_i64().unwrap_or(0) + 1)),
            Value::String(text) => all.push(json!(format!("{text}\u{200b}"))),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    for other in changed(item) {
                        let mut items = items.clone();
                        items[at] = other;
                        all.push(items.into());
                    }
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let mut fewer = members.clone();
                    fewer.remove(name);
                    all.push(fewer.into());
                    for other in changed(member) {
                        let mut members = members.clone();
                        members.insert(name.clone(), other);
                        all.push(members.into());
                    }
                }
            }
        }
        all
    }

    proptest! {
        #[test]
        fn order_blanks_and_unseen_members_do_not_count(
            definition in any_definition(), meta in any_member(), icons in any_member(),
        ) {
            let value = Value::Object(definition.clone());
            let fingerprint = Fingerprint::of(&value.to_string());
            let pretty = serde_json::to_string_pretty(&turned(&value)).unwrap();
            prop_assert_eq!(Fingerprint::of(&pretty), fingerprint);
            let mut more = definition;
            more.insert("_meta".to_owned(), meta);
            more.insert("icons".to_owned(), icons);
            prop_assert_eq!(Fingerprint::of(&Value::Object(more).to_string()), fingerprint);
        }

        #[test]
        fn any_other_change_counts(definition in any_definition()) {
            let value = Value::Object(definition);
            let fingerprint = Fingerprint::of(&value.to_string());
            for other in changed(&value) {
                prop_assert_ne!(Fingerprint::of(&other.to_string()), fingerprint, "{}", other);
            }
        }
    }
}
