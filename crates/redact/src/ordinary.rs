//! Values that stand under the name of a secret and are none: documents, schemas, messages and code
//! say there what is expected, or what is wrong.

use std::sync::LazyLock;

use super::list::{Words, rows};

static WORDS: Words = LazyLock::new(|| rows(include_str!("ordinary/words.txt")).collect());
static BEGINNINGS: Words =
    LazyLock::new(|| rows(include_str!("ordinary/beginnings.txt")).collect());

/// The shortest sentence, in words.
const SENTENCE_WORDS_MIN: usize = 3;

/// The longest word of a sentence that is no credential.
const WORD_BYTES_MAX: usize = 15;

/// Values that every language has, and what a schema says of a parameter.
const LITERALS: &[&str] =
    &["true", "false", "null", "none", "nil", "undefined", "required", "optional"];

/// Reports whether the value is no text but a literal. After `password=` any other word may be a
/// password.
pub(super) fn is_literal(value: &str) -> bool {
    LITERALS.iter().any(|literal| literal.eq_ignore_ascii_case(value))
}

/// Reports whether the value describes a secret or stands in its place.
pub(super) fn describes(value: &str) -> bool {
    let mut words = value.split_whitespace();
    let Some(first) = words.next().map(bare) else { return true };
    match words.next() {
        None => is_word(first) || is_sign(value) || stands_for_another(first),
        Some(_) => {
            let begins = BEGINNINGS.iter().any(|word| first.eq_ignore_ascii_case(word));
            begins && is_prose(value) || value.split_whitespace().all(|word| is_word(bare(word)))
        }
    }
}

/// Reports whether the text is a sentence: words, and no credential among them.
pub(super) fn is_sentence(text: &str) -> bool {
    is_prose(text) && text.split_whitespace().count() >= SENTENCE_WORDS_MIN
}

fn is_prose(text: &str) -> bool {
    let letter = |c: char| c.is_alphabetic() || "'’-/".contains(c);
    text.split_whitespace().map(bare).all(|word| {
        let is_number = word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit());
        is_number || word.len() <= WORD_BYTES_MAX && word.chars().all(letter)
    })
}

fn is_word(word: &str) -> bool {
    let same = |other: &str| other.eq_ignore_ascii_case(word);
    word.len() <= WORD_BYTES_MAX && WORDS.iter().any(|other| same(other))
}

/// Returns a word without the signs around it.
fn bare(word: &str) -> &str {
    word.trim_start_matches(['(', '"', '\'']).trim_end_matches(['.', ',', ':', ';', '!', ')', '"'])
}

/// Reports whether the value is a sign or two, as a parser names its tokens.
fn is_sign(value: &str) -> bool {
    value.len() <= 2 && !value.bytes().any(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80)
}

/// Reports whether the value is to be replaced: `your-token-here`, `xxxxxxxx`.
fn stands_for_another(value: &str) -> bool {
    let your = value.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("your"));
    let is_yours = your && value.as_bytes().get(4).is_some_and(|byte| b"-_".contains(byte));
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    is_yours && !has_digit
        || value.len() > 2 && value.bytes().all(|byte| matches!(byte, b'x' | b'X'))
}
