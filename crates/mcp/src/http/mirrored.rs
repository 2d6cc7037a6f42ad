//! The headers of revision 2026-07-28 that repeat parts of a request, so that what stands between
//! can route it unread: `Mcp-Method`, `Mcp-Name`, and `Mcp-Param-*` for the arguments that a tool's
//! schema marks. They are made from the body, and a client's own are never passed on.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::PROTOCOL_VERSION;
use crate::message::Raw;
use crate::version::Version;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM: &str = "mcp-param-";

/// The member of a property's schema that names its header.
const MARK: &str = "x-mcp-header";

/// Marked arguments of one tool; proxies refuse requests with hundreds of headers.
const PARAMS_MAX: usize = 32;

/// Adds the headers that every request has.
pub(super) fn of_request(
    method: &str,
    params: Option<&Raw>,
    headers: &mut Vec<(HeaderName, HeaderValue)>,
) {
    headers.push((PROTOCOL_VERSION, HeaderValue::from_static(Version::V2026_07_28.as_str())));
    headers.push((METHOD, value(method)));
    let name = match method {
        "tools/call" | "prompts/get" => params.and_then(|params| subject(params)?.name),
        "resources/read" => params.and_then(|params| subject(params)?.uri),
        _ => None,
    };
    headers.extend(name.map(|name| (NAME, value(&name))));
}

#[derive(Deserialize)]
struct RequestSubject<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
}

fn subject(params: &Raw) -> Option<RequestSubject<'_>> {
    serde_json::from_str(params.get()).ok()
}

/// Writes a text as the value of a header. Names and arguments may be secrets.
fn value(text: &str) -> HeaderValue {
    let is_plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
        && text.trim_matches([' ', '\t']) == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let text = match is_plain {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("=?base64?{}?=", BASE64.encode(text))),
    };
    let mut value = HeaderValue::from_str(&text).expect("plain ASCII is a header value");
    value.set_sensitive(true);
    value
}

/// The arguments of a tool that are repeated in headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterHeaders(Vec<ParameterHeader>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct ParameterHeader {
    header: HeaderName,
    /// The names of the properties that lead to the argument.
    path: Vec<String>,
}

impl ParameterHeaders {
    /// Reads the marks in a tool's definition; `None` if it has none. The error says why the tool
    /// must not be offered.
    pub fn of_definition(definition: &str) -> Result<Option<ParameterHeaders>, String> {
        if !definition.contains(MARK) {
            return Ok(None);
        }
        let Ok(definition) = serde_json::from_str::<Value>(definition) else { return Ok(None) };
        let mut found = Vec::new();
        let mut path = Vec::new();
        if let Some(schema) = definition.get("inputSchema") {
            collect(schema, &mut path, &mut found)?;
            if found.len() != marks(schema) {
                return Err(format!("'{MARK}' is where no argument can be read"));
            }
        }
        Ok((!found.is_empty()).then_some(ParameterHeaders(found)))
    }

