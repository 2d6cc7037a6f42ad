//! The keys that a tool has. A server ignores others, so what a call gives under them names nothing:
//! else a caller could choose what its record says.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

/// Objects within objects whose keys are known; what lies deeper is taken as it is.
const DEPTH_MAX: usize = 4;

/// The keys of an object, and of the objects under them. Without any, every key counts.
#[derive(Clone, Debug, Default)]
pub struct KnownKeys(HashMap<Box<str>, KnownKeys>);

impl KnownKeys {
    pub fn of(properties: &Map<String, Value>) -> KnownKeys {
        KnownKeys::within(properties, DEPTH_MAX)
    }

    fn within(properties: &Map<String, Value>, depth: usize) -> KnownKeys {
        let inner = |schema: &Value| match inner_properties(schema) {
            Some(properties) if depth > 0 => KnownKeys::within(properties, depth - 1),
            _ => KnownKeys::default(),
        };
        let keys = properties.iter().map(|(key, schema)| (key.as_str().into(), inner(schema)));
        KnownKeys(keys.collect())
    }

    /// Returns the keys that the tool does not have, which name nothing: `query`, `filter.owner`.
    pub fn unknown(&self, arguments: &Map<String, Value>) -> BTreeSet<String> {
        let mut unknown = BTreeSet::new();
        self.each_unknown(arguments, "", &mut |key| {
            unknown.insert(key);
        });
        unknown
    }

    /// Reports whether the tool has a key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.is_empty() || self.0.contains_key(key)
    }

    /// Returns the arguments that the tool has.
    pub(super) fn kept<'a>(
        &self,
        arguments: &'a Map<String, Value>,
    ) -> Cow<'a, Map<String, Value>> {
        let mut has_unknown = false;
        self.each_unknown(arguments, "", &mut |_| has_unknown = true);
        if !has_unknown {
            return Cow::Borrowed(arguments);
        }
        let mut kept = arguments.clone();
        self.keep(&mut kept);
        Cow::Owned(kept)
    }

    fn keep(&self, members: &mut Map<String, Value>) {
        if self.0.is_empty() {
            return;
        }
        members.retain(|key, _| self.0.contains_key(key.as_str()));
        for (key, value) in members {
            let known = &self.0[key.as_str()];
            match value {
                Value::Object(members) => known.keep(members),
                Value::Array(items) => {
                    items.iter_mut().filter_map(Value::as_object_mut).for_each(|it| known.keep(it));
                }
                _ => {}
            }
        }
    }

    /// Calls `found` with each key that the tool does not have: `query`, `filter.owner`.
    fn each_unknown(
        &self,
        members: &Map<String, Value>,
        within: &str,
        found: &mut dyn FnMut(String),
    ) {
        if self.0.is_empty() {
            return;
        }
        for (key, value) in members {
            let Some(known) = self.0.get(key.as_str()) else {
                found(format!("{within}{key}"));
                continue;
            };
            if known.0.is_empty() {
                continue;
            }
            let within = format!("{within}{key}.");
            match value {
                Value::Object(members) => known.each_unknown(members, &within, found),
                Value::Array(items) => {
                    let objects = items.iter().filter_map(Value::as_object);
                    objects.for_each(|members| known.each_unknown(members, &within, found));
                }
                _ => {}
            }
        }
    }
}

/// Returns the properties of an object, or of the objects of a list.
pub(super) fn inner_properties(schema: &Value) -> Option<&Map<String, Value>> {
    let object = schema.get("properties").or_else(|| schema.get("items")?.get("properties"))?;
    object.as_object()
}
