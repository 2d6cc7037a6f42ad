//! What a plugin answered, as the result of a tool.

use std::collections::BTreeMap;

use mcp::message::to_raw;
use plugin_sdk::protocol::ExecuteResponse;
use provider::Reply;
use serde::Serialize;
use serde_json::value::RawValue;

/// The result object of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    content: Vec<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// The data as JSON text and as structured content, its values as they came. Output goes beside it
/// as `output`, unless the data has one of its own; without data it is the text. Where something
/// failed, the reason comes first.
pub(super) fn of(place: &str, answer: &ExecuteResponse) -> Reply {
    let is_error = !answer.success || !answer.error.is_empty();
    let data = match data(answer) {
        Ok(data) => data,
        Err(name) => {
            return failed(&format!("{place} answered with data that is not JSON: '{name}'"));
        }
    };
    let mut texts = Vec::new();
    if is_error {
        let reason = [answer.error.as_str(), answer.output.as_str()];
        let reason = reason.into_iter().find(|text| !text.is_empty());
        texts.push(reason.unwrap_or("the operation failed, and the plugin did not say why"));
    }
    match &data {
        Some(data) => texts.push(data.get()),
        None if !is_error || !answer.error.is_empty() => texts.push(&answer.output),
        None => {}
    }
    // A success without a word is still an answer; an error needs no empty line behind it.
    texts.retain(|text| !is_error || !text.is_empty());
    written(&texts, data.as_deref(), is_error)
}

/// A result that says what went wrong.
pub(super) fn failed(reason: &str) -> Reply {
    written(&[reason], None, true)
}

fn written(texts: &[&str], data: Option<&RawValue>, is_error: bool) -> Reply {
    let content = texts.iter().map(|text| Text { r#type: "text", text }).collect();
    let result = ToolResult { content, structured_content: data, is_error };
    Reply { result: to_raw(&result) }
}

/// One object of all the data, or the name of what is no JSON.
fn data(answer: &ExecuteResponse) -> Result<Option<Box<RawValue>>, &str> {
    if answer.data.is_empty() {
        return Ok(None);
    }
    let output = to_raw(&answer.output);
    let mut members: BTreeMap<&str, &RawValue> = BTreeMap::new();
    if !answer.output.is_empty() {
        members.insert("output", &output);
    }
    for (name, bytes) in &answer.data {
        members.insert(name, serde_json::from_slice(bytes).map_err(|_| name.as_str())?);
    }
    Ok(Some(to_raw(&members)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn result(success: bool, output: &str, data: &[(&str, &str)], error: &str) -> Value {
        let data = data.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
        let answer = ExecuteResponse {
            success,
            output: output.to_owned(),
            data: data.collect(),
            error: error.to_owned(),
        };
        serde_json::from_str(of("plugin 'p', operation 'o'", &answer).result.get()).unwrap()
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
        assert!(texts(&silent)[0].contains("did not say why"));
    }

    #[test]
    fn values_stay_as_they_came_and_garbage_is_told_by_name() {
        let exact = result(true, "", &[("big", "12345678901234567890123")], "");
        assert_eq!(texts(&exact), [r#"{"big":12345678901234567890123}"#]);
        for garbage in ["{", "nope", "", "1 2"] {
            let told = result(true, "", &[("ok", "1"), ("bad", garbage)], "");
            assert_eq!(told["isError"], true, "{garbage}");
            assert!(texts(&told)[0].ends_with("data that is not JSON: 'bad'"), "{told}");
        }
    }
}
