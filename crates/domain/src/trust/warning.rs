//! What a reviewer should look at twice: deterministic, offline, by tables. A help for a person and
//! no judge: a text without a warning can still be bad, and one with a warning good.

mod names;
mod phrases;
mod plain;
mod said;

pub use names::KnownNames;

use super::fingerprint::UNSEEN;
use super::visible::{hidden_characters, hidden_places, is_hidden, visible};
use phrases::{ENCODED_CHARS_MIN, RULES, phrases_in};
use plain::Plain;
use said::{Said, said};

/// Longest quotation, in characters of the text.
const QUOTE_CHARS_MAX: usize = 100;

/// Longest place that is named, as shown.
const PLACE_CHARS_MAX: usize = 100;

/// Names of other servers that are told of one definition.
const BORROWED_MAX: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// Characters that a person does not see.
    HiddenCharacters,
    /// Text that steers the model instead of saying what the tool does.
    InstructsModel,
    /// Files in which secrets are kept.
    NamesSecrets,
    /// A long run of encoded text, which nobody can review.
    EncodedText,
    /// The name of another server's tool.
    BorrowedName,
}

impl WarningKind {
    pub const ALL: [WarningKind; 5] = [
        WarningKind::HiddenCharacters,
        WarningKind::InstructsModel,
        WarningKind::NamesSecrets,
        WarningKind::EncodedText,
        WarningKind::BorrowedName,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            WarningKind::HiddenCharacters => "hidden_characters",
            WarningKind::InstructsModel => "instructs_model",
            WarningKind::NamesSecrets => "names_secrets",
            WarningKind::EncodedText => "encoded_text",
            WarningKind::BorrowedName => "borrowed_name",
        }
    }

    pub fn parse(text: &str) -> Option<WarningKind> {
        WarningKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub kind: WarningKind,
    /// One sentence, which names the place and quotes it, hidden characters visible.
    pub text: String,
}

/// Of one item of `own_server`. `known` holds the tools of all servers, its own as well: what a
/// server says of its own tools is nothing borrowed.
pub fn warnings(definition: &str, own_server: &str, known: &KnownNames) -> Vec<Warning> {
    let said = said(definition);
    let mut found: Vec<Warning> = hidden(&said).into_iter().collect();
    found.extend(phrases(&said));
    found.extend(encoded(&said));
    found.extend(borrowed(&said, own_server, known));
    found
}

fn hidden(said: &[Said]) -> Option<Warning> {
    let count: usize = said.iter().map(|said| hidden_characters(&said.text)).sum();
    let place = |said: &Said| hidden_places(&said.text).next();
    let (first, at) = said.iter().find_map(|said| Some((said, place(said)?)))?;
    // A few characters before it, so that the reader finds the place.
    let from = first.text[..at].char_indices().rev().nth(19).map_or(0, |(at, _)| at);
    let what = match count {
        1 => "hides a character".to_owned(),
        _ => format!("hides {count} characters, the first"),
    };
    Some(warning(WarningKind::HiddenCharacters, first, &what, &first.text[from..]))
}

/// Each rule once, at the first place where it applies.
fn phrases(said: &[Said]) -> Vec<Warning> {
    let mut found: Vec<Option<Warning>> = vec![None; RULES.len()];
    for said in said {
        for plain in Plain::readings(&said.text) {
            for (rule, span) in phrases_in(&plain.text) {
                let quote = &said.text[plain.original(span)];
                found[rule].get_or_insert_with(|| {
                    warning(RULES[rule].kind, said, RULES[rule].what, quote)
                });
            }
        }
    }
    found.into_iter().flatten().collect()
}

fn encoded(said: &[Said]) -> Option<Warning> {
    let is_encoded = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let letters = |run: &str| run.chars().filter(char::is_ascii_alphanumeric).count();
    let blob = |said: &Said| {
        let mut runs = said.text.split(|c| !is_encoded(c) && !is_hidden(c));
        runs.find(|run| letters(run) > ENCODED_CHARS_MIN).map(str::to_owned)
    };
    // Pictures and signatures are encoded as a matter of course.
    let mut seen = said.iter().filter(|said| !UNSEEN.contains(&said.member.as_str()));
    let (said, blob) = seen.find_map(|said| Some((said, blob(said)?)))?;
    let what = format!("holds {} characters of encoded text", blob.chars().count());
    Some(warning(WarningKind::EncodedText, said, &what, &blob))
}

fn borrowed(said: &[Said], own_server: &str, known: &KnownNames) -> Vec<Warning> {
    let mut names: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for said in said {
        let mentions = if said.is_own_name {
            known.same_name(&Plain::of(&said.text).text, own_server).into_iter().collect()
        } else if said.is_prose {
            known.mentions(&Plain::of(&said.text).text, own_server)
        } else {
            Vec::new()
        };
        for mention in mentions {
            if found.len() == BORROWED_MAX || names.contains(&mention.name) {
                continue;
            }
            let server = visible(mention.server);
            let what = if said.is_own_name {
                format!("is also the name of a tool of server '{server}'")
            } else {
                format!("mentions a tool of server '{server}'")
            };
            let quote = if said.is_own_name { &said.text } else { &mention.name };
            found.push(warning(WarningKind::BorrowedName, said, &what, quote));
            names.push(mention.name);
        }
    }
    found
}

fn warning(kind: WarningKind, said: &Said, what: &str, quote: &str) -> Warning {
    let place = cut(&visible(&said.place), PLACE_CHARS_MAX);
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

/// The table of `docs/trust.md`.
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
        "characters that are made visible, but for those that writing needs: a line's end in two \
         characters, emoji, joiners in Arabic and Indic scripts",
        "a person does not see them, and a model reads them",
    );
    for rule in &RULES {
        row(rule.kind, &rule.shown(), rule.why);
    }
    row(
        WarningKind::EncodedText,
        &format!(
            "over {ENCODED_CHARS_MIN} letters and digits of base64 or the like in a row, outside \
             `_meta` and `icons`"
        ),
        "nobody can review it, and a model can decode it",
    );
    row(
        WarningKind::BorrowedName,
        "an item with the name of another server's tool",
        "a model may take one for the other",
    );
    row(
        WarningKind::BorrowedName,
        "a description that mentions another server's tool: as `server:tool` or `server__tool`, \
         or by a name of 6 characters or more with `_`, `-`, `.` or a capital inside",
        "a server has no business with the tools of another",
    );
    text
}

#[cfg(test)]
mod tests;
