//! A tool's input schema, compiled once, against which arguments are checked before the tool's
//! server hears of them. Remote references are never fetched; patterns run in bounded time.

mod cost;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};

use crate::json::Object;
use crate::refusal::Refusal;

/// A schema text over this is not compiled: real ones stay far below.
const SCHEMA_BYTES_MAX: usize = 1024 * 1024;

/// Backtracking steps of one pattern: enough for real formats, an end for hostile ones.
const PATTERN_STEPS_MAX: usize = 100_000;

/// Faults told at once; a hopeless call does not get a page of them.
const FAULTS_MAX: usize = 5;

pub enum Schema {
    /// The tool takes whatever it is given.
    Absent,
    /// Arguments deeper than `depth_max` would take too long to check.
    Compiled { validator: Box<Validator>, depth_max: usize },
    /// Why it will not compile; calls pass with a warning.
    Unusable(String),
}

impl Schema {
    pub fn compile(json: Option<&str>) -> Schema {
        let Some(json) = json else {
            return Schema::Absent;
        };
        if json.len() > SCHEMA_BYTES_MAX {
            return Schema::Unusable(format!("schema of {} bytes", json.len()));
        }
        let schema: Value = match serde_json::from_str(json) {
            Ok(schema) => schema,
            Err(error) => return Schema::Unusable(error.to_string()),
        };
        let Some(depth_max) = cost::depth_max(&schema) else {
            return Schema::Unusable("it would take too long to apply".to_owned());
        };
        let options = PatternOptions::fancy_regex().backtrack_limit(PATTERN_STEPS_MAX);
        match jsonschema::options().with_pattern_options(options).build(&schema) {
            Ok(validator) => Schema::Compiled { validator: Box::new(validator), depth_max },
            Err(error) => Schema::Unusable(error.to_string()),
        }
    }

    pub fn check(&self, arguments: &Object) -> Checked {
        match self {
            Schema::Absent => Checked::Fits,
            Schema::Unusable(why) => Checked::Unknown(format!(
                "the tool's input schema does not compile ({why}); arguments were not checked"
            )),
            Schema::Compiled { depth_max, .. } if cost::depth(arguments.value()) > *depth_max => {
                Checked::Unknown(format!(
                    "the tool's input schema takes too long to apply to arguments of more than \
                     {depth_max} levels; they were not checked"
                ))
            }
            Schema::Compiled { validator, .. } if validator.is_valid(arguments.value()) => {
                Checked::Fits
            }
            Schema::Compiled { validator, .. } => {
                Checked::Faulty(refusal(validator, arguments.value()))
            }
        }
    }
}

/// What the schema says of the arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Checked {
    Fits,
    Unknown(String),
    Faulty(Refusal),
}

fn refusal(validator: &Validator, arguments: &Value) -> Refusal {
    let faults: Vec<Value> = validator
        .iter_errors(arguments)
        .take(FAULTS_MAX)
        .map(|error| json!({"path": error.instance_path().to_string(), "reason": shorten(error.to_string())}))
        .collect();
    let words: Vec<String> = faults
        .iter()
        .map(|fault| {
            let path = fault["path"].as_str().filter(|path| !path.is_empty()).unwrap_or("/");
            format!("{path}: {}", fault["reason"].as_str().unwrap_or_default())
        })
        .collect();
    Refusal::invalid_arguments(format!("invalid arguments: {}", words.join("; ")))
        .with(json!({"errors": faults}))
}

/// A reason quotes the value that is wrong, which may be large.
fn shorten(reason: String) -> String {
    const CHARS_MAX: usize = 300;
    match reason.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &str, arguments: &str) -> Checked {
        let arguments = Object::parse(arguments).unwrap().unwrap();
        Schema::compile(Some(schema)).check(&arguments)
    }

    fn message(checked: Checked) -> String {
        match checked {
            Checked::Faulty(refusal) => refusal.message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_fault_names_its_path_and_reason() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"object","properties":{"n":{"type":"integer"}}}},"required":["b"]}"#;
        let message = message(check(schema, r#"{"a":{"n":"x"}}"#));
        assert!(message.contains("/a/n: \"x\" is not of type \"integer\""), "{message}");
        assert!(message.contains("\"b\" is a required property"), "{message}");
        assert_eq!(check(schema, r#"{"a":{"n":3},"b":1}"#), Checked::Fits);
    }

    #[test]
    fn drafts_are_told_apart() {
        let draft7 = r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"t":{"items":[{"type":"string"}]}}}"#;
        assert!(matches!(check(draft7, r#"{"t":[1]}"#), Checked::Faulty(_)));
        let latest = r#"{"properties":{"t":{"prefixItems":[{"type":"string"}]}}}"#;
        assert!(matches!(check(latest, r#"{"t":[1]}"#), Checked::Faulty(_)));
    }

    #[test]
    fn what_will_not_compile_lets_the_call_through_with_a_warning() {
        for schema in [
            r#"{"$ref":"http://127.0.0.1:9/never-fetched.json"}"#,
            r#"{"type":"nonsense"}"#,
            r#"{"properties":{"a":{"pattern":"("}}}"#,
            r#"[]"#,
        ] {
            assert!(matches!(check(schema, r#"{"a":"x"}"#), Checked::Unknown(_)), "{schema}");
        }
        assert_eq!(Schema::compile(None).check(&Object::empty()), Checked::Fits);
    }

    #[test]
    fn an_exponential_schema_ends() {
        let branch = |extra: &str| {
            format!(r##"{{"properties":{{"a":{{"$ref":"#"}}}},"required":["{extra}"]}}"##)
        };
        let schema = format!(r#"{{"anyOf":[{},{}]}}"#, branch("x"), branch("y"));
        let nested =
            |depth: usize| format!("{}{{}}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        assert!(matches!(check(&schema, &nested(3)), Checked::Faulty(_)));
        assert!(matches!(check(&schema, &nested(100)), Checked::Unknown(_)));
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let schema = r#"{"properties":{"a":{"type":"string","pattern":"^(a+)+$(?=x)"}}}"#;
        let arguments = format!(r#"{{"a":"{}!"}}"#, "a".repeat(200));
        assert!(matches!(check(schema, &arguments), Checked::Faulty(_)));
    }
}
