//! The two-key call: an agent declares the purpose of a call by the tool that it picks and again in
//! the intent. Both must agree with each other and with the tool's own annotations.

use serde_json::{Value, json};

use crate::code::Code;
use crate::refusal::Refusal;
use crate::tool::{Class, Hints, ToolName};

/// The longest reason, in characters.
pub const REASON_CHARS_MAX: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitivity {
    Public,
    Internal,
    Private,
    Unknown,
}

impl Sensitivity {
    pub const ALL: [Sensitivity; 4] =
        [Sensitivity::Public, Sensitivity::Internal, Sensitivity::Private, Sensitivity::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Sensitivity::Public => "public",
            Sensitivity::Internal => "internal",
            Sensitivity::Private => "private",
            Sensitivity::Unknown => "unknown",
        }
    }

    pub fn parse(text: &str) -> Option<Sensitivity> {
        Sensitivity::ALL.into_iter().find(|level| level.as_str() == text)
    }
}

/// The agent's declared intent, after it was found consistent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    pub operation: Class,
    pub sensitivity: Sensitivity,
    pub reason: Option<String>,
}

/// The intent as written: nested, flat or both. `null` is the same as absent.
#[derive(Clone, Debug, Default)]
pub struct Declaration {
    pub nested: Option<Value>,
    pub flat_operation: Option<Value>,
    pub flat_sensitivity: Option<Value>,
    pub flat_reason: Option<Value>,
}

impl Declaration {
    /// Returns the declaration of a caller who picks the variant and declares nothing else: CLI,
    /// tests.
    pub fn of(class: Class) -> Declaration {
        Declaration {
            nested: Some(json!({"operation_type": class.as_str()})),
            ..Declaration::default()
        }
    }

    pub fn stated(&self) -> StatedIntent {
        let sensitivity = self.part("data_sensitivity", self.flat_sensitivity.as_ref());
        let reason = self.part("reason", self.flat_reason.as_ref());
        let reason = reason.filter(|reason| !reason.is_empty());
        StatedIntent {
            operation: self.stated_operation(),
            sensitivity: sensitivity.and_then(Sensitivity::parse).unwrap_or(Sensitivity::Unknown),
            reason: reason.map(|reason| reason.chars().take(REASON_CHARS_MAX).collect()),
        }
    }

    /// Returns the operation of the statement.
    pub fn stated_operation(&self) -> Option<Class> {
        self.part("operation_type", self.flat_operation.as_ref()).and_then(Class::parse)
    }

    fn part<'a>(&'a self, name: &str, flat: Option<&'a Value>) -> Option<&'a str> {
        let nested = self.nested.as_ref().and_then(|nested| nested.get(name));
        nested.or(flat).and_then(Value::as_str)
    }
}

/// The readable part of the agent's statement, for the record, whatever the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedIntent {
    pub operation: Option<Class>,
    pub sensitivity: Sensitivity,
    pub reason: Option<String>,
}

impl Default for StatedIntent {
    fn default() -> Self {
        StatedIntent { operation: None, sensitivity: Sensitivity::Unknown, reason: None }
    }
}

/// Check 1: the keys match each other. A refusal shows a correct call.
pub fn check_keys(
    variant: Class,
    tool: &ToolName,
    declaration: &Declaration,
) -> Result<Intent, Refusal> {
    agreed_keys(variant, declaration).map_err(|refusal| {
        let mut example = example(variant, Some(tool));
        match refusal.code {
            Code::InvalidSensitivity => {
                example["intent"]["data_sensitivity"] = Sensitivity::Internal.as_str().into();
            }
            Code::ReasonTooLong => example["intent"]["reason"] = "one short sentence".into(),
            _ => {}
        }
        refusal.with_member("example", example)
    })
}

/// Returns the parameters of a correct call of the variant.
pub fn example(variant: Class, tool: Option<&ToolName>) -> Value {
    let name = tool.map_or_else(|| "server:tool".to_owned(), ToolName::to_string);
    json!({"name": name, "args": {}, "intent": {"operation_type": variant.as_str()}})
}

