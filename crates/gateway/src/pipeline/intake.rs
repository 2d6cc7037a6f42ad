//! Parses the parameters of a two-key call. An error here lies in the caller's own message, so it
//! is reported in full.

use domain::Refusal;
use domain::intent::{self, Declaration};
use domain::refusal::ParameterRule;
use domain::tool::{Class, ToolName};
use mcp::object::ObjectMembers;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use text::json::{self, Object};

/// `name`, `args` and the intent of a `call_tool_*` call.
pub struct TwoKeyCall {
    pub tool: ToolName,
    pub arguments: Object,
    pub declaration: Declaration,
}

const KNOWN: [&str; 7] = [
    "name",
    "args",
    "args_json",
    "intent",
    "intent_operation_type",
    "intent_data_sensitivity",
    "intent_reason",
];

/// Names that models give to `args`.
const NAMES_OF_ARGS: [&str; 6] =
    ["arguments", "parameters", "params", "input", "tool_args", "tool_arguments"];

/// Parses a call of the variant. `null` counts as absent.
pub fn two_key_call(class: Class, parameters: &RawValue) -> Result<TwoKeyCall, Refusal> {
    let wrong = WrongCall { class, tool: None };
    let members = ObjectMembers::parse(parameters)
        .map_err(|error| wrong.because(format!("invalid parameters: {}", json::explain(&error))))?;
    let given = |name: &str| members.get(name).filter(|json| *json != "null");
    let unknown = |(name, json): &(&str, &str)| *json != "null" && !KNOWN.contains(name);
    let tool = match given("name") {
        None => String::new(),
        Some(json) => serde_json::from_str(json)
            .map_err(|_| wrong.value("name", "a string such as \"server:tool\"", json))?,
    };
    let tool = ToolName::parse(&tool).map_err(|refusal| wrong.with_example(refusal))?;
    let wrong = WrongCall { class, tool: Some(&tool) };
    if let Some((name, _)) = members.iter().find(unknown) {
        return Err(wrong.unknown(name));
    }
    let arguments = wrong.arguments(given("args"), given("args_json"))?;
    let flat =
        |name: &str| given(name).map(value).transpose().map_err(|why| wrong.part(name, &why));
    let declaration = Declaration {
        nested: given("intent").map(|json| wrong.intent(json)).transpose()?,
        flat_operation: flat("intent_operation_type")?,
        flat_sensitivity: flat("intent_data_sensitivity")?,
        flat_reason: flat("intent_reason")?,
    };
    Ok(TwoKeyCall { tool, arguments, declaration })
}

/// The context of a fault: what a correct call would look like.
struct WrongCall<'a> {
    class: Class,
    tool: Option<&'a ToolName>,
}

impl WrongCall<'_> {
    fn arguments(&self, args: Option<&str>, args_json: Option<&str>) -> Result<Object, Refusal> {
        match (args, args_json) {
            (Some(_), Some(_)) => {
                Err(self.because("args and args_json are both given: use one of them".to_owned()))
            }
            (Some(json), None) => match string(json) {
                Some(text) => self.object("args", &text),
                None => self.object("args", json),
            },
            (None, Some(json)) => match string(json) {
                Some(text) => self.object("args_json", &text),
                None => Err(self.value("args_json", "a string containing a JSON object", json)),
            },
            (None, None) => Ok(Object::empty()),
        }
    }

    /// Parses an object, and keeps its text.
    fn object(&self, parameter: &str, text: &str) -> Result<Object, Refusal> {
        match Object::parse(text) {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err(self.value(parameter, "a JSON object", text)),
            Err(error) => Err(self.not_json(parameter, text, &error)),
        }
    }

    /// Parses the intent, which may be the JSON string of an object.
    fn intent(&self, json: &str) -> Result<Value, Refusal> {
        let intent = value(json).map_err(|why| self.part("intent", &why))?;
        let text = intent.as_str().filter(|text| text.trim_start().starts_with('{'));
        match text.map(json::parse) {
            None => Ok(intent),
            Some(Ok(object)) => Ok(object),
            Some(Err(error)) => Err(self.not_json("intent", text.unwrap_or_default(), &error)),
        }
    }

    fn not_json(&self, parameter: &str, text: &str, error: &serde_json::Error) -> Refusal {
        let why = json::explain(error);
        match json::text_before(text, error) {
            _ if error.is_data() => self.part(parameter, &why),
            "" => self.part(parameter, &format!("not valid JSON: {why}")),
            before => self.part(parameter, &format!("not valid JSON: {why}, after '{before}'")),
        }
    }

    fn unknown(&self, name: &str) -> Refusal {
        let refusal = Refusal::unknown_parameter(name, &KNOWN, self.example());
        let message = match refusal.message.ends_with('?') {
            true => refusal.message,
            false if NAMES_OF_ARGS.contains(&name) => {
                format!("unknown parameter '{name}'; did you mean 'args'?")
            }
            false => refusal.message + "; the tool's own arguments belong in args",
        };
        Refusal { message, ..refusal }
    }

    /// Refuses a value, which may be text that is not JSON.
    fn value(&self, parameter: &str, expected: &str, json: &str) -> Refusal {
        let rule = ParameterRule { parameter, expected, example: self.example() };
        Refusal::wrong_parameter(rule, &value(json).unwrap_or_else(|_| json.into()))
    }

    /// Refuses a parameter whose text cannot be parsed.
    fn part(&self, parameter: &str, why: &str) -> Refusal {
        let verb = if why.starts_with("not ") { " is " } else { ": " };
        let expected = match parameter {
            "args" | "args_json" | "intent" => "a JSON object",
            _ => "a string",
        };
        let details = json!({"parameter": parameter, "expected": expected});
        let refusal = Refusal::invalid_arguments(format!("{parameter}{verb}{why}")).with(details);
        self.with_example(refusal)
    }

    fn because(&self, message: String) -> Refusal {
        self.with_example(Refusal::invalid_arguments(message))
    }

    fn with_example(&self, refusal: Refusal) -> Refusal {
        refusal.with_member("example", self.example())
    }

    fn example(&self) -> Value {
        intent::example(self.class, self.tool)
    }
}

