//! A fault of the arguments in plain words: which parameter, what the tool expects, what it got.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::example;
use super::validator::{BrokenRule, CHOICES_MAX, Violation, list, shorten};
use crate::refusal::{self, Refusal};
use redact::BUILTIN;
use text::near;

/// Faults reported at once, so that a hopeless call does not get a page of them.
pub(super) const FAULTS_MAX: usize = 5;

/// The advice of a schema to somebody who sent wrong arguments.
pub(super) struct Advice {
    /// Correct arguments.
    example: Option<Value>,
    /// The names of the parameters.
    parameters: Vec<String>,
}

impl Advice {
    pub(super) fn of(schema: &Value) -> Advice {
        let properties = schema.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flat_map(|properties| properties.keys());
        Advice {
            example: example::arguments(schema),
            parameters: names.take(CHOICES_MAX).map(|name| shorten(name)).collect(),
        }
    }
}

/// Describes the violations, and shows correct arguments if the schema says what they are.
pub(super) fn refusal(violations: Vec<Violation<'_>>, advice: &Advice) -> Refusal {
    let fault = |violation| Fault::of(violation, &advice.parameters);
    let faults: Vec<Fault> = violations.into_iter().map(fault).collect();
    let words: Vec<&str> = faults.iter().map(|fault| fault.words.as_str()).collect();
    let message = format!("invalid arguments: {}", words.join("; "));
    let errors: Vec<Value> = faults.iter().map(Fault::to_json).collect();
    let refusal = Refusal::invalid_arguments(message).with(json!({"errors": errors}));
    match &advice.example {
        Some(example) => refusal.with_member("example", example.clone()),
        None => refusal,
    }
}

struct Fault {
    /// A JSON pointer into the arguments.
    path: String,
    words: String,
    expected: String,
    provided: Option<Value>,
}

impl Fault {
    fn of(violation: Violation<'_>, parameters: &[String]) -> Fault {
        let Violation { path, name, rule } = violation;
        // Names are shortened, and a secret is recognised only as a whole.
        let (path, name) = match BUILTIN.text(&path) {
            Cow::Owned(clean) => (clean.clone(), clean),
            Cow::Borrowed(_) => (path, name),
        };
        let (expected, provided) = match rule {
            BrokenRule::Required => {
                let words = format!("{name} is required");
                return Fault { path, words, expected: "a value".to_owned(), provided: None };
            }
            BrokenRule::Unexpected(members) => {
                return Fault::unknown(path, &name, &members, parameters);
            }
            BrokenRule::Other { expected, provided } => {
                (expected, refusal::shown(&harmless(&path, provided.into_owned())))
            }
        };
        let name = if name.is_empty() { "the value of args" } else { &name };
        let words = format!("{name} must be {expected}, got {provided}");
        Fault { path, words, expected, provided: Some(provided) }
    }

    /// Describes members that the schema does not allow.
    fn unknown(path: String, name: &str, unexpected: &[String], parameters: &[String]) -> Fault {
        let clean = unexpected.iter().map(|name| BUILTIN.text(name));
        let quoted: Vec<String> = clean.map(|name| format!("'{name}'")).collect();
        let plural = if quoted.len() == 1 { "" } else { "s" };
        let is_parameter = name.is_empty() && !parameters.is_empty();
        let expected = match is_parameter {
            true => parameters.join(", "),
            false => "only members that the tool's input schema names".to_owned(),
        };
        let near = match unexpected {
            [one] => near::names(one, parameters.iter().map(String::as_str), 1),
            _ => Vec::new(),
        };
        let words = match (name, near.as_slice()) {
            ("", []) if is_parameter => {
                format!("unknown parameter{plural} {}: expected {expected}", list(&quoted))
            }
            ("", near) => {
                format!("unknown parameter{plural} {}{}", list(&quoted), near::hint(near))
            }
            (name, _) => format!("{name} has unknown member{plural} {}", list(&quoted)),
        };
        Fault { path, words, expected, provided: None }
    }

    fn to_json(&self) -> Value {
        let Fault { path, words, expected, provided } = self;
        let mut fault = json!({"path": path, "reason": words, "expected": expected});
        if let Some(provided) = provided {
            fault["provided"] = provided.clone();
        }
        fault
    }
}

