//! Parse errors in plain words: the parser's own words name its types and offsets.

/// Explains why a text is not the message, params or result that it should be.
pub(crate) fn explain(error: &serde_json::Error) -> String {
    if !error.is_data() {
        return "not valid JSON".to_owned();
    }
    let text = error.to_string();
    let words = text.rsplit_once(" at line ").map_or(&*text, |(words, _)| words);
    let named = || words.split('`').nth(1).unwrap_or_default();
    if words.starts_with("missing field") {
        return format!("'{}' is missing", named());
    }
    if words.starts_with("duplicate field") {
        return format!("duplicate key '{}'", named());
    }
    let wrong = words.strip_prefix("invalid type: ").or(words.strip_prefix("invalid value: "));
    let expected = wrong.and_then(|rest| rest.rsplit_once(", expected "));
    match expected.map(|(_, expected)| expected) {
        None if words.starts_with("invalid ") => "its shape is wrong".to_owned(),
        // Our own words.
        None => words.to_owned(),
        Some("a sequence") => "expected a list".to_owned(),
        Some(expected) if expected.starts_with("a ") || expected.starts_with("an ") => {
            format!("expected {expected}")
        }
        Some(expected) if expected.starts_with("struct ") => "expected an object".to_owned(),
        Some(_) => "expected another type".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn no_word_of_the_parser_is_left() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only errors are looked at")]
        struct Shape {
            name: String,
            #[serde(default)]
            list: Vec<i32>,
        }
        for (text, expected) in [
            ("{", "not valid JSON"),
            (r#"{"name":"a"} {}"#, "not valid JSON"),
            ("3", "expected an object"),
            ("{}", "'name' is missing"),
            ("[]", "its shape is wrong"),
            (r#"{"name":7}"#, "expected a string"),
            (r#"{"name":"a","name":"b"}"#, "duplicate key 'name'"),
            (r#"{"name":"a","list":{}}"#, "expected a list"),
            (r#"{"name":"a","list":["x"]}"#, "expected another type"),
        ] {
            let found = match serde_json::from_str::<Shape>(text) {
                Err(error) => explain(&error),
                Ok(shape) => panic!("{text}: {shape:?}"),
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
