//! JSON objects split one level deep and reassembled with every member's text intact, so that a
//! message can be changed in one place without parsing the rest.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::raw::{Raw, raw};

/// Members up to which comparing each with all others is faster than hashing them.
const COMPARED_MAX: usize = 16;

/// The members of an object in their order. A duplicate name is rejected.
#[derive(Clone, Debug, Default)]
pub struct ObjectMembers<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> ObjectMembers<'a> {
    pub fn parse(object: &'a RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(object.get())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value.as_ref()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    /// Replaces the member with `json` (a whole JSON value), or appends it.
    pub fn set(&mut self, name: &'a str, json: impl Into<Cow<'a, str>>) {
        let json = json.into();
        match self.0.iter_mut().find(|(key, _)| key == name) {
            Some((_, value)) => *value = json,
            None => self.0.push((Cow::Borrowed(name), json)),
        }
    }

    pub fn write(&self) -> Raw {
        raw(self.write_text())
    }

    /// Writes the object as text, to become part of something larger: making a [`Raw`] parses it
    /// all.
    pub fn write_text(&self) -> String {
        let size = self.0.iter().map(|(key, value)| key.len() + value.len() + 6).sum::<usize>();
        let mut text = String::with_capacity(size + 2);
        text.push('{');
        for (index, (key, value)) in self.0.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(&quote(key));
            text.push(':');
            text.push_str(value);
        }
        text.push('}');
        text
    }
}

/// Returns the first name that occurs a second time. A sender chooses the number of members, so a
/// large object must not take quadratic time.
fn duplicate<'m>(members: &'m [(Cow<'_, str>, Cow<'_, str>)]) -> Option<&'m str> {
    let mut names = members.iter().map(|(name, _)| name.as_ref());
    if members.len() <= COMPARED_MAX {
        let mut names = names.enumerate();
        return names
            .find(|(at, name)| members[..*at].iter().any(|(earlier, _)| earlier == name))
            .map(|(_, name)| name);
    }
    let mut seen = HashSet::with_capacity(members.len());
    names.find(|name| !seen.insert(*name))
}

/// Formats a JSON string literal.
pub fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

impl<'de: 'a, 'a> Deserialize<'de> for ObjectMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = ObjectMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(Cow<'de, str>, Cow<'de, str>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((key.0, Cow::Borrowed(value.get())));
                }
                match duplicate(&members) {
                    Some(name) => Err(serde::de::Error::custom(format!("duplicate key '{name}'"))),
                    None => Ok(ObjectMembers(members)),
                }
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A string, borrowed if it has no escapes.
pub(crate) struct Name<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Result<String, String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        let mut members = ObjectMembers::parse(&raw).map_err(|error| error.to_string())?;
        members.set("a", "[ 1 ]");
        members.remove("gone");
        Ok(members.write().get().to_owned())
    }

    #[test]
    fn untouched_members_keep_their_text() {
        let text =
            r#"{"big":123456789012345678901234567890,"exp":1E2,"a":0,"gone":1,"s":"\u0041"}"#;
        let expected = r#"{"big":123456789012345678901234567890,"exp":1E2,"a":[ 1 ],"s":"\u0041"}"#;
        assert_eq!(members(text).unwrap(), expected);
        assert_eq!(members("{}").unwrap(), r#"{"a":[ 1 ]}"#);
    }

    #[test]
    fn duplicate_names_are_refused_however_they_are_spelled() {
        assert!(members(r#"{"x":1,"\u0078":2}"#).unwrap_err().contains("duplicate key 'x'"));
        assert!(members("[]").unwrap_err().contains("expected an object"));
    }

    #[test]
    fn duplicates_are_found_in_small_and_in_large_objects() {
        for count in [1, COMPARED_MAX, COMPARED_MAX + 1, 100_000] {
            let names: Vec<String> = (0..count).map(|n| format!(r#""k{n}":{n}"#)).collect();
            let unique = format!("{{{}}}", names.join(","));
            assert!(members(&unique).is_ok(), "{count}");
            let last = count - 1;
            let doubled = format!(r#"{{{},"k{last}":0}}"#, names.join(","));
            let refused = members(&doubled).unwrap_err();
            assert!(refused.contains(&format!("duplicate key 'k{last}'")), "{refused}");
        }
    }
}
