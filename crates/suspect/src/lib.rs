//! Warnings for a reviewer: deterministic, offline, table-driven. They assist a person and do not
//! decide: text without a warning can still be malicious, and text with one harmless.

mod encoded;
mod fold;
mod kind;
mod model;
mod names;
mod passage;
mod plain;
mod rules;
mod vocabulary;

pub use kind::WarningKind;
pub use names::KnownNames;

use std::ops::Range;

use encoded::{decoded, is_sentence};
use passage::{Passage, passages};
use plain::Plain;
use rules::{RULES, Rule, rules_in};
use text::{hidden_characters, hidden_places, is_hidden, visible};

/// Members of an item that models never see; servers change them without changing the item.
pub const UNSEEN: [&str; 2] = ["_meta", "icons"];

/// The longest quotation, in characters of the text.
const QUOTE_CHARS_MAX: usize = 100;

/// The longest place name, as shown.
const PLACE_CHARS_MAX: usize = 100;

/// The length of an unbroken run that counts as encoded: above keys and hashes, which examples
/// contain.
const ENCODED_CHARS_MIN: usize = 200;

/// Quotation marks, opening and closing.
const QUOTES: [(char, char); 7] =
    [('"', '"'), ('`', '`'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』')];

/// The longest citation around a match.
const CITED_BYTES_MAX: usize = 100;

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
    if found.is_empty() {
        found.extend(odd(&passages));
    }
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

/// Reports each effect once, at the first place where a rule applies.
fn phrases(passages: &[Passage]) -> Vec<Warning> {
    let mut found: Vec<Option<Warning>> = vec![None; RULES.len()];
    for passage in passages {
        for plain in Plain::readings(&passage.text) {
            for (rule, span) in rules_in(&plain.text) {
                let span = plain.original(span);
                if is_cited(&passage.text, span.clone()) {
                    continue;
                }
                let quote = &passage.text[span];
                let Rule { kind, what, .. } = &RULES[rule];
                let first = RULES.iter().position(|other| other.what == *what).unwrap_or(rule);
                found[first].get_or_insert_with(|| warning(*kind, passage, what, quote));
            }
        }
    }
    found.into_iter().flatten().collect()
}

/// Reports a definition that reads like one written to steer a model, without the words of a rule.
fn odd(passages: &[Passage]) -> Option<Warning> {
    let texts: Vec<&str> = seen(passages).map(|passage| passage.text.as_str()).collect();
    let sentence = model::suspicious(&texts)?;
    let passage = seen(passages).find(|passage| passage.text.contains(sentence))?;
    let what = "reads like text written to steer a model, above all here";
    Some(warning(WarningKind::InstructsModel, passage, what, sentence))
}

/// Returns the passages that a model gets to see.
fn seen(passages: &[Passage]) -> impl Iterator<Item = &Passage> {
    passages.iter().filter(|passage| !UNSEEN.contains(&passage.member.as_str()))
}

/// Reports whether the span stands in quotation marks. Scanners cite what they look for; the model
/// judges such texts.
fn is_cited(text: &str, span: Range<usize>) -> bool {
    let from = text.floor_char_boundary(span.start.saturating_sub(CITED_BYTES_MAX));
    let to = text.ceil_char_boundary((span.end + CITED_BYTES_MAX).min(text.len()));
    let (before, after) = (&text[from..span.start], &text[span.end..to]);
    QUOTES.iter().any(|(open, close)| {
        let opened = before.rfind(*open).map(|at| &before[at + open.len_utf8()..]);
        opened.is_some_and(|inside| !inside.contains(['\n', *close])) && after.contains(*close)
    })
}

/// Reports text that only a model can read: sentences and orders in an encoding, and long runs.
fn encoded(passages: &[Passage]) -> Option<Warning> {
    // Pictures and signatures, outside of it, are routinely encoded.
    let hidden = seen(passages).find_map(|passage| {
        let mut texts = decoded(&passage.text).into_iter();
        let text = texts.find(|decoded| is_order(&decoded.text) || is_sentence(&decoded.text))?;
        let what = format!("contains text in {}", text.encoding);
        Some(warning(WarningKind::EncodedText, passage, &what, &text.text))
    });
    hidden.or_else(|| seen(passages).find_map(long_run))
}

fn is_order(text: &str) -> bool {
    !rules_in(&Plain::of(text).text).is_empty()
}

fn long_run(passage: &Passage) -> Option<Warning> {
    let is_encoded = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let letters = |run: &str| run.chars().filter(char::is_ascii_alphanumeric).count();
    let mut runs = passage.text.split(|c| !is_encoded(c) && !is_hidden(c));
    let run = runs.find(|run| letters(run) > ENCODED_CHARS_MIN)?;
    let what = format!("contains {} characters of encoded text", run.chars().count());
    Some(warning(WarningKind::EncodedText, passage, &what, run))
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
    let mut text = String::from("| warning | looks for | why |\n|---|---|---|\n");
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
    for rules in RULES.chunk_by(|one, next| one.what == next.what) {
        let examples: Vec<String> =
            rules.iter().map(|rule| format!("`{}`", rule.example)).collect();
        let why = format!("it {}", rules[0].what);
        row(rules[0].kind, &examples.join(", "), &why);
    }
    row(
        WarningKind::EncodedText,
        &format!(
            "a sentence or an order in base64, hexadecimal digits or escapes, and over \
             {ENCODED_CHARS_MIN} letters and digits in a row, outside `_meta` and `icons`"
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
fn seen_texts(definition: &str) -> Vec<String> {
    seen(&passages(definition)).map(|passage| passage.text.clone()).collect()
}

#[cfg(test)]
mod tests;
