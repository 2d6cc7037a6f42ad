//! Parse errors in plain words. The parser's own words name its types and offsets; a person, a
//! program or a model needs the fault.

use serde_json::Error;
use serde_json::error::Category;

/// Characters of the text that lead up to a fault.
const BEFORE_CHARS_MAX: usize = 30;

/// The parser's words for a fault of syntax, and ours.
const SYNTAX: [(&str, &str); 18] = [
    ("EOF while parsing a string", "it ends inside a string"),
    ("EOF while parsing a list", "it ends inside a list: ']' is missing"),
    ("EOF while parsing an object", "it ends inside an object: '}' is missing"),
    ("EOF while parsing a value", "it ends where a value is expected"),
    ("expected `:`", "':' is missing after a name"),
    ("expected `,` or `]`", "',' or ']' is missing"),
    ("expected `,` or `}`", "',' or '}' is missing"),
    ("expected ident", "a word is not true, false or null"),
    ("expected value", "a value is missing or misspelled"),
    ("expected `\"`", "a name must be a string in double quotes"),
    ("key must be a string", "a name must be a string in double quotes"),
    ("control character", "a string contains a line break or another control character; escape it"),
    ("invalid escape", "a string contains an invalid escape"),
    ("invalid number", "a number is malformed"),
    ("number out of range", "a number is out of range"),
    ("trailing comma", "a comma is followed by nothing"),
    ("trailing characters", "more text follows the value"),
    ("recursion limit exceeded", "it is nested too deeply"),
];

/// The parser's words for an expected type, and ours.
const TYPES: [(&str, &str); 15] = [
    ("a sequence", "a list"),
    ("a map", "an object"),
    ("a boolean", "true or false"),
    ("a borrowed string", "a string"),
    ("u8", "a whole number, 0 or more"),
    ("u16", "a whole number, 0 or more"),
    ("u32", "a whole number, 0 or more"),
    ("u64", "a whole number, 0 or more"),
    ("usize", "a whole number, 0 or more"),
    ("i8", "a whole number"),
    ("i16", "a whole number"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("f64", "a number"),
    ("f32", "a number"),
];

/// Explains a parse error without its position.
pub fn explain(error: &Error) -> String {
    let text = error.to_string();
    let words = text.rsplit_once(" at line ").map_or(&*text, |(words, _)| words);
    match error.classify() {
        Category::Syntax | Category::Eof => syntax(words).to_owned(),
        Category::Data => data(words),
        Category::Io => "it cannot be read".to_owned(),
    }
}

/// Explains a parse error in a file that a person wrote, with its position.
pub fn explain_in_file(error: &Error) -> String {
    match error.line() {
        0 => explain(error),
        line => format!("line {line}, column {}: {}", error.column(), explain(error)),
    }
}

/// Returns the last characters of the text before the fault, for a reader who cannot count columns.
pub fn text_before<'a>(text: &'a str, error: &Error) -> &'a str {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = &line[..line.floor_char_boundary(error.column())];
    let start = before.char_indices().rev().nth(BEFORE_CHARS_MAX - 1).map_or(0, |(at, _)| at);
    &before[start..]
}

fn syntax(words: &str) -> &'static str {
    let known = SYNTAX.iter().find(|(theirs, _)| words.starts_with(theirs));
    match known {
        Some((_, ours)) => ours,
        None if words.contains("surrogate") || words.contains("escape") => {
            "a string contains an invalid escape"
        }
        None => "its syntax is wrong",
    }
}

fn data(words: &str) -> String {
    let quoted = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();
    if words.starts_with("missing field") {
        return format!("'{}' is missing", quoted(words));
    }
    if words.starts_with("duplicate field") {
        return format!("duplicate key '{}'", quoted(words));
    }
    if words.starts_with("unknown field") || words.starts_with("unknown variant") {
        let kind = if words.starts_with("unknown field") { "member" } else { "value" };
        let known: Vec<&str> = words.split('`').skip(3).step_by(2).collect();
        let expected = if known.is_empty() {
            String::new()
        } else {
            format!(": expected {}", known.join(", "))
        };
        return format!("unknown {kind} '{}'{expected}", quoted(words));
    }
    for prefix in ["invalid type: ", "invalid value: "] {
        if let Some((found, expected)) =
            words.strip_prefix(prefix).and_then(|rest| rest.rsplit_once(", expected "))
        {
            return format!("expected {}, got {}", expected_type(expected), found_value(found));
        }
    }
    if words.starts_with("invalid length") {
        return "a list has the wrong number of items".to_owned();
    }
    words.to_owned()
}

