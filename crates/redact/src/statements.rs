//! Passwords in statements of SQL: `IDENTIFIED BY 'x'`, `WITH PASSWORD 'x'`, `SET PASSWORD FOR u =
//! 'x'`.

use std::ops::Range;

use super::shapes::floor;
use super::{REDACTED, Span, marker};

/// The words after which a password may stand.
pub(super) const CLUES: &[&str] = &["identified ", "password '", "password('", "set password for "];

/// The distance between the beginning of a statement and its password.
const STATEMENT_BYTES_MAX: usize = 300;

/// Verbs and objects of statements that have passwords.
const VERBS: &[&str] = &["create ", "alter ", "set ", "grant "];
const OBJECTS: &[&str] = &["user", "role", "login", "group", "mapping", "identified"];

/// Finds the password that a statement gives after a clue.
pub(super) fn find(text: &str, clue: Range<usize>) -> Option<Span> {
    let word = text[clue.clone()].to_ascii_lowercase();
    match word.as_str() {
        "identified " => {
            let is_statement =
                text[clue.clone()].starts_with("IDENTIFIED") || of_statement(text, clue.start);
            is_statement.then(|| identified(text, clue))?
        }
        // Prose and code have the word before a quotation too.
        "password '" => of_statement(text, clue.start).then(|| quoted(text, clue.end - 1))?,
        "password('" => {
            let is_function = text[clue.clone()].starts_with("PASSWORD");
            is_function.then(|| quoted(text, clue.end - 1))?
        }
        _ => {
            let rest = &text[clue.end..floor(text, text.len().min(clue.end + STATEMENT_BYTES_MAX))];
            let line = &rest[..rest.find(['\n', ';']).unwrap_or(rest.len())];
            let sign = clue.end + line.find('=')? + 1;
            quoted(text, blanks(text, sign))
        }
    }
}

/// Matches what follows `IDENTIFIED`: `[WITH plugin] BY [PASSWORD] 'x'`, `WITH plugin AS 'hash'`.
fn identified(text: &str, clue: Range<usize>) -> Option<Span> {
    let mut at = blanks(text, clue.end);
    for _ in 0..4 {
        let word = word(text, at);
        match text[word.clone()].to_ascii_lowercase().as_str() {
            "" => return quoted(text, at),
            "with" => at = blanks(text, self::word(text, blanks(text, word.end)).end),
            "by" | "as" | "password" => at = blanks(text, word.end),
            // Oracle's passwords need no quotes; `identified by the team` is prose.
            _ if of_statement(text, clue.start) => {
                let (start, end) = (word.start, word.end);
                return (end > start).then_some(Span { start, end, replacement: REDACTED });
            }
            _ => return None,
        }
    }
    None
}

/// Matches a text in quotation marks.
fn quoted(text: &str, at: usize) -> Option<Span> {
    let escapes = text[at..].bytes().take_while(|byte| *byte == b'\\').count();
    let quote = text[at + escapes..].chars().next().filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let start = at + escapes + 1;
    let mut end = start;
    loop {
        let rest = &text[end..];
        end += rest.find(quote).unwrap_or(rest.len());
        // A doubled mark is part of the text.
        let doubled = text[end..].chars().take(2).filter(|c| *c == quote).count() == 2;
        if !doubled || end == start {
            break;
        }
        end += 2;
    }
    let secret = text[start..end].trim_end_matches('\\');
    let kept = secret.is_empty() || marker(secret) || secret.starts_with(['$', '<', '{', '?', ':']);
    (!kept).then_some(Span { start, end: start + secret.len(), replacement: REDACTED })
}

/// Reports whether a statement about users begins shortly before this place.
fn of_statement(text: &str, at: usize) -> bool {
    let before = &text[floor(text, at.saturating_sub(STATEMENT_BYTES_MAX))..at];
    let before = before.rsplit(';').next().unwrap_or(before).to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| before.contains(word));
    has(VERBS) && has(OBJECTS)
}

fn blanks(text: &str, at: usize) -> usize {
    at + text[at..].bytes().take(8).take_while(u8::is_ascii_whitespace).count()
}

fn word(text: &str, at: usize) -> Range<usize> {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$#@!%^*-+".contains(byte);
    at..at + text[at..].bytes().take_while(part).count()
}
