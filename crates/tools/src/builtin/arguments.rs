//! The arguments of a call, by name and alias. The gate has checked them against the schema;
//! callers that bypass that check get clear errors too.

use std::time::Duration;

use serde_json::{Map, Value};

use super::fault::{Fault, Result};

pub(super) struct Arguments<'a>(pub(super) &'a Map<String, Value>);

impl<'a> Arguments<'a> {
    /// Returns the value of the first name present.
    fn get(&self, names: &[&str]) -> Option<&'a Value> {
        names.iter().filter_map(|name| self.0.get(*name)).find(|value| !value.is_null())
    }

    pub(super) fn optional_text(&self, names: &[&str]) -> Result<Option<&'a str>> {
        match self.get(names) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Fault::said(format!("'{}' must be a string", names[0]))),
        }
    }

    pub(super) fn text(&self, names: &[&str]) -> Result<&'a str> {
        let text = self.optional_text(names)?;
        text.ok_or_else(|| Fault::said(format!("'{}' is missing", names[0])))
    }

    pub(super) fn path(&self) -> Result<&'a str> {
        match self.text(&["path", "file_path"])? {
            "" => Err(Fault::said("'path' is empty")),
            path => Ok(path),
        }
    }

    pub(super) fn count(&self, name: &str) -> Result<Option<u64>> {
        match self.get(&[name]) {
            None => Ok(None),
            Some(value) => value
                .as_u64()
                .map(Some)
                .ok_or_else(|| Fault::said(format!("'{name}' must be a whole number, 0 or more"))),
        }
    }

    /// Returns a number of seconds as a duration.
    pub(super) fn seconds(&self, name: &str) -> Result<Option<Duration>> {
        let Some(value) = self.get(&[name]) else { return Ok(None) };
        let duration = value.as_f64().and_then(|it| Duration::try_from_secs_f64(it).ok());
        let words = || Fault::said(format!("'{name}' must be a number of seconds, 0 or more"));
        duration.ok_or_else(words).map(Some)
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.get(&[name]) {
            None => Ok(false),
            Some(value) => value
                .as_bool()
                .ok_or_else(|| Fault::said(format!("'{name}' must be true or false"))),
        }
    }
}
