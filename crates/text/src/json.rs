//! Strict JSON parsing: a name that occurs twice in one object is rejected at any depth, because
//! the next reader must see exactly what was checked.

mod fault;
pub mod tokens;

use std::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, de};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

pub use fault::{explain, explain_in_file, text_before};

/// Parses one JSON value; serde_json limits the depth to 128.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = StrictValue.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// A strictly parsed JSON object, together with its exact source text.
#[derive(Clone, Debug)]
pub struct Object {
    text: Box<RawValue>,
    value: Value,
    is_absent: bool,
}

impl Object {
    /// Returns `None` if the text is JSON but not an object.
    pub fn parse(text: &str) -> Result<Option<Object>, serde_json::Error> {
        let value = parse(text)?;
        if !value.is_object() {
            return Ok(None);
        }
        let text = RawValue::from_string(text.to_owned())?;
        Ok(Some(Object { text, value, is_absent: false }))
    }

    pub fn empty() -> Object {
        let text = RawValue::from_string("{}".to_owned()).expect("an empty object is JSON");
        Object { text, value: Value::Object(Map::new()), is_absent: false }
    }

    /// Returns an empty object for one that was not sent at all.
    pub fn absent() -> Object {
        Object { is_absent: true, ..Object::empty() }
    }

    /// Reports whether the object was not sent at all.
    pub fn is_absent(&self) -> bool {
        self.is_absent
    }

    pub fn text(&self) -> &RawValue {
        &self.text
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    pub fn members(&self) -> &Map<String, Value> {
        self.value.as_object().expect("checked to be an object when parsed")
    }
}

struct StrictValue;

impl<'de> DeserializeSeed<'de> for StrictValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(StrictValue)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("duplicate key '{name}'")));
            }
            let value = members.next_value_seed(StrictValue)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn duplicate_keys_are_refused_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"a":{"b":[{"c":1,"c":1}]}}"#,
            r#"{"path":"/x","\u0070ath":"/y"}"#,
        ] {
            assert!(parse(text).unwrap_err().to_string().contains("duplicate key"), "{text}");
        }
    }

    #[test]
    fn json_that_cannot_be_parsed_faithfully_is_rejected() {
        for text in ["1e400", r#""\ud800""#, "{\"a\":\"\u{0}\"}", "[1] 2", "", "NaN"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&format!("{}{}", "[".repeat(10_000), "]".repeat(10_000))).is_err());
    }

    #[test]
    fn an_object_keeps_its_original_text() {
        let object = Object::parse(r#"{"n": 1E2, "big": 12345678901234567890}"#).unwrap().unwrap();
        assert_eq!(object.text().get(), r#"{"n": 1E2, "big": 12345678901234567890}"#);
        assert!(Object::parse("[1]").unwrap().is_none());
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json_where_no_key_is_doubled(text in r#"[\[\]{}:,"a-c0-9. \\u]{0,40}"#) {
            let lax = serde_json::from_str::<Value>(&text);
            match parse(&text) {
                Ok(value) => prop_assert_eq!(value, lax.unwrap()),
                Err(error) => prop_assert!(lax.is_err() || error.to_string().contains("duplicate")),
            }
        }
    }
}
