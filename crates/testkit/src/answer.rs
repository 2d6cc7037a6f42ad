//! Checks that an answer belongs to the request that a measurement sent: whatever stands between may
//! not be credited with errors, or with the answers of others.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

/// Checks the body of a response, JSON or a stream of events: one message has the id and a result
/// that contains the word and is no error.
pub fn expect_echo(body: &str, id: u64, word: &str) -> Result<(), String> {
    let shown = || body.chars().take(300).collect::<String>();
    let answers = messages(body).filter_map(|text| serde_json::from_str::<Answer<'_>>(text).ok());
    let answer = answers.into_iter().find(|answer| answer.id == Some(id));
    match answer.map(|answer| answer.result) {
        None => Err(format!("no answer to request {id}: {}", shown())),
        Some(Some(result)) if is_echo(result.get(), word) => Ok(()),
        Some(_) => Err(format!("no result with {word}: {}", shown())),
    }
}

/// Returns the messages of a body: all of it, or the data of each event.
pub fn messages(body: &str) -> impl Iterator<Item = &str> {
    let whole = body.trim_start().starts_with('{').then_some(body);
    let events = body.lines().filter(move |_| whole.is_none());
    whole.into_iter().chain(events.filter_map(|line| line.strip_prefix("data:")).map(str::trim))
}

fn is_echo(result: &str, word: &str) -> bool {
    let is_error =
        |text: &str| text.contains("\"isError\":true") || text.contains("\"isError\": true");
    // A long text follows the members that tell, or stands before them.
    result.contains(word) && !is_error(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_id_and_the_word_in_either_form() {
        let json = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"word-7-xx"}]}}"#;
        let events = format!("event: message\ndata: {{\"method\":\"log\"}}\n\ndata: {json}\n\n");
        for body in [json, &events, &format!("\n{json}")] {
            assert_eq!(expect_echo(body, 7, "word-7-"), Ok(()), "{body}");
            assert!(expect_echo(body, 8, "word-7-").unwrap_err().starts_with("no answer to"));
            assert!(expect_echo(body, 7, "word-8-").unwrap_err().starts_with("no result with"));
        }
    }

    #[test]
    fn an_error_is_no_echo() {
        for body in [
            r#"{"id":7,"result":{"content":[{"text":"word"}],"isError":true}}"#,
            r#"{"id":7,"result":{"content":[{"text":"word"}],"isError": true}}"#,
            r#"{"id":7,"error":{"code":1,"message":"word"}}"#,
            "word",
            "",
        ] {
            assert!(expect_echo(body, 7, "word").is_err(), "{body}");
        }
        let quoted = r#"{"id":7,"result":{"content":[{"text":"word {\"isError\":true}"}]}}"#;
        assert_eq!(expect_echo(quoted, 7, "word"), Ok(()));
    }
}
