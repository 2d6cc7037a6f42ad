//! The parameters of the gate's own tools, read one by one. Models send `null` for an absent
//! parameter, `5.0` or `"5"` for 5 and `"true"` for true; whatever has one meaning is accepted.

use std::ops::RangeInclusive;

use domain::Refusal;
use domain::refusal::ParameterRule;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use text::json::{self, Object};

/// The largest whole number that a JSON number in exponent or decimal form holds exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The parameters that one of the gate's own tools takes.
pub(super) struct OwnTool {
    pub(super) parameters: &'static [&'static str],
    /// Correct parameters, as JSON.
    pub(super) example: &'static str,
}

/// The parameters of one call that are present. `null` counts as absent.
pub(super) struct Parameters {
    given: Map<String, Value>,
    tool: &'static OwnTool,
}

impl Parameters {
    pub(super) fn parse(
        arguments: &RawValue,
        tool: &'static OwnTool,
    ) -> Result<Parameters, Refusal> {
        let object = Object::parse(arguments.get()).map_err(|error| {
            Refusal::invalid_arguments(format!("invalid parameters: {}", json::explain(&error)))
                .with_member("example", example(tool))
        })?;
        let members = object.map(|object| object.members().clone()).unwrap_or_default();
        let given: Map<String, Value> =
            members.into_iter().filter(|(_, value)| !value.is_null()).collect();
        match given.keys().find(|name| !tool.parameters.contains(&name.as_str())) {
            Some(unknown) => {
                Err(Refusal::unknown_parameter(unknown, tool.parameters, example(tool)))
            }
            None => Ok(Parameters { given, tool }),
        }
    }

    /// Returns the refusal of a call without this parameter.
    pub(super) fn missing(&self, parameter: &str, expected: &str) -> Refusal {
        Refusal::missing_parameter(self.rule(parameter, expected))
    }

    /// Returns the refusal of this value.
    pub(super) fn wrong(&self, parameter: &str, expected: &str, provided: &Value) -> Refusal {
        Refusal::wrong_parameter(self.rule(parameter, expected), provided)
    }

    /// Reads a string.
    pub(super) fn text(&self, name: &str, expected: &str) -> Result<Option<String>, Refusal> {
        match self.given.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(name, expected, other)),
        }
    }

    /// Reads a string that the call needs.
    pub(super) fn required_text(&self, name: &str, expected: &str) -> Result<String, Refusal> {
        self.text(name, expected)?.ok_or_else(|| self.missing(name, expected))
    }

    /// Reads a whole number, in any spelling of it.
    pub(super) fn number(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, Refusal> {
        let Some(given) = self.given.get(name) else { return Ok(None) };
        if let Some(number) = whole(given).filter(|number| range.contains(number)) {
            return Ok(Some(number));
        }
        let (min, max) = range.into_inner();
        if max == u64::MAX {
            let expected = format!("a whole number, {min} or more");
            return Err(self.wrong(name, &expected, given).with_member("min", min.into()));
        }
        let expected = format!("a whole number from {min} to {max}");
        let wrong = self.wrong(name, &expected, given);
        Err(wrong.with_member("min", min.into()).with_member("max", max.into()))
    }

    /// Reads a flag; an absent one is off.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.given.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(word)) if word.trim().eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(word)) if word.trim().eq_ignore_ascii_case("false") => Ok(false),
            Some(other) => Err(self.wrong(name, "true or false", other)),
        }
    }

    /// Reads one of the words; case does not matter.
    pub(super) fn choice(
        &self,
        name: &str,
        words: &[&'static str],
    ) -> Result<Option<&'static str>, Refusal> {
        let Some(given) = self.given.get(name) else { return Ok(None) };
        let word = given.as_str().unwrap_or_default().trim();
        let known = words.iter().find(|known| known.eq_ignore_ascii_case(word));
        known.copied().map(Some).ok_or_else(|| {
            let wrong = self.wrong(name, &words.join(" or "), given);
            wrong.with_member("valid_values", words.into())
        })
    }

    /// Reads a list of strings; a single string is a list of one, or a list in JSON.
    pub(super) fn list(&self, name: &str, expected: &str) -> Result<Option<Vec<String>>, Refusal> {
        let Some(given) = self.given.get(name) else { return Ok(None) };
        let items = match given {
            Value::Array(items) => strings(items),
            Value::String(text) if text.trim_start().starts_with('[') => json::parse(text)
                .ok()
                .and_then(|list| list.as_array().and_then(|items| strings(items))),
            Value::String(text) => Some(vec![text.clone()]),
            _ => None,
        };
        items.map(Some).ok_or_else(|| self.wrong(name, expected, given))
    }

    fn rule<'a>(&self, parameter: &'a str, expected: &'a str) -> ParameterRule<'a> {
        ParameterRule { parameter, expected, example: example(self.tool) }
    }
}

fn example(tool: &OwnTool) -> Value {
    json::parse(tool.example).expect("examples are JSON")
}

