//! Text normalized for comparison: lowercase, single spaces, no hidden characters, no emphasis.
//! Matches can be traced back to the original text for quoting.

use std::ops::Range;

use crate::trust::visible::is_hidden;

pub(super) struct Plain {
    pub(super) text: String,
    /// For each byte, the position of its source character in the original.
    at: Vec<usize>,
    original_bytes: usize,
}

impl Plain {
    /// Normalizes a text, with hidden characters removed.
    pub(super) fn of(text: &str) -> Plain {
        Plain::made(text, None)
    }

    /// Returns all ways in which a model may read the text: a hidden character may stand inside a
    /// word or between two.
    pub(super) fn readings(text: &str) -> impl Iterator<Item = Plain> {
        let parted = text.contains(is_hidden).then(|| Plain::made(text, Some(' ')));
        [Plain::of(text)].into_iter().chain(parted)
    }

    /// Returns the range of the original that the bytes in `span` come from.
    pub(super) fn original(&self, span: Range<usize>) -> Range<usize> {
        let place = |at: usize| self.at.get(at).copied().unwrap_or(self.original_bytes);
        place(span.start)..place(span.end)
    }

    fn made(text: &str, for_hidden: Option<char>) -> Plain {
        let mut plain = Plain {
            text: String::with_capacity(text.len()),
            at: Vec::with_capacity(text.len()),
            original_bytes: text.len(),
        };
        for (at, character) in text.char_indices() {
            let character = match character {
                '\n' | '\t' | '\r' => Some(' '),
                c if is_hidden(c) => for_hidden,
                // Markdown emphasis and code marks.
                '*' | '`' => None,
                '’' | '‘' => Some('\''),
                c if c.is_whitespace() => Some(' '),
                c => Some(narrow(c)),
            };
            match character {
                Some(' ') if plain.text.ends_with(' ') => {}
                Some(character) => character.to_lowercase().for_each(|c| plain.push(c, at)),
                None => {}
            }
        }
        plain
    }

    fn push(&mut self, character: char, at: usize) {
        self.text.push(character);
        self.at.resize(self.text.len(), at);
    }
}

/// Converts full-width letters to ASCII; they read the same.
fn narrow(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => {
            char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character)
        }
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spelling_and_what_is_hidden_do_not_count() {
        for (text, plain) in [
            ("Ignore\r\n  PREVIOUS\u{a0}\tinstructions", "ignore previous instructions"),
            ("ig\u{200b}nore\u{ad}", "ignore"),
            ("**Do** not `tell`", "do not tell"),
            ("don’t", "don't"),
            ("ｉｇｎｏｒｅ　all", "ignore all"),
        ] {
            assert_eq!(Plain::of(text).text, plain);
        }
        let readings: Vec<String> = Plain::readings("a\u{200b}b").map(|plain| plain.text).collect();
        assert_eq!(readings, ["ab", "a b"]);
        assert_eq!(Plain::readings("ab").count(), 1);
    }

    proptest! {
        #[test]
        fn every_span_can_be_quoted(text in "[aİß \u{200b}ｉ😀\n*]{0,20}|\\PC{0,20}") {
            for plain in Plain::readings(&text) {
                let ends: Vec<usize> =
                    plain.text.char_indices().map(|(at, _)| at).chain([plain.text.len()]).collect();
                for (from, start) in ends.iter().enumerate() {
                    for end in &ends[from..] {
                        prop_assert!(text.get(plain.original(*start..*end)).is_some());
                    }
                }
            }
        }
    }
}
