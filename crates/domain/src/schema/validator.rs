//! Checks arguments against the JSON Schema of a tool, and says in plain words which rules they
//! break. No other module uses the library `jsonschema`.

mod rule;

use std::borrow::Cow;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::LocationSegment;
use jsonschema::{PatternOptions, ValidationError};
use serde_json::Value;

/// Backtracking steps of one pattern: enough for real formats, a limit for hostile ones.
const PATTERN_STEPS_MAX: usize = 100_000;

/// Compiled size of one pattern.
const PATTERN_BYTES_MAX: usize = 1024 * 1024;

/// The most values or forms that one text lists.
pub(super) const CHOICES_MAX: usize = 20;

/// Characters of a pattern, a choice or a name that a text repeats.
const QUOTED_CHARS_MAX: usize = 100;

/// A compiled schema. Remote references are never fetched.
pub(super) struct Validator(jsonschema::Validator);

/// One place where a value breaks its schema.
#[derive(Debug)]
pub(super) struct Violation<'a> {
    /// A JSON pointer to the place.
    pub(super) path: String,
    /// The place as in `a.b[0]`; empty for the value as a whole.
    pub(super) name: String,
    pub(super) rule: BrokenRule<'a>,
}

#[derive(Debug)]
pub(super) enum BrokenRule<'a> {
    /// The place has no value and needs one.
    Required,
    /// The object at the place has members that the schema does not allow.
    Unexpected(Vec<String>),
    Other {
        /// A noun phrase, such as "a whole number".
        expected: String,
        provided: Cow<'a, Value>,
    },
}

impl Validator {
    /// Compiles a schema, or returns the reason it cannot.
    pub(super) fn new(schema: &Value) -> Result<Validator, String> {
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(PATTERN_STEPS_MAX)
            .size_limit(PATTERN_BYTES_MAX);
        let compiled = jsonschema::options().with_pattern_options(patterns).build(schema);
        compiled.map(Validator).map_err(|error| error.to_string())
    }

    pub(super) fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// Returns the first violations, at most `max`.
    pub(super) fn violations<'a>(&'a self, value: &'a Value, max: usize) -> Vec<Violation<'a>> {
        self.0.iter_errors(value).take(max).map(|error| Violation::of(&error)).collect()
    }
}

impl<'a> Violation<'a> {
    fn of(error: &ValidationError<'a>) -> Violation<'a> {
        let (path, name) = (error.instance_path().to_string(), name(error));
        match error.kind() {
            Kind::Required { property } => {
                let property = property.as_str().unwrap_or_default();
                let escaped = property.replace('~', "~0").replace('/', "~1");
                Violation {
                    path: format!("{path}/{escaped}"),
                    name: member(&name, property),
                    rule: BrokenRule::Required,
                }
            }
            Kind::AdditionalProperties { unexpected }
            | Kind::UnevaluatedProperties { unexpected } => {
                Violation { path, name, rule: BrokenRule::Unexpected(unexpected.clone()) }
            }
            _ => {
                let expected = rule::expected(error);
                let provided = error.instance().clone();
                Violation { path, name, rule: BrokenRule::Other { expected, provided } }
            }
        }
    }
}

fn name(error: &ValidationError<'_>) -> String {
    error.instance_path().into_iter().fold(String::new(), |name, segment| match segment {
        LocationSegment::Property(property) => member(&name, &property),
        LocationSegment::Index(index) => format!("{name}[{index}]"),
    })
}

fn member(object: &str, name: &str) -> String {
    let name = shorten(name);
    if object.is_empty() { name } else { format!("{object}.{name}") }
}

/// Joins the first items with commas, and shortens long ones.
pub(super) fn list(items: &[impl ToString]) -> String {
    let shown: Vec<String> =
        items.iter().take(CHOICES_MAX).map(|item| shorten(&item.to_string())).collect();
    let more = if items.len() > CHOICES_MAX { ", …" } else { "" };
    shown.join(", ") + more
}

/// Shortens a long text.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