    /// Returns the headers for a call with these arguments.
    pub fn of_arguments(&self, arguments: &Map<String, Value>) -> Vec<(HeaderName, HeaderValue)> {
        let headers = self.0.iter().filter_map(|ParameterHeader { header, path }| {
            let (last, above) = path.split_last()?;
            let mut object = arguments;
            for name in above {
                object = object.get(name)?.as_object()?;
            }
            let text = match object.get(last)? {
                Value::String(text) => Cow::Borrowed(text.as_str()),
                Value::Bool(flag) => Cow::Owned(flag.to_string()),
                Value::Number(number) => Cow::Owned(number.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
            };
            Some((header.clone(), value(&text)))
        });
        headers.collect()
    }
}

/// Collects the marks that a chain of `properties` leads to.
fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<ParameterHeader>,
) -> Result<(), String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (name, property) in properties {
        path.push(name.clone());
        if let Some(mark) = property.get(MARK) {
            let header = checked(mark, property)?;
            if found.iter().any(|other| other.header == header) {
                return Err(format!("'{MARK}' {mark} is there twice"));
            }
            if found.len() == PARAMS_MAX {
                return Err(format!("more than {PARAMS_MAX} arguments have '{MARK}'"));
            }
            found.push(ParameterHeader { header, path: path.clone() });
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// Returns the header that a mark names.
fn checked(mark: &Value, property: &Value) -> Result<HeaderName, String> {
    let name = mark.as_str().filter(|name| !name.is_empty());
    let header = name.and_then(|name| format!("{PARAM}{name}").parse().ok());
    let header = header.ok_or_else(|| format!("'{MARK}' {mark} is no name of a header"))?;
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(header),
        _ => Err(format!("'{MARK}' {mark} is not on a string, an integer or a boolean")),
    }
}

/// Counts the marks at any place of a schema that is one.
fn marks(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(name, inner)| match name.as_str() {
                MARK => 1,
                // Values of arguments, not schemas.
                "const" | "default" | "enum" | "example" | "examples" => 0,
                // Here the names are those of arguments.
                "properties" | "patternProperties" | "$defs" | "definitions" => {
                    inner.as_object().map_or(0, |named| named.values().map(marks).sum())
                }
                _ => marks(inner),
            })
            .sum(),
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::raw;

    fn shown(headers: Vec<(HeaderName, HeaderValue)>) -> Vec<String> {
        assert!(headers.iter().all(|(_, value)| value.is_sensitive()));
        let line = |(name, value): &(HeaderName, HeaderValue)| {
            format!("{name}: {}", value.to_str().unwrap())
        };
        headers.iter().map(line).collect()
    }

    #[test]
    fn a_request_names_its_method_and_its_subject() {
        let of = |method: &str, params: &str| {
            let mut headers = Vec::new();
            of_request(method, Some(&raw(params.to_owned())), &mut headers);
            assert_eq!(headers.remove(0).1, "2026-07-28");
            shown(headers)
        };
        assert_eq!(
            of("tools/call", r#"{"name":"t","uri":"u","arguments":{}}"#),
            ["mcp-method: tools/call", "mcp-name: t"]
        );
        assert_eq!(
            of("resources/read", r#"{"name":"t","uri":"a://b"}"#),
            ["mcp-method: resources/read", "mcp-name: a://b"]
        );
        assert_eq!(of("tools/list", r#"{"name":"t"}"#), ["mcp-method: tools/list"]);
        assert_eq!(
            of("prompts/get", r#"{"name":"caf\u00e9\r\nX: y"}"#),
            ["mcp-method: prompts/get", "mcp-name: =?base64?Y2Fmw6kNClg6IHk=?="]
        );
    }

    #[test]
    fn values_that_are_not_plain_are_encoded() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("a b\tc", "a b\tc"),
            ("", ""),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(value(text).to_str().unwrap(), expected, "{text:?}");
        }
    }

    fn headers(schema: Value, arguments: Value) -> Result<Vec<String>, String> {
        let definition = json!({"name": "t", "inputSchema": schema}).to_string();
        let found = ParameterHeaders::of_definition(&definition)?;
        let arguments = arguments.as_object().unwrap();
        Ok(shown(found.map_or_else(Vec::new, |found| found.of_arguments(arguments))))
    }

    #[test]
    fn marked_arguments_become_headers() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {
                "n": {"type": "integer", "x-mcp-header": "Count"},
            }},
            "flag": {"type": "boolean", "x-mcp-header": "Flag"},
            "x-mcp-header": {"type": "string"},
        }});
        let arguments = json!({"region": "é", "deep": {"n": -7}, "flag": null, "other": 1});
        let expected = ["mcp-param-count: -7", "mcp-param-region: =?base64?w6k=?="];
        let mut found = headers(schema.clone(), arguments).unwrap();
        found.sort();
        assert_eq!(found, expected);
        assert!(headers(schema, json!({"deep": 3, "region": ["a"]})).unwrap().is_empty());
        assert!(headers(json!({"properties": {"a": {}}}), json!({"a": 1})).unwrap().is_empty());
    }

    #[test]
    fn a_mark_that_breaks_the_rules_condemns_the_tool() {
        let marked = |mark: Value| json!({"type": "string", "x-mcp-header": mark});
        for (schema, words) in [
            (json!({"properties": {"a": marked(json!(""))}}), "no name of a header"),
            (json!({"properties": {"a": marked(json!("a b"))}}), "no name of a header"),
            (json!({"properties": {"a": marked(json!("a\r\nb"))}}), "no name of a header"),
            (json!({"properties": {"a": marked(json!(7))}}), "no name of a header"),
            (json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}), "not on a"),
            (json!({"properties": {"a": {"type": "object", "x-mcp-header": "A"}}}), "not on a"),
            (json!({"properties": {"a": {"x-mcp-header": "A"}}}), "not on a"),
            (
                json!({"properties": {"a": marked(json!("X")), "b": marked(json!("x"))}}),
                "there twice",
            ),
            (json!({"properties": {"a": {"items": marked(json!("A"))}}}), "no argument"),
            (json!({"anyOf": [{"properties": {"a": marked(json!("A"))}}]}), "no argument"),
            (json!({"$defs": {"d": marked(json!("A"))}}), "no argument"),
        ] {
            let refused = headers(schema.clone(), json!({})).unwrap_err();
            assert!(refused.contains(words), "{schema}: {refused}");
        }
    }
}