fn expected_type(words: &str) -> &str {
    let known = TYPES.iter().find(|(theirs, _)| words == *theirs);
    match known {
        Some((_, ours)) => ours,
        None if words.starts_with("struct ") => "an object",
        None if words.starts_with("a ") || words.starts_with("an ") => words,
        None => "another value",
    }
}

/// Returns the value that was found, or its kind: the parser names a kind and quotes a value.
fn found_value(words: &str) -> String {
    for kind in ["integer `", "floating point `", "boolean `"] {
        if let Some(value) = words.strip_prefix(kind) {
            return value.trim_end_matches('`').to_owned();
        }
    }
    match words {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit value" => "null".to_owned(),
        _ => match words.strip_prefix("string ") {
            Some(text) => text.to_owned(),
            None => "another value".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::json;

    #[test]
    fn syntax_is_explained_without_the_parsers_words() {
        for (text, expected) in [
            ("", "it ends where a value is expected"),
            ("{", "it ends inside an object: '}' is missing"),
            ("[1", "it ends inside a list: ']' is missing"),
            (r#"{"a"#, "it ends inside a string"),
            (r#"{"a" 1}"#, "':' is missing after a name"),
            (r#"{"a":1 "b":2}"#, "',' or '}' is missing"),
            ("[1 2]", "',' or ']' is missing"),
            ("{a:1}", "a name must be a string in double quotes"),
            ("[1,]", "a comma is followed by nothing"),
            ("tru", "it ends where a value is expected"),
            ("trve", "a word is not true, false or null"),
            ("'a'", "a value is missing or misspelled"),
            ("{} {}", "more text follows the value"),
            ("[01]", "a number is malformed"),
            ("1e400", "a number is out of range"),
            ("\"a\nb\"", "a string contains a line break or another control character; escape it"),
            (r#""\x""#, "a string contains an invalid escape"),
            (r#""\ud800""#, "a string contains an invalid escape"),
            (r#"{"a":1,"a":2}"#, "duplicate key 'a'"),
            (&"[".repeat(500), "it is nested too deeply"),
        ] {
            assert_eq!(explain(&json::parse(text).unwrap_err()), expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_shape_is_explained_without_the_names_of_types() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only errors are looked at")]
        struct Shape {
            name: String,
            #[serde(default)]
            count: u32,
            #[serde(default)]
            items: Vec<Kind>,
        }
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Kind {
            Small,
            Large,
        }
        for (text, expected) in [
            ("[]", "a list has the wrong number of items"),
            ("7", "expected an object, got 7"),
            ("{}", "'name' is missing"),
            (r#"{"name":7}"#, "expected a string, got 7"),
            (r#"{"name":null}"#, "expected a string, got null"),
            (r#"{"name":"a","name":"b"}"#, "duplicate key 'name'"),
            (r#"{"nam":"a"}"#, "unknown member 'nam': expected name, count, items"),
            (r#"{"name":"a","count":-1}"#, "expected a whole number, 0 or more, got -1"),
            (r#"{"name":"a","count":"x"}"#, "expected a whole number, 0 or more, got \"x\""),
            (r#"{"name":"a","items":{}}"#, "expected a list, got an object"),
            (r#"{"name":"a","items":["odd"]}"#, "unknown value 'odd': expected small, large"),
        ] {
            let error = serde_json::from_str::<Shape>(text).unwrap_err();
            assert_eq!(explain(&error), expected, "{text}");
        }
    }

    #[test]
    fn a_file_gets_the_position_and_a_text_what_comes_before() {
        let text = "{\n  \"a\": 1,\n  \"b\" 2\n}";
        let error = json::parse(text).unwrap_err();
        assert_eq!(explain_in_file(&error), "line 3, column 7: ':' is missing after a name");
        assert_eq!(text_before(text, &error), "  \"b\" 2");
        let long = format!("[{} x]", "€".repeat(100));
        let error = json::parse(&long).unwrap_err();
        assert!(text_before(&long, &error).chars().count() <= BEFORE_CHARS_MAX);
    }
}