/// Returns the value at a place of the arguments without its secrets: the record repeats the fault,
/// and the words around the value do not show that its key names a secret.
fn harmless(path: &str, mut value: Value) -> Value {
    let key = path.rsplit('/').find(|key| !key.bytes().all(|byte| byte.is_ascii_digit()));
    if key.is_some_and(|key| redact::hides(key, &value)) {
        return redact::REDACTED.into();
    }
    BUILTIN.value(&mut value);
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Schema, SchemaVerdict};
    use text::json::Object;

    fn refusal(schema: &Value, arguments: &Value) -> Refusal {
        let arguments = Object::parse(&arguments.to_string()).unwrap().unwrap();
        match Schema::compile(Some(&schema.to_string())).check(&arguments) {
            SchemaVerdict::Faulty(refusal) => refusal,
            other => panic!("{schema} {other:?}"),
        }
    }

    #[test]
    fn a_fault_repeats_no_secret() {
        let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let long = format!("{}{token}", "x-".repeat(40));
        let schema = json!({"properties": {"password": {"minLength": 10}, "n": {"type": "integer"},
            "list": {"items": {"type": "integer"}}}, "additionalProperties": false});
        for (arguments, words) in [
            (json!({"password": "hunter2"}), "10 characters, got \"[redacted]\""),
            (json!({"n": token}), "n must be a whole number, got \"[redacted:github]\""),
            (json!({"list": [{token: 1}]}), "got {\"[redacted:github]\":1}"),
            (json!({token: 1}), "unknown parameter '[redacted:github]'"),
            (json!({long.clone(): 1}), "x-[redacted:github]'"),
            (json!({"n": "next"}), "got \"next\""),
        ] {
            let refusal = refusal(&schema, &arguments).to_json().to_string();
            let shown = refusal.replace("\\\"", "\"");
            assert!(shown.contains(words), "{arguments}: {shown}");
            assert!(!refusal.contains("0123456789") && !refusal.contains("hunter2"), "{refusal}");
        }
    }

    #[test]
    fn every_rule_has_plain_words() {
        for (rule, value, words) in [
            (json!({"type": "integer"}), json!("x"), "a must be a whole number, got \"x\""),
            (json!({"type": "boolean"}), json!(1), "a must be true or false, got 1"),
            (
                json!({"type": ["array", "null"]}),
                json!({"b": 1}),
                "a must be null or a list, got {\"b\":1}",
            ),
            (
                json!({"enum": ["new", "append", 3]}),
                json!("old"),
                "a must be one of \"new\", \"append\", 3, got \"old\"",
            ),
            (json!({"const": "x"}), json!("y"), "a must be \"x\", got \"y\""),
            (json!({"minimum": 3}), json!(1), "a must be at least 3, got 1"),
            (json!({"maximum": 3}), json!(9), "a must be at most 3, got 9"),
            (json!({"exclusiveMinimum": 3}), json!(3), "a must be more than 3, got 3"),
            (json!({"exclusiveMaximum": 3}), json!(3), "a must be less than 3, got 3"),
            (json!({"multipleOf": 5}), json!(3), "a must be a multiple of 5, got 3"),
            (
                json!({"minLength": 1}),
                json!(""),
                "a must be a string of at least 1 character, got \"\"",
            ),
            (
                json!({"maxLength": 2}),
                json!("abc"),
                "a must be a string of at most 2 characters, got \"abc\"",
            ),
            (json!({"minItems": 2}), json!([1]), "a must be a list of at least 2 items, got [1]"),
            (json!({"maxItems": 0}), json!([1]), "a must be a list of at most 0 items, got [1]"),
            (
                json!({"uniqueItems": true}),
                json!([1, 1]),
                "a must be a list without repeated items, got [1,1]",
            ),
            (
                json!({"pattern": "^a+$"}),
                json!("b"),
                "a must be a string that matches the pattern ^a+$, got \"b\"",
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "array"}]}),
                json!(7),
                "a must be a string or a list, got 7",
            ),
            (
                json!({"oneOf": [{"required": ["x"]}, {"type": "array"}]}),
                json!({}),
                "a must be of one of the forms that the tool accepts, got {}",
            ),
            (
                json!({"properties": {"b": {"items": {"type": "string"}}}}),
                json!({"b": ["x", 7]}),
                "a.b[1] must be a string, got 7",
            ),
            (json!({"required": ["b"]}), json!({}), "a.b is required"),
            (
                json!({"properties": {"b": {}}, "additionalProperties": false}),
                json!({"c": 1, "d": 2}),
                "a has unknown members 'c', 'd'",
            ),
            (
                json!({"not": {"type": "null"}}),
                json!(null),
                "a must be of a form that the tool does not exclude, got null",
            ),
            (json!(false), json!(1), "a must be absent, got 1"),
        ] {
            let refusal = refusal(&json!({"properties": {"a": rule}}), &json!({"a": value}));
            assert_eq!(refusal.message, format!("invalid arguments: {words}"));
            assert_eq!(refusal.details["errors"][0]["reason"], words);
        }
    }

    #[test]
    fn details_name_path_and_rule_and_show_correct_arguments() {
        let schema = json!({
            "properties": {
                "path": {"type": "string", "examples": ["/tmp/notes.md"]},
                "mode": {"enum": ["new", "append"]},
                "count": {"type": "integer", "minimum": 3},
            },
            "required": ["path", "mode", "count"],
            "additionalProperties": false,
        });
        let refusal = refusal(&schema, &json!({"path": 7, "mode": "new", "x": 1}));
        assert_eq!(
            refusal.details,
            json!({
                "errors": [
                    {"path": "/count", "reason": "count is required", "expected": "a value"},
                    {"path": "/path", "reason": "path must be a string, got 7",
                     "expected": "a string", "provided": 7},
                    {"path": "", "reason": "unknown parameter 'x': expected path, mode, count",
                     "expected": "path, mode, count"},
                ],
                "example": {"path": "/tmp/notes.md", "mode": "new", "count": 3},
            }),
            "{:#}",
            refusal.details
        );
    }

    #[test]
    fn a_large_value_is_not_repeated() {
        let refusal = refusal(
            &json!({"properties": {"a": {"type": "integer"}, "b": {"pattern": "x".repeat(5000)}}}),
            &json!({"a": "y".repeat(100_000), "b": ["y".repeat(100_000)]}),
        );
        assert!(refusal.message.len() < 1000, "{}", refusal.message);
        assert!(refusal.details.to_string().len() < 3000);
    }
}
