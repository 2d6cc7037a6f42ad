//! Warnings for a reviewer: deterministic, offline, table-driven. They assist a person and do not
//! decide: text without a warning can still be malicious, and text with one harmless.

mod kind;
mod names;
mod passage;
mod phrases;
mod plain;

pub use kind::WarningKind;
pub use names::KnownNames;

use super::fingerprint::UNSEEN;
use super::visible::{hidden_characters, hidden_places, is_hidden, visible};
use passage::{Passage, passages};
use phrases::{ENCODED_CHARS_MIN, RULES, phrases_in};
use plain::Plain;

/// The longest quotation, in characters of the text.
const QUOTE_CHARS_MAX: usize = 100;

/// The longest place name, as shown.
const PLACE_CHARS_MAX: usize = 100;

/// Names of other servers reported for one definition.
const BORROWED_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub kind: WarningKind,
    /// One sentence that names the place and quotes it, with hidden characters made visible.
    pub text: String,
}

/// Returns the warnings for one item of `own_server`. `known` holds the tools of all servers,
/// including its own: a server's mention of its own tools is not a borrowed name.
pub fn warnings(definition: &str, own_server: &str, known: &KnownNames) -> Vec<Warning> {
    let passages = passages(definition);
    let mut found: Vec<Warning> = hidden(&passages).into_iter().collect();
    found.extend(phrases(&passages));
    found.extend(encoded(&passages));
    found.extend(borrowed(&passages, own_server, known));
    found
}

fn hidden(passages: &[Passage]) -> Option<Warning> {
    let count: usize = passages.iter().map(|passage| hidden_characters(&passage.text)).sum();
    let place = |passage: &Passage| hidden_places(&passage.text).next();
    let (first, at) = passages.iter().find_map(|passage| Some((passage, place(passage)?)))?;
    // Starts a few characters earlier, so that the reader finds the place.
    let from = first.text[..at].char_indices().rev().nth(19).map_or(0, |(at, _)| at);
    let what = match count {
        1 => "hides a character".to_owned(),
        _ => format!("hides {count} characters, the first"),
    };
    Some(warning(WarningKind::HiddenCharacters, first, &what, &first.text[from..]))
}

/// Reports each rule once, at the first place where it applies.
fn phrases(passages: &[Passage]) -> Vec<Warning> {
    let mut found: Vec<Option<Warning>> = vec![None; RULES.len()];
    for passage in passages {
        for plain in Plain::readings(&passage.text) {
            for (rule, span) in phrases_in(&plain.text) {
                let quote = &passage.text[plain.original(span)];
                found[rule].get_or_insert_with(|| {
                    warning(RULES[rule].kind, passage, RULES[rule].what, quote)
                });
            }
        }
    }
    found.into_iter().flatten().collect()
}

fn encoded(passages: &[Passage]) -> Option<Warning> {
    let is_encoded = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let letters = |run: &str| run.chars().filter(char::is_ascii_alphanumeric).count();
    let blob = |passage: &Passage| {
        let mut runs = passage.text.split(|c| !is_encoded(c) && !is_hidden(c));
        runs.find(|run| letters(run) > ENCODED_CHARS_MIN).map(str::to_owned)
    };
    // Pictures and signatures are routinely encoded.
    let mut seen = passages.iter().filter(|passage| !UNSEEN.contains(&passage.member.as_str()));
    let (passage, blob) = seen.find_map(|passage| Some((passage, blob(passage)?)))?;
    let what = format!("contains {} characters of encoded text", blob.chars().count());
    Some(warning(WarningKind::EncodedText, passage, &what, &blob))
}

fn borrowed(passages: &[Passage], own_server: &str, known: &KnownNames) -> Vec<Warning> {
    let mut names: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for passage in passages {
        let mentions = if passage.is_own_name {
            known.same_name(&Plain::of(&passage.text).text, own_server).into_iter().collect()
        } else if passage.is_prose {
            known.mentions(&Plain::of(&passage.text).text, own_server)
        } else {
            Vec::new()
        };
        for mention in mentions {
            if found.len() == BORROWED_MAX || names.contains(&mention.name) {
                continue;
            }
            let server = visible(mention.server);
            let what = if passage.is_own_name {
                format!("is also the name of a tool of server '{server}'")
            } else {
                format!("mentions a tool of server '{server}'")
            };
            let quote = if passage.is_own_name { &passage.text } else { &mention.name };
            found.push(warning(WarningKind::BorrowedName, passage, &what, quote));
            names.push(mention.name);
        }
    }
    found
}

fn warning(kind: WarningKind, passage: &Passage, what: &str, quote: &str) -> Warning {
    let place = cut(&visible(&passage.place), PLACE_CHARS_MAX);
    let quote = cut(quote.trim(), QUOTE_CHARS_MAX);
    let quote = visible(&quote).replace(['\n', '\t'], " ");
    Warning { kind, text: format!("`{place}` {what}: \"{quote}\"") }
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Returns the table in `docs/trust.md`.
pub fn reference() -> String {
    let mut text = String::from("| warning | looks for | because |\n|---|---|---|\n");
    let mut row = |kind: WarningKind, shown: &str, why: &str| {
        text.push_str(&format!(
            "| `{}` | {} | {why} |\n",
            kind.as_str(),
            shown.replace('|', "\\|")
        ));
    };
    row(
        WarningKind::HiddenCharacters,
        "invisible and control characters, except those that ordinary text needs: CRLF line \
         endings, emoji, joiners in Arabic and Indic scripts",
        "a person cannot see them, but a model reads them",
    );
    for rule in &RULES {
        row(rule.kind, &rule.shown(), rule.why);
    }
    row(
        WarningKind::EncodedText,
        &format!(
            "more than {ENCODED_CHARS_MIN} consecutive letters and digits of base64 or a similar \
             encoding, outside `_meta` and `icons`"
        ),
        "a person cannot review it, but a model can decode it",
    );
    row(
        WarningKind::BorrowedName,
        "an item with the name of another server's tool",
        "a model may confuse the two",
    );
    row(
        WarningKind::BorrowedName,
        "a description that mentions another server's tool: as `server:tool` or `server__tool`, \
         or by a name of at least 6 characters that contains `_`, `-`, `.` or a capital letter",
        "a server has no reason to mention another server's tools",
    );
    text
}

#[cfg(test)]
mod tests;