fn strings(items: &[Value]) -> Option<Vec<String>> {
    items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Returns the whole number that the value means: 5, 5.0 or "5".
fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let number = number.as_f64()?;
            let is_whole = number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number);
            // No digit is lost: the number is whole and within the range of exact ones.
            is_whole.then_some(number as u64)
        }),
        Value::String(text) => {
            json::parse(text.trim()).ok().filter(Value::is_number).and_then(|value| whole(&value))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    static TOOL: OwnTool = OwnTool {
        parameters: &["query", "limit", "detail", "deep", "ids"],
        example: r#"{"query":"read a file"}"#,
    };

    fn parse(text: &str) -> Result<Parameters, Refusal> {
        Parameters::parse(&RawValue::from_string(text.to_owned()).unwrap(), &TOOL)
    }

    /// Reads every parameter, and formats the values or the refusal's message.
    fn read(text: &str) -> String {
        let read = || -> Result<String, Refusal> {
            let parameters = parse(text)?;
            let query = parameters.text("query", "a string")?;
            let limit = parameters.number("limit", 1..=100)?;
            let detail = parameters.choice("detail", &["full", "compact"])?;
            let deep = parameters.flag("deep")?;
            let ids = parameters.list("ids", "a list of strings")?;
            Ok(format!("{query:?} {limit:?} {detail:?} {deep} {ids:?}").replace("None", "-"))
        };
        read().unwrap_or_else(|refusal| refusal.message)
    }

    #[test]
    fn values_with_one_meaning_are_accepted() {
        for (text, expected) in [
            ("{}", "- - - false -"),
            (
                r#"{"query":null,"limit":null,"detail":null,"deep":null,"ids":null,"odd":null}"#,
                "- - - false -",
            ),
            (r#"{"limit":5}"#, "- Some(5) - false -"),
            (r#"{"limit":5.0}"#, "- Some(5) - false -"),
            (r#"{"limit":5e0}"#, "- Some(5) - false -"),
            (r#"{"limit":"5"}"#, "- Some(5) - false -"),
            (r#"{"limit":" 5.0 "}"#, "- Some(5) - false -"),
            (r#"{"detail":"Full"}"#, r#"- - Some("full") false -"#),
            (r#"{"deep":true}"#, "- - - true -"),
            (r#"{"deep":"True"}"#, "- - - true -"),
            (r#"{"deep":"false"}"#, "- - - false -"),
            (r#"{"ids":"a:b"}"#, r#"- - - false Some(["a:b"])"#),
            (r#"{"ids":["a:b","c:d"]}"#, r#"- - - false Some(["a:b", "c:d"])"#),
            (r#"{"ids":"[\"a:b\",\"c:d\"]"}"#, r#"- - - false Some(["a:b", "c:d"])"#),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_refusal_names_the_parameter_and_the_rule() {
        for (text, expected) in [
            (r#"{"query":7}"#, "query must be a string, got 7"),
            (r#"{"limit":0}"#, "limit must be a whole number from 1 to 100, got 0"),
            (r#"{"limit":5.5}"#, "limit must be a whole number from 1 to 100, got 5.5"),
            (r#"{"limit":-5}"#, "limit must be a whole number from 1 to 100, got -5"),
            (r#"{"limit":"many"}"#, r#"limit must be a whole number from 1 to 100, got "many""#),
            (r#"{"limit":[5]}"#, "limit must be a whole number from 1 to 100, got [5]"),
            (r#"{"limit":1e300}"#, "limit must be a whole number from 1 to 100, got 1e+300"),
            (r#"{"detail":"some"}"#, r#"detail must be full or compact, got "some""#),
            (r#"{"detail":7}"#, "detail must be full or compact, got 7"),
            (r#"{"deep":1}"#, "deep must be true or false, got 1"),
            (r#"{"deep":"yes"}"#, r#"deep must be true or false, got "yes""#),
            (r#"{"ids":[7]}"#, "ids must be a list of strings, got [7]"),
            (r#"{"ids":"[7]"}"#, r#"ids must be a list of strings, got "[7]""#),
            (r#"{"ids":{}}"#, "ids must be a list of strings, got {}"),
            (r#"{"qeury":"x"}"#, "unknown parameter 'qeury'; did you mean 'query'?"),
            (r#"{"zzz":"x"}"#, "unknown parameter 'zzz': expected query, limit, detail, deep, ids"),
            (r#"{"query":"a","query":"b"}"#, "invalid parameters: duplicate key 'query'"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_refusal_carries_what_a_program_needs() {
        let refused = parse(r#"{"limit":"many"}"#).unwrap().number("limit", 1..=100).unwrap_err();
        assert_eq!(
            refused.details,
            json!({"parameter": "limit", "expected": "a whole number from 1 to 100",
                   "provided": "many", "example": {"query": "read a file"}, "min": 1, "max": 100})
        );
        let missing = parse("{}").unwrap().required_text("query", "a few words").unwrap_err();
        assert_eq!(missing.message, "query is required: a few words");
        assert_eq!(
            missing.details,
            json!({"parameter": "query", "expected": "a few words",
                   "example": {"query": "read a file"}})
        );
        let long = format!(r#"{{"query":["{}"]}}"#, "x".repeat(10_000));
        let refused = parse(&long).unwrap().text("query", "a string").unwrap_err();
        assert!(refused.message.len() < 400 && refused.details.to_string().len() < 600);
    }
}
