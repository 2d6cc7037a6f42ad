//! A plugin's response as the result of a tool.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

use mcp::message::to_raw;
use mcp::object::quote;
use plugin_sdk::protocol::ExecuteResponse;
use provider::{ProviderError, Reply};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The result object of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    content: Vec<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a Data<'a>>,
    is_error: bool,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: ResultText<'a>,
}

#[derive(Clone, Copy)]
enum ResultText<'a> {
    Plain(&'a str),
    Json(&'a Data<'a>),
}

impl Serialize for ResultText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ResultText::Plain(text) => serializer.serialize_str(text),
            ResultText::Json(data) => serializer.collect_str(data),
        }
    }
}

/// A plugin's data, by name: an object whose values are borrowed and written unchanged.
#[derive(Serialize)]
struct Data<'a>(BTreeMap<&'a str, Cow<'a, RawValue>>);

impl fmt::Display for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            f.write_char(if index == 0 { '{' } else { ',' })?;
            write!(f, "{}:{}", quote(name), value.get())?;
        }
        f.write_char('}')
    }
}

/// Returns the data as JSON text and as structured content, with its values unchanged. The output
/// is added as `output`, unless the data has a member of that name; without data it is the text.
/// For an error, the reason comes first.
pub(super) fn of(place: &str, answer: &ExecuteResponse) -> Result<Reply, ProviderError> {
    let is_error = !answer.success || !answer.error.is_empty();
    let data = data(answer).map_err(|name| {
        ProviderError::Lost(format!("{place} returned data that is not valid JSON: '{name}'"))
    })?;
    let mut texts = Vec::new();
    if is_error {
        let reason = [answer.error.as_str(), answer.output.as_str()];
        let reason = reason.into_iter().find(|text| !text.is_empty());
        let reason = reason.unwrap_or("the operation failed; the plugin gave no reason");
        texts.push(ResultText::Plain(reason));
    }
    match &data {
        Some(data) => texts.push(ResultText::Json(data)),
        // An error needs no empty line after it; a success without text is still a result.
        None if !is_error || !(answer.error.is_empty() || answer.output.is_empty()) => {
            texts.push(ResultText::Plain(&answer.output));
        }
        None => {}
    }
    Ok(written(&texts, data.as_ref(), is_error))
}

/// A result that states the error.
pub(super) fn failed(reason: &str) -> Reply {
    written(&[ResultText::Plain(reason)], None, true)
}

fn written(texts: &[ResultText<'_>], data: Option<&Data<'_>>, is_error: bool) -> Reply {
    let content = texts.iter().map(|&text| Text { r#type: "text", text }).collect();
    let result = ToolResult { content, structured_content: data, is_error };
    Reply::from(to_raw(&result))
}

/// Returns all the data as one object, or the name of a value that is not JSON.
fn data(answer: &ExecuteResponse) -> Result<Option<Data<'_>>, &str> {
    if answer.data.is_empty() {
        return Ok(None);
    }
    let mut members = BTreeMap::new();
    if !answer.output.is_empty() {
        members.insert("output", Cow::Owned(to_raw(&answer.output)));
    }
    for (name, bytes) in &answer.data {
        let value = serde_json::from_slice(bytes).map_err(|_| name.as_str())?;
        members.insert(name, Cow::Borrowed(value));
    }
    Ok(Some(Data(members)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reply(
        success: bool,
        output: &str,
        data: &[(&str, &str)],
        error: &str,
    ) -> Result<Reply, ProviderError> {
        let data = data.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        let answer = ExecuteResponse {
            success,
            output: output.to_owned(),
            data: data.collect(),
            error: error.to_owned(),
        };
        of("plugin 'p', operation 'o'", &answer)
    }

    fn result(success: bool, output: &str, data: &[(&str, &str)], error: &str) -> Value {
        let reply = reply(success, output, data, error).unwrap();
        serde_json::from_str(reply.result.get()).unwrap()
    }

    fn texts(result: &Value) -> Vec<&str> {
        let content = result["content"].as_array().unwrap();
        content.iter().map(|block| block["text"].as_str().unwrap()).collect()
    }

    #[test]
    fn data_and_output_and_errors_each_have_their_place() {
        let structured = |result: &Value| result["structuredContent"].clone();
        let both = result(true, "said", &[("n", "1"), ("deep", "{\"a\":[1,{}]}")], "");
        assert_eq!(texts(&both), [r#"{"deep":{"a":[1,{}]},"n":1,"output":"said"}"#]);
        assert_eq!(structured(&both), json!({"deep": {"a": [1, {}]}, "n": 1, "output": "said"}));
        assert_eq!(both["isError"], false);

        let own = result(true, "said", &[("output", "7")], "");
        assert_eq!(structured(&own), json!({"output": 7}));

        for (answer, expected, is_error) in [
            (result(true, "said", &[], ""), vec!["said"], false),
            (result(true, "", &[], ""), vec![""], false),
            (result(false, "", &[], "no luck"), vec!["no luck"], true),
            (result(false, "out", &[], "no luck"), vec!["no luck", "out"], true),
            (result(false, "out", &[], ""), vec!["out"], true),
            (result(true, "", &[], "but"), vec!["but"], true),
            (result(false, "", &[("at", "3")], "no luck"), vec!["no luck", "{\"at\":3}"], true),
        ] {
            assert_eq!((texts(&answer), answer["isError"].as_bool()), (expected, Some(is_error)));
        }
        let silent = result(false, "", &[], "");
        assert!(texts(&silent)[0].contains("gave no reason"));
    }

    #[test]
    fn values_are_kept_exactly_and_invalid_json_is_named() {
        let exact = result(true, "", &[("big", "12345678901234567890123")], "");
        assert_eq!(texts(&exact), [r#"{"big":12345678901234567890123}"#]);
        for garbage in ["{", "nope", "", "1 2"] {
            let lost = reply(true, "", &[("ok", "1"), ("bad", garbage)], "").unwrap_err();
            assert!(matches!(lost, ProviderError::Lost(_)), "{garbage}: {lost}");
            assert!(lost.to_string().ends_with("data that is not valid JSON: 'bad'"), "{lost}");
        }
    }
}
