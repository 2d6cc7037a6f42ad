//! Truncates results that are too long for a model: the text is cut, the full text kept, and a note
//! says how to read on. Images, other blocks and structured content pass unchanged.

use domain::Code;
use domain::Refusal;
use mcp::message::{Raw, raw};
use mcp::object::{ObjectMembers, quote};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(default)]
    text: Option<String>,
}

/// Cuts the result to `limit` characters of text; `keep` stores the full text and returns its key.
/// A result within the limit, or of another shape, stays unchanged.
pub(super) fn cut(result: Raw, limit: usize, keep: impl FnOnce(String) -> String) -> Raw {
    // There are never more characters than bytes, so most results return here.
    if limit == 0 || result.get().len() <= limit {
        return result;
    }
    shorten(&result, limit, keep).unwrap_or(result)
}

fn shorten(result: &Raw, limit: usize, keep: impl FnOnce(String) -> String) -> Option<Raw> {
    let mut members = ObjectMembers::parse(result).ok()?;
    let blocks: Vec<&RawValue> = serde_json::from_str(members.get("content")?).ok()?;
    let texts: Vec<Option<String>> = blocks.iter().map(|block| text(block)).collect();
    let total: usize = texts.iter().flatten().map(|text| text.chars().count()).sum();
    if total <= limit {
        return None;
    }
    let mut room = limit;
    let mut content: Vec<String> = Vec::with_capacity(blocks.len() + 1);
    for (block, text) in blocks.iter().zip(&texts) {
        match text {
            Some(text) => content.extend(cut_block(block, text, &mut room)),
            None => content.push(block.get().to_owned()),
        }
    }
    // Joined without separators, so that the visible text ends where the next page begins.
    let whole: String = texts.into_iter().flatten().collect();
    let note = format!(
        "[cut: {limit} of {total} characters shown; continue with read_cache \
         {{\"key\":\"{}\",\"offset\":{limit}}}]",
        keep(whole)
    );
    content.push(json!({"type": "text", "text": note}).to_string());
    let content = format!("[{}]", content.join(","));
    members.set("content", content);
    Some(members.write())
}

fn text(block: &RawValue) -> Option<String> {
    let block: Block<'_> = serde_json::from_str(block.get()).ok()?;
    block.text.filter(|_| block.kind == "text")
}

/// Cuts the block's text to the remaining room; `None` when no room is left.
fn cut_block(block: &RawValue, text: &str, room: &mut usize) -> Option<String> {
    if *room == 0 {
        return None;
    }
    let end = text.char_indices().nth(*room).map_or(text.len(), |(end, _)| end);
    *room -= text[..end].chars().count();
    if end == text.len() {
        return Some(block.get().to_owned());
    }
    let mut members = ObjectMembers::parse(block).ok()?;
    members.set("text", quote(&text[..end]));
    Some(members.write().get().to_owned())
}

/// Returns one page of a stored text.
pub(super) fn page(text: &str, offset: usize, limit: usize) -> Result<Raw, Refusal> {
    let total = text.chars().count();
    if offset > total {
        let message = format!("offset {offset} is past the end: the text has {total} characters");
        return Err(Refusal::new(Code::InvalidArguments, message)
            .with(json!({"provided": offset, "total": total})));
    }
    let part: String = text.chars().skip(offset).take(limit).collect();
    let next = offset + part.chars().count();
    let mut content = vec![json!({"type": "text", "text": part})];
    if next < total {
        let note =
            format!("[characters {offset} to {next} of {total}; continue with offset {next}]");
        content.push(json!({"type": "text", "text": note}));
    }
    Ok(raw(json!({"content": content}).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_to(limit: usize, result: &str) -> (String, Option<String>) {
        let mut kept = None;
        let result = cut(raw(result.to_owned()), limit, |whole| {
            kept = Some(whole);
            "K".to_owned()
        });
        (result.get().to_owned(), kept)
    }

    #[test]
    fn text_is_cut_by_characters_and_the_rest_passes() {
        let result = r#"{"content":[{"type":"text","text":"€€€","x":1},{"type":"image","data":"AAAAAAAAAAAAAAAA"},{"type":"text","text":"abcdef"},{"type":"text","text":"gone"}],"structuredContent":{"n":1E2}}"#;
        let (cut, kept) = cut_to(5, result);
        assert_eq!(kept.as_deref(), Some("€€€abcdefgone"));
        assert!(cut.starts_with(r#"{"content":[{"type":"text","text":"€€€","x":1},{"type":"image","data":"AAAAAAAAAAAAAAAA"},{"type":"text","text":"ab"},{"type":"text","text":"[cut: 5 of 13 characters shown"#), "{cut}");
        assert!(cut.ends_with(r#""structuredContent":{"n":1E2}}"#), "{cut}");
        assert!(cut.contains(r#"\"key\":\"K\",\"offset\":5"#), "{cut}");
    }

    #[test]
    fn results_that_need_no_cut_are_left_unchanged() {
        for (limit, result) in [
            (0, r#"{"content":[{"type":"text","text":"abcdef"}]}"#),
            (6, r#"{"content":[{"type":"text","text":"abcdef"}],"pad":"xxxxxxxxxxxxxxxx"}"#),
            (3, r#"{"content":[{"type":"image","data":"AAAAAAAAAAAA"}]}"#),
            (3, r#"{"something":"else entirely"}"#),
        ] {
            assert_eq!(cut_to(limit, result), (result.to_owned(), None));
        }
    }

    #[test]
    fn pages_join_to_the_whole() {
        let text = |raw: Raw| -> Vec<String> {
            let value: serde_json::Value = serde_json::from_str(raw.get()).unwrap();
            let blocks = value["content"].as_array().unwrap();
            blocks.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(
            text(page("ab€de", 0, 3).unwrap()),
            ["ab€", "[characters 0 to 3 of 5; continue with offset 3]"]
        );
        assert_eq!(text(page("ab€de", 3, 3).unwrap()), ["de"]);
        assert_eq!(text(page("ab€de", 5, 3).unwrap()), [""]);
        assert!(page("ab€de", 6, 3).is_err());
    }
}
