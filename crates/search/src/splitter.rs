//! Splits text into words. Names and prose pass through the same splitter, so a query finds
//! `createPullRequest`, `create_pull_request` and "create a pull request" alike.

use std::ops::Range;

use super::word::{Short, Word, eight_at, small_letters};

/// Longer words are cut here: identifiers are shorter, and anything longer is encoded data.
const WORD_BYTES_MAX: usize = 64;

/// The form of a word in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A word, or one part of an identifier.
    Part,
    /// The parts of one identifier or compound, joined: `get_weather` as `getweather`.
    Joined,
}

/// Splits texts and reuses its buffers from one text to the next.
#[derive(Default)]
pub(super) struct Splitter {
    plain: String,
    joined: String,
    parts: usize,
    has_letter: bool,
}

impl Splitter {
    /// Calls `emit` with each word of `text` in lowercase.
    ///
    /// `_`, `-`, `.`, a change of case and a change between letters and digits separate the parts
    /// of a compound; any other character that is not a letter or digit ends it. Runs of Chinese,
    /// Japanese and Korean script become overlapping pairs of characters.
    pub(super) fn split(&mut self, text: &str, mut emit: impl FnMut(Word<'_>, Form)) {
        let mut at = 0;
        while let Some(&byte) = text.as_bytes().get(at) {
            if is_break(byte) {
                at += 1;
            } else if let Some((word, length)) = plain_word(text.as_bytes(), at) {
                emit(Word::Short(word), Form::Part);
                at += length;
            } else {
                at = self.split_compound(text, at, &mut emit);
            }
        }
    }

    /// Splits the compound that begins at `at` and returns the position after the break that ends
    /// it.
    fn split_compound<E: FnMut(Word<'_>, Form)>(
        &mut self,
        text: &str,
        mut at: usize,
        emit: &mut E,
    ) -> usize {
        let mut before = Class::Break;
        let mut start = at;
        // True while the current part has only ASCII letters and digits.
        let mut plain = true;
        loop {
            let (class, size) = Class::at(text, at);
            if class == Class::Lower && before == Class::Lower && size == 1 {
                // At least the one already examined.
                at += small_letters(eight_at(text.as_bytes(), at));
                continue;
            }
            let end = at + size;
            if !before.goes_on(class) || (class == Class::Upper && begins_word(text, end)) {
                self.end_part(text, start..at, plain, emit);
                (start, plain) = (at, true);
            }
            match class {
                Class::Upper | Class::Lower => {
                    plain &= size == 1;
                    self.has_letter = true;
                }
                Class::Digit => plain &= size == 1,
                Class::Apostrophe => plain = false,
                Class::Connector => (start, plain) = (end, true),
                Class::Cjk => {
                    self.end_compound(emit);
                    (start, plain) = (end, true);
                    match Class::at(text, end) {
                        (Class::Cjk, next) => emit(text[at..end + next].into(), Form::Part),
                        _ if before != Class::Cjk => emit(text[at..end].into(), Form::Part),
                        _ => {}
                    }
                }
                Class::Break => {
                    self.end_compound(emit);
                    return end;
                }
            }
            if class != Class::Apostrophe {
                before = class;
            }
            at = end;
        }
    }

    fn end_part(
        &mut self,
        text: &str,
        part: Range<usize>,
        plain: bool,
        emit: &mut impl FnMut(Word<'_>, Form),
    ) {
        if part.is_empty() {
            return;
        }
        let short = Short::within(text.as_bytes(), part.clone());
        let part = &text[part];
        if let Some(word) = short.filter(|_| plain) {
            emit(Word::Short(word.lowered()), Form::Part);
            self.joined.push_str(part);
        } else {
            lower(&part[..part.floor_char_boundary(WORD_BYTES_MAX)], &mut self.plain);
            if self.plain.is_empty() {
                return;
            }
            emit(self.plain.as_str().into(), Form::Part);
            self.joined.push_str(&self.plain);
        }
        self.parts += 1;
    }

    fn end_compound(&mut self, emit: &mut impl FnMut(Word<'_>, Form)) {
        if self.parts > 1 && self.has_letter && self.joined.len() <= WORD_BYTES_MAX {
            self.joined.make_ascii_lowercase();
            emit(self.joined.as_str().into(), Form::Joined);
        }
        self.joined.clear();
        self.parts = 0;
        self.has_letter = false;
    }
}

/// Writes a part in lowercase, without its apostrophes, into `plain`.
fn lower(part: &str, plain: &mut String) {
    plain.clear();
    let letters = part.chars().filter(|&character| !is_apostrophe(character));
    plain.extend(letters.flat_map(char::to_lowercase));
}

/// Returns the word at a position of `text` and its length, if it is of the most common kind: a few
/// ASCII letters, lowercase after the first, that end with the text, at a break, or at the end of a
/// sentence.
#[inline(always)]
fn plain_word(text: &[u8], at: usize) -> Option<(Short, usize)> {
    let (word, length) = Short::of_letters_at(text, at)?;
    let ends = match text[at + length..] {
        [] | [b'.'] => true,
        [b'.', next, ..] | [next, ..] => is_break(next),
    };
    (ends && length > 0).then_some((word, length))
}

fn is_break(byte: u8) -> bool {
    byte.is_ascii() && ASCII[byte as usize] == Class::Break
}

/// The classes of the ASCII characters, which make up most text.
const ASCII: [Class; 128] = {
    let mut classes = [Class::Break; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = Class::of_ascii(byte as u8);
        byte += 1;
    }
    classes
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Digit,
    Cjk,
    Connector,
    Apostrophe,
    Break,
}

impl Class {
    /// Returns the class of the character at a byte, and its length; the end of the text is a
    /// break.
    #[inline(always)]
    fn at(text: &str, at: usize) -> (Class, usize) {
        match text.as_bytes().get(at) {
            Some(&byte) if byte.is_ascii() => (ASCII[byte as usize], 1),
            Some(_) => Class::at_wide(&text[at..]),
            None => (Class::Break, 0),
        }
    }

    #[inline(never)]
    fn at_wide(text: &str) -> (Class, usize) {
        let first = text.chars().next();
        first.map_or((Class::Break, 0), |character| (Class::of(character), character.len_utf8()))
    }

    const fn of_ascii(byte: u8) -> Class {
        match byte {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b'_' | b'-' | b'.' => Class::Connector,
            b'\'' => Class::Apostrophe,
            _ => Class::Break,
        }
    }

    fn of(character: char) -> Class {
        match character {
            _ if is_apostrophe(character) => Class::Apostrophe,
            // Kana, unified ideographs (with extensions), Hangul syllables.
            '\u{3005}'
            | '\u{3041}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}' => Class::Cjk,
            _ if character.is_numeric() => Class::Digit,
            _ if character.is_uppercase() => Class::Upper,
            _ if character.is_alphabetic() => Class::Lower,
            _ => Class::Break,
        }
    }

    fn is_word(self) -> bool {
        matches!(self, Class::Upper | Class::Lower | Class::Digit)
    }

    /// Reports whether a part continues from a character of this class to the next: not in
    /// `getUser` before the `U`, nor in `base64` before the `6`.
    fn goes_on(self, next: Class) -> bool {
        match (self, next) {
            (Class::Lower | Class::Upper, Class::Lower) => true,
            (Class::Upper, Class::Upper) | (Class::Digit, Class::Digit) => true,
            (_, Class::Apostrophe) => true,
            _ => !self.is_word(),
        }
    }
}

/// Reports whether a capital that ends at `end` is the first letter of a word, like the `S` in
/// `HTTPServer`.
fn begins_word(text: &str, end: usize) -> bool {
    Class::at(text, end).0 == Class::Lower
}

fn is_apostrophe(character: char) -> bool {
    matches!(character, '\'' | '\u{2019}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::word::Room;

    fn marked(word: Word<'_>, form: Form) -> String {
        let mark = if form == Form::Joined { "=" } else { "" };
        format!("{mark}{}", word.text(&mut Room::default()))
    }

    fn split(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Splitter::default().split(text, |word, form| found.push(marked(word, form)));
        found
    }

    fn split_as_compounds(text: &str) -> Vec<String> {
        let (mut splitter, mut found, mut at) = (Splitter::default(), Vec::new(), 0);
        while at < text.len() {
            let mut emit = |word: Word<'_>, form| found.push(marked(word, form));
            at = splitter.split_compound(text, at, &mut emit);
        }
        found
    }

    #[test]
    fn words_are_split_in_prose_and_in_identifiers() {
        for (text, words) in [
            ("get_user-name.v2", "get user name v 2 =getusernamev2"),
            ("getHTTPServer", "get http server =gethttpserver"),
            ("github:issues/list", "github issues list"),
            ("Don't panic. It’s base64!", "dont panic its base 64 =base64"),
            ("The end. Now or-- never.", "the end now or never"),
            ("internationalisation I18n é.x", "internationalisation i 18 n =i18n é x =éx"),
            ("2024-01-31", "2024 01 31"),
            ("查询票 票", "查询 询票 票"),
            ("pdf文件2", "pdf 文件 2"),
            ("Äpfel ÉCOLE", "äpfel école"),
            ("'' __ .-", ""),
            ("a\0b\u{202e}c", "a b c"),
        ] {
            assert_eq!(split(text).join(" "), words, "{text}");
        }
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(split(&"x".repeat(1000)), ["x".repeat(WORD_BYTES_MAX)]);
    }

    proptest! {
        #[test]
        fn the_fast_path_for_plain_words_gives_the_same_result(
            text in "([a-z]{0,18}|[A-Z]{0,2}|[0-9._' -]|[é’票({`|~@]){0,24}",
        ) {
            prop_assert_eq!(split(&text), split_as_compounds(&text));
        }
    }
}