/// Returns the text of a JSON string; anything else is not parsed.
fn string(json: &str) -> Option<String> {
    json.starts_with('"').then(|| serde_json::from_str(json).ok()).flatten()
}

/// Parses a value strictly; the error is in plain words.
fn value(json: &str) -> Result<Value, String> {
    json::parse(json).map_err(|error| json::explain(&error))
}

#[cfg(test)]
mod tests {
    use domain::Code;

    use super::*;

    fn parse(text: &str) -> Result<TwoKeyCall, Refusal> {
        two_key_call(Class::Read, &RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn arguments_are_taken_in_either_spelling_and_kept_as_written() {
        for text in [
            r#"{"name":" s : t ","args":{"n": 1E2}}"#,
            r#"{"name":"s:t","args":"{\"n\": 1E2}"}"#,
            r#"{"name":"s:t","args_json":"{\"n\": 1E2}"}"#,
            r#"{"name":"s:t","args_json":"{\"n\": 1E2}","args":null}"#,
            r#"{"name":"s:t","args":{"n": 1E2},"args_json":null,"intent":null,"odd":null}"#,
        ] {
            let call = parse(text).unwrap_or_else(|refusal| panic!("{text}: {}", refusal.message));
            assert_eq!(call.tool.to_string(), "s:t");
            assert_eq!(call.arguments.text().get(), r#"{"n": 1E2}"#);
        }
        assert_eq!(parse(r#"{"name":"s:t"}"#).unwrap().arguments.text().get(), "{}");
    }

    #[test]
    fn an_intent_may_be_the_string_of_an_object() {
        for text in [
            r#"{"name":"s:t","intent":{"operation_type":"read"}}"#,
            r#"{"name":"s:t","intent":"{\"operation_type\":\"read\"}"}"#,
            r#"{"name":"s:t","intent":" {\"operation_type\":\"read\"}","intent_reason":null}"#,
        ] {
            let declaration = parse(text).unwrap().declaration;
            let expected = json!({"operation_type": "read"});
            assert_eq!(declaration.nested, Some(expected), "{text}");
            assert_eq!(declaration.flat_reason, None);
        }
    }

    #[test]
    fn malformed_calls_are_rejected_with_a_reason() {
        for (text, words) in [
            ("{}", "name must be 'server:tool', got ''"),
            (r#"{"name":7}"#, "name must be a string such as \"server:tool\", got 7"),
            (r#"{"name":"tool"}"#, "name must be 'server:tool', got 'tool'"),
            (r#"{"name":"s:t","args":[1]}"#, "args must be a JSON object, got [1]"),
            (r#"{"name":"s:t","args":7}"#, "args must be a JSON object, got 7"),
            (
                r#"{"name":"s:t","args":"x"}"#,
                "args is not valid JSON: a value is missing or misspelled, after 'x'",
            ),
            (r#"{"name":"s:t","args":"[1]"}"#, "args must be a JSON object, got [1]"),
            (
                r#"{"name":"s:t","args":{},"args_json":"{}"}"#,
                "args and args_json are both given: use one of them",
            ),
            (
                r#"{"name":"s:t","args_json":"{"}"#,
                "args_json is not valid JSON: it ends inside an object: '}' is missing, after '{'",
            ),
            (r#"{"name":"s:t","args_json":"[]"}"#, "args_json must be a JSON object, got []"),
            (
                r#"{"name":"s:t","args_json":{}}"#,
                "args_json must be a string containing a JSON object, got {}",
            ),
            (r#"{"name":"s:t","args":{"a":1,"a":2}}"#, "args: duplicate key 'a'"),
            (r#"{"name":"s:t","args":{"a":{"b":1,"b":1}}}"#, "args: duplicate key 'b'"),
            (r#"{"name":"s:t","args_json":"{\"a\":1,\"a\":2}"}"#, "args_json: duplicate key 'a'"),
            (r#"{"name":"s:t","name":"s:u"}"#, "invalid parameters: duplicate key 'name'"),
            (
                r#"{"name":"s:t","intent":{"reason":"a","reason":"b"}}"#,
                "intent: duplicate key 'reason'",
            ),
            (
                r#"{"name":"s:t","intent":"{\"operation_type\":"}"#,
                "intent is not valid JSON: it ends where a value is expected, after \
                 '{\"operation_type\":'",
            ),
            (
                r#"{"name":"s:t","arguments":{}}"#,
                "unknown parameter 'arguments'; did you mean 'args'?",
            ),
            (r#"{"name":"s:t","arg":{}}"#, "unknown parameter 'arg'; did you mean 'args'?"),
            (
                r#"{"name":"s:t","path":"/x"}"#,
                "unknown parameter 'path': expected name, args, args_json, intent, \
                 intent_operation_type, intent_data_sensitivity, intent_reason; the tool's own \
                 arguments belong in args",
            ),
        ] {
            let refusal = parse(text).err().unwrap();
            assert_eq!(refusal.code, Code::InvalidArguments, "{text}");
            assert_eq!(refusal.message, words, "{text}");
            assert_eq!(refusal.details["example"]["intent"]["operation_type"], "read", "{text}");
        }
    }
}