fn agreed_keys(variant: Class, declaration: &Declaration) -> Result<Intent, Refusal> {
    let nested = nested(variant, declaration)?;
    let Declaration { flat_operation, flat_sensitivity, flat_reason, .. } = declaration;
    let operation = agreed(variant, "operation_type", nested, flat_operation)?;
    let sensitivity = agreed(variant, "data_sensitivity", nested, flat_sensitivity)?;
    let reason = agreed(variant, "reason", nested, flat_reason)?;
    let operation = check_operation(operation)?;
    if operation != variant {
        return Err(mismatch(
            variant,
            operation.as_str(),
            format!(
                "Intent mismatch: tool is {} but intent declares {operation}",
                variant.variant()
            ),
        ));
    }
    Ok(Intent {
        operation,
        sensitivity: check_sensitivity(sensitivity)?,
        reason: check_reason(reason)?,
    })
}

/// Check 2: the tool's own annotations. `Ok` may contain a warning to record.
pub fn check_hints(
    variant: Class,
    name: &ToolName,
    hints: Hints,
) -> Result<Option<String>, Refusal> {
    match (variant, hints.class()) {
        (Class::Read | Class::Write, Class::Destructive) => Err(Refusal::new(
            Code::ServerMismatch,
            format!("Tool '{name}' is marked destructive by server, use call_tool_destructive"),
        )
        .with(json!({
            "server_tool": name.to_string(),
            "destructive_hint": true,
            "tool_variant": variant.variant(),
            "recommended": Class::Destructive.variant(),
        }))),
        (Class::Write, Class::Read) => Ok(Some(format!(
            "Tool '{name}' is marked read-only by server, call_tool_read would do"
        ))),
        (Class::Read | Class::Write, Class::Read | Class::Write) | (Class::Destructive, _) => {
            Ok(None)
        }
    }
}

fn nested(variant: Class, declaration: &Declaration) -> Result<Option<&Value>, Refusal> {
    let given = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null());
    match &declaration.nested {
        Some(object @ Value::Object(_)) => Ok(Some(object)),
        Some(Value::Null) | None => {
            let flat = given(&declaration.flat_operation)
                || given(&declaration.flat_sensitivity)
                || given(&declaration.flat_reason);
            if flat {
                return Ok(None);
            }
            Err(Refusal::new(
                Code::MissingIntent,
                format!("intent parameter is required for {}", variant.variant()),
            )
            .with(json!({"tool_variant": variant.variant(), "expected": variant.as_str()})))
        }
        Some(other) => Err(Refusal::invalid_arguments("intent must be an object").with(json!({
            "parameter": "intent",
            "provided": other,
            "expected": {"operation_type": variant.as_str()},
        }))),
    }
}

/// Returns a member that has two spellings; if both are given, they must agree.
fn agreed<'a>(
    variant: Class,
    name: &str,
    nested: Option<&'a Value>,
    flat: &'a Option<Value>,
) -> Result<Option<&'a Value>, Refusal> {
    let given = |value: &&Value| !value.is_null();
    let nested = nested.and_then(|nested| nested.get(name)).filter(given);
    match (nested, flat.as_ref().filter(given)) {
        (Some(nested), Some(flat)) if nested != flat => Err(mismatch(
            variant,
            &plain(flat),
            format!(
                "Intent mismatch: intent.{name} is '{}' but intent_{name} is '{}'",
                plain(nested),
                plain(flat)
            ),
        )),
        (Some(value), _) | (None, Some(value)) => Ok(Some(value)),
        (None, None) => Ok(None),
    }
}

fn mismatch(variant: Class, declared: &str, message: String) -> Refusal {
    Refusal::new(Code::IntentMismatch, message).with(json!({
        "tool_variant": variant.variant(),
        "declared": declared,
        "expected": variant.as_str(),
    }))
}

fn check_operation(value: Option<&Value>) -> Result<Class, Refusal> {
    let text = value.map(plain).unwrap_or_default();
    if text.is_empty() {
        return Err(Refusal::new(Code::MissingOperationType, "intent.operation_type is required")
            .with(json!({"valid_values": Class::ALL.map(Class::as_str)})));
    }
    Class::parse(&text).ok_or_else(|| {
        Refusal::new(
            Code::InvalidOperationType,
            format!("Invalid intent.operation_type '{text}': must be read, write, or destructive"),
        )
        .with(json!({"provided": value, "valid_values": Class::ALL.map(Class::as_str)}))
    })
}

fn check_sensitivity(value: Option<&Value>) -> Result<Sensitivity, Refusal> {
    let Some(value) = value else {
        return Ok(Sensitivity::Unknown);
    };
    let text = plain(value);
    Sensitivity::parse(&text).ok_or_else(|| {
        Refusal::new(
            Code::InvalidSensitivity,
            format!(
                "Invalid intent.data_sensitivity '{text}': must be public, internal, private, or unknown"
            ),
        )
        .with(json!({
            "provided": value,
            "valid_values": Sensitivity::ALL.map(Sensitivity::as_str),
        }))
    })
}

