//! Parses the parameters of a two-key call. An error here lies in the caller's own message, so it
//! is reported in full.

use domain::Refusal;
use domain::intent::Declaration;
use domain::json::{self, Object};
use domain::tool::ToolName;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// `name`, `args` and the intent of a `call_tool_*` call.
pub struct TwoKeyCall {
    pub tool: ToolName,
    pub arguments: Object,
    pub declaration: Declaration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    #[serde(borrow, default)]
    args_json: Option<&'a RawValue>,
    #[serde(borrow, default)]
    intent: Option<&'a RawValue>,
    #[serde(default)]
    intent_operation_type: Option<Value>,
    #[serde(default)]
    intent_data_sensitivity: Option<Value>,
    #[serde(default)]
    intent_reason: Option<Value>,
}

pub fn two_key_call(parameters: &RawValue) -> Result<TwoKeyCall, Refusal> {
    let parameters: Parameters<'_> =
        serde_json::from_str(parameters.get()).map_err(|error| invalid(&plain(&error)))?;
    let tool = ToolName::parse(&name(parameters.name)?)?;
    let arguments = arguments(parameters.args, parameters.args_json)?;
    let nested = match parameters.intent {
        Some(intent) => Some(
            json::parse(intent.get())
                .map_err(|error| invalid(&format!("intent: {}", plain(&error))))?,
        ),
        None => None,
    };
    let declaration = Declaration {
        nested,
        flat_operation: parameters.intent_operation_type,
        flat_sensitivity: parameters.intent_data_sensitivity,
        flat_reason: parameters.intent_reason,
    };
    Ok(TwoKeyCall { tool, arguments, declaration })
}

fn name(given: Option<&RawValue>) -> Result<String, Refusal> {
    match given.map(RawValue::get) {
        None | Some("null") => Ok(String::new()),
        Some(text) => serde_json::from_str(text).map_err(|_| invalid("name must be a string")),
    }
}

fn arguments(args: Option<&RawValue>, args_json: Option<&RawValue>) -> Result<Object, Refusal> {
    let given = |value: &&RawValue| value.get() != "null";
    match (args.filter(given), args_json.filter(given)) {
        (Some(_), Some(_)) => Err(invalid("args and args_json are both given: use one of them")),
        (Some(args), None) => object("args", args.get()),
        (None, Some(text)) => {
            let text: String = serde_json::from_str(text.get())
                .map_err(|_| invalid("args_json must be a string containing a JSON object"))?;
            object("args_json", &text)
        }
        (None, None) => Ok(Object::empty()),
    }
}

fn object(parameter: &str, text: &str) -> Result<Object, Refusal> {
    match Object::parse(text) {
        Ok(Some(object)) => Ok(object),
        Ok(None) => Err(invalid(&format!("{parameter} must be a JSON object"))),
        Err(error) => Err(invalid(&format!("{parameter} is not valid JSON: {}", plain(&error)))),
    }
}

fn invalid(message: &str) -> Refusal {
    Refusal::invalid_arguments(message)
}

/// Rewrites an error: serde names a type or an offset, and a person needs the parameter.
fn plain(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace("unknown field", "unknown parameter")
        .replace("duplicate field", "duplicate key")
}

#[cfg(test)]
mod tests {
    use domain::Code;

    use super::*;

    fn parse(text: &str) -> Result<TwoKeyCall, Refusal> {
        two_key_call(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn arguments_are_taken_in_either_spelling_and_kept_as_written() {
        for text in [
            r#"{"name":" s : t ","args":{"n": 1E2}}"#,
            r#"{"name":"s:t","args_json":"{\"n\": 1E2}"}"#,
            r#"{"name":"s:t","args_json":"{\"n\": 1E2}","args":null}"#,
        ] {
            let call = parse(text).unwrap();
            assert_eq!(call.tool.to_string(), "s:t");
            assert_eq!(call.arguments.text().get(), r#"{"n": 1E2}"#);
        }
        assert_eq!(parse(r#"{"name":"s:t"}"#).unwrap().arguments.text().get(), "{}");
    }

    #[test]
    fn malformed_calls_are_rejected_with_a_reason() {
        for (text, words) in [
            ("{}", "'server:tool'"),
            (r#"{"name":7}"#, "name must be a string"),
            (r#"{"name":"tool"}"#, "'server:tool'"),
            (r#"{"name":"s:t","args":[1]}"#, "args must be a JSON object"),
            (r#"{"name":"s:t","args":"x"}"#, "args must be a JSON object"),
            (r#"{"name":"s:t","args":{},"args_json":"{}"}"#, "both given"),
            (r#"{"name":"s:t","args_json":"{"}"#, "args_json is not valid JSON"),
            (r#"{"name":"s:t","args_json":"[]"}"#, "args_json must be a JSON object"),
            (r#"{"name":"s:t","args_json":{}}"#, "args_json must be a string"),
            (r#"{"name":"s:t","args":{"a":1,"a":2}}"#, "duplicate key 'a'"),
            (r#"{"name":"s:t","args":{"a":{"b":1,"b":1}}}"#, "duplicate key 'b'"),
            (r#"{"name":"s:t","args_json":"{\"a\":1,\"a\":2}"}"#, "duplicate key 'a'"),
            (r#"{"name":"s:t","name":"s:u"}"#, "duplicate key `name`"),
            (r#"{"name":"s:t","intent":{"reason":"a","reason":"b"}}"#, "duplicate key 'reason'"),
            (r#"{"name":"s:t","arguments":{}}"#, "unknown parameter `arguments`"),
        ] {
            let refusal = parse(text).err().unwrap();
            assert_eq!(refusal.code, Code::InvalidArguments, "{text}");
            assert!(refusal.message.contains(words), "{text}: {}", refusal.message);
        }
    }
}
