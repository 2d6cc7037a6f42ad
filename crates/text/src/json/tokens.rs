//! JSON tokens straight from the text, without a tree: duplicate keys, long numbers and any depth
//! are preserved for the reviewer, who must see everything that a model may read.

use std::fmt;

use serde::Deserializer as _;
use serde::de::Visitor;
use serde_json::value::RawValue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// `{` or `[`.
    Open(char),
    /// `}` or `]`.
    Close(char),
    /// The name of a member, as a literal.
    Key(&'a str),
    /// A string, as a literal.
    Text(&'a str),
    /// A number, `true`, `false` or `null`.
    Scalar(&'a str),
}

/// Returns `None` if the text is not JSON.
pub fn tokens(text: &str) -> Option<impl Iterator<Item = Token<'_>>> {
    serde_json::from_str::<&RawValue>(text).ok()?;
    Some(Tokens { rest: text })
}

/// Decodes a string literal. Unpaired surrogates become U+FFFD, since a parser may be lenient.
pub fn decode(literal: &str) -> String {
    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    let decoded = serde_json::Deserializer::from_str(literal).deserialize_bytes(Bytes);
    decoded.unwrap_or_else(|_| literal.to_owned())
}

struct Tokens<'a> {
    /// The remaining text, known to be valid JSON.
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn string(&mut self) -> Token<'a> {
        let mut escaped = false;
        let end = self.rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let literal = self.take(end.map_or(self.rest.len(), |at| at + 2));
        if self.rest.trim_start().starts_with(':') {
            Token::Key(literal)
        } else {
            Token::Text(literal)
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let between = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | ',' | ':');
        self.rest = self.rest.trim_start_matches(between);
        let first = self.rest.chars().next()?;
        Some(match first {
            '{' | '[' => {
                self.take(1);
                Token::Open(first)
            }
            '}' | ']' => {
                self.take(1);
                Token::Close(first)
            }
            '"' => self.string(),
            _ => {
                let end = self.rest.find(|c| between(c) || matches!(c, '}' | ']'));
                Token::Scalar(self.take(end.unwrap_or(self.rest.len())))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn everything_in_the_text_is_a_token() {
        let text = r#" {"a" : [1e400, -0,"\"\\", {} ,null],"a":"b"} "#;
        let found: Vec<Token<'_>> = tokens(text).unwrap().collect();
        assert_eq!(
            found,
            [
                Token::Open('{'),
                Token::Key(r#""a""#),
                Token::Open('['),
                Token::Scalar("1e400"),
                Token::Scalar("-0"),
                Token::Text(r#""\"\\""#),
                Token::Open('{'),
                Token::Close('}'),
                Token::Scalar("null"),
                Token::Close(']'),
                Token::Key(r#""a""#),
                Token::Text(r#""b""#),
                Token::Close('}'),
            ]
        );
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(tokens(&deep).unwrap().count(), 200_000);
        for bad in ["", "{", "{} x", "plain text", "\"a\nb\""] {
            assert!(tokens(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn strings_say_what_a_lenient_reader_would_read() {
        assert_eq!(decode(r#""a\u0041\n\"""#), "aA\n\"");
        assert_eq!(decode(r#""\ud83d\ude42""#), "🙂");
        assert!(decode(r#""\ud800 \u0069gnore""#).ends_with(" ignore"));
    }

    proptest! {
        #[test]
        fn brackets_are_balanced_in_any_text(text in r#"[\[\]{}:,"a-c0-9. \\ué]{0,40}"#) {
            if let Some(tokens) = tokens(&text) {
                let opened = tokens.map(|token| match token {
                    Token::Open(_) => 1,
                    Token::Close(_) => -1,
                    Token::Key(_) | Token::Text(_) | Token::Scalar(_) => 0,
                });
                prop_assert_eq!(opened.sum::<i32>(), 0);
            }
        }
    }
}