fn check_reason(value: Option<&Value>) -> Result<Option<String>, Refusal> {
    let reason = match value {
        None => return Ok(None),
        Some(Value::String(reason)) => reason,
        Some(other) => {
            let details =
                json!({"parameter": "intent.reason", "expected": "a string", "provided": other});
            return Err(Refusal::invalid_arguments("intent.reason must be a string").with(details));
        }
    };
    let length = reason.chars().count();
    if length > REASON_CHARS_MAX {
        return Err(Refusal::new(
            Code::ReasonTooLong,
            format!("intent.reason exceeds maximum length of {REASON_CHARS_MAX} characters"),
        )
        .with(json!({"provided_length": length, "max_length": REASON_CHARS_MAX})));
    }
    Ok(Some(reason.clone()).filter(|reason| !reason.is_empty()))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(text: &str) -> Declaration {
        let mut value: Value = serde_json::from_str(text).unwrap();
        let mut take = |name: &str| value.as_object_mut().unwrap().remove(name);
        Declaration {
            nested: take("intent"),
            flat_operation: take("intent_operation_type"),
            flat_sensitivity: take("intent_data_sensitivity"),
            flat_reason: take("intent_reason"),
        }
    }

    /// Formats `Ok` as `operation sensitivity reason` and a refusal as `CODE message`.
    fn outcome(variant: Class, text: &str) -> String {
        match check(variant, &declaration(text)) {
            Ok(Intent { operation, sensitivity, reason }) => {
                format!("{operation} {} {}", sensitivity.as_str(), reason.unwrap_or_default())
                    .trim_end()
                    .to_owned()
            }
            Err(refusal) => format!("{} {}", refusal.code, refusal.message),
        }
    }

    fn check(variant: Class, declaration: &Declaration) -> Result<Intent, Refusal> {
        check_keys(variant, &ToolName::parse("s:t").unwrap(), declaration)
    }

    #[test]
    fn the_keys_must_match_each_other() {
        for (text, expected) in [
            (r#"{"intent":{"operation_type":"read"}}"#, "read unknown"),
            (r#"{"intent_operation_type":"read"}"#, "read unknown"),
            (
                r#"{"intent":{"operation_type":"read","data_sensitivity":"private","reason":"why"}}"#,
                "read private why",
            ),
            (
                r#"{"intent_operation_type":"read","intent_data_sensitivity":"public","intent_reason":"x"}"#,
                "read public x",
            ),
            (
                r#"{"intent":{"operation_type":"read"},"intent_operation_type":"read","intent_reason":"x"}"#,
                "read unknown x",
            ),
            ("{}", "MISSING_INTENT intent parameter is required for call_tool_read"),
            (
                r#"{"intent":null}"#,
                "MISSING_INTENT intent parameter is required for call_tool_read",
            ),
            (r#"{"intent":{}}"#, "MISSING_OPERATION_TYPE intent.operation_type is required"),
            (
                r#"{"intent":{"operation_type":""}}"#,
                "MISSING_OPERATION_TYPE intent.operation_type is required",
            ),
            (
                r#"{"intent_reason":"x"}"#,
                "MISSING_OPERATION_TYPE intent.operation_type is required",
            ),
            (
                r#"{"intent":{"operation_type":"unknown"}}"#,
                "INVALID_OPERATION_TYPE Invalid intent.operation_type 'unknown': must be read, write, or destructive",
            ),
            (
                r#"{"intent":{"operation_type":"Read"}}"#,
                "INVALID_OPERATION_TYPE Invalid intent.operation_type 'Read': must be read, write, or destructive",
            ),
            (
                r#"{"intent":{"operation_type":7}}"#,
                "INVALID_OPERATION_TYPE Invalid intent.operation_type '7': must be read, write, or destructive",
            ),
            (
                r#"{"intent":{"operation_type":"write"}}"#,
                "INTENT_MISMATCH Intent mismatch: tool is call_tool_read but intent declares write",
            ),
            (
                r#"{"intent":{"operation_type":"read"},"intent_operation_type":"write"}"#,
                "INTENT_MISMATCH Intent mismatch: intent.operation_type is 'read' but intent_operation_type is 'write'",
            ),
            (
                r#"{"intent":{"operation_type":"read","reason":"a"},"intent_reason":"b"}"#,
                "INTENT_MISMATCH Intent mismatch: intent.reason is 'a' but intent_reason is 'b'",
            ),
            (
                r#"{"intent":{"operation_type":"read","data_sensitivity":"secret"}}"#,
                "INVALID_SENSITIVITY Invalid intent.data_sensitivity 'secret': must be public, internal, private, or unknown",
            ),
            (r#"{"intent":"read"}"#, "INVALID_ARGUMENTS intent must be an object"),
        ] {
            assert_eq!(outcome(Class::Read, text), expected, "{text}");
        }
    }

    #[test]
    fn a_reason_is_measured_in_characters() {
        let reason = |length| {
            let reason = "\u{20ac}".repeat(length);
            let text = format!(r#"{{"intent":{{"operation_type":"write","reason":"{reason}"}}}}"#);
            check(Class::Write, &declaration(&text))
        };
        assert!(reason(1000).is_ok());
        let refusal = reason(1001).unwrap_err();
        assert_eq!(refusal.code, Code::ReasonTooLong);
        assert_eq!(refusal.message, "intent.reason exceeds maximum length of 1000 characters");
        assert_eq!(
            refusal.details,
            json!({"provided_length": 1001, "max_length": 1000, "example": {"name": "s:t",
                   "args": {}, "intent": {"operation_type": "write", "reason": "one short sentence"}}})
        );
    }

    #[test]
    fn refusals_carry_what_a_program_needs() {
        let refused = |text| check(Class::Read, &declaration(text)).unwrap_err().details;
        let example = json!({"name": "s:t", "args": {}, "intent": {"operation_type": "read"}});
        let mut with_level = example.clone();
        with_level["intent"]["data_sensitivity"] = "internal".into();
        assert_eq!(
            refused("{}"),
            json!({"tool_variant": "call_tool_read", "expected": "read", "example": example})
        );
        assert_eq!(
            refused(r#"{"intent":{}}"#),
            json!({"valid_values": ["read", "write", "destructive"], "example": example})
        );
        assert_eq!(
            refused(r#"{"intent":{"operation_type":"write"}}"#),
            json!({"tool_variant": "call_tool_read", "declared": "write", "expected": "read",
                   "example": example})
        );
        assert_eq!(
            refused(r#"{"intent":{"operation_type":"x"}}"#),
            json!({"provided": "x", "valid_values": ["read", "write", "destructive"],
                   "example": example})
        );
        assert_eq!(
            refused(r#"{"intent":{"operation_type":"read","data_sensitivity":"x"}}"#),
            json!({"provided": "x", "valid_values": ["public", "internal", "private", "unknown"],
                   "example": with_level})
        );
    }

    #[test]
    fn the_tools_own_annotations_have_the_last_word() {
        const REFUSE: &str = "refuse";
        let hints = |destructive, read_only| Hints { destructive, read_only, open_world: None };
        let (yes, no) = (Some(true), Some(false));
        let destructive = [hints(yes, None), hints(yes, yes), hints(yes, no)];
        let read_only = [hints(None, yes), hints(no, yes)];
        let neither = [hints(None, None), hints(no, no), hints(no, None), hints(None, no)];
        let name = ToolName::parse("github:delete_repo").unwrap();
        let table: [(Class, [&str; 3]); 3] = [
            (Class::Read, [REFUSE, "allow", "allow"]),
            (Class::Write, [REFUSE, "warn", "allow"]),
            (Class::Destructive, ["allow", "allow", "allow"]),
        ];
        for (variant, expected) in table {
            for (column, hints) in [&destructive[..], &read_only, &neither].iter().enumerate() {
                for hints in *hints {
                    let found = match check_hints(variant, &name, *hints) {
                        Ok(None) => "allow",
                        Ok(Some(_)) => "warn",
                        Err(_) => REFUSE,
                    };
                    assert_eq!(found, expected[column], "{variant} {hints:?}");
                }
            }
        }
        let refusal = check_hints(Class::Write, &name, destructive[0]).unwrap_err();
        assert_eq!(
            refusal.message,
            "Tool 'github:delete_repo' is marked destructive by server, use call_tool_destructive"
        );
        assert_eq!(
            refusal.details,
            json!({"server_tool": "github:delete_repo", "destructive_hint": true,
                   "tool_variant": "call_tool_write", "recommended": "call_tool_destructive"})
        );
    }
}
