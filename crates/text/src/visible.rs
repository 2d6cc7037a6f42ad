//! Characters that a person cannot see but a model reads: shown to reviewers by their code point.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Controls, format characters, line and paragraph separators, private use and everything that
/// Unicode calls default ignorable, in order, plus the blank Braille pattern. Line feed and tab are
/// not included.
const HIDDEN: [(char, char); 32] = [
    ('\0', '\u{8}'),
    ('\u{b}', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{e000}', '\u{f8ff}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
    ('\u{f0000}', '\u{ffffd}'),
    ('\u{100000}', '\u{10fffd}'),
];

/// Reports whether a character is displayed by its code point: a person cannot see it, or it changes
/// how the text around it is displayed.
pub fn is_hidden(character: char) -> bool {
    if (' '..='~').contains(&character) {
        return false;
    }
    let after = HIDDEN.partition_point(|(first, _)| *first <= character);
    after > 0 && character <= HIDDEN[after - 1].1
}

/// Returns a reviewer's view of a text, with each hidden character as `⟨U+200B⟩`.
pub fn visible(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_hidden) else {
        return Cow::Borrowed(text);
    };
    let mut shown = text[..first].to_owned();
    for character in text[first..].chars() {
        if is_hidden(character) {
            write!(shown, "⟨U+{:04X}⟩", u32::from(character))
                .expect("writing to a string cannot fail");
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Counts the hidden characters of a text that ordinary writing does not need.
pub fn hidden_characters(text: &str) -> usize {
    hidden_places(text).count()
}

/// Returns the positions of those characters.
pub fn hidden_places(text: &str) -> impl Iterator<Item = usize> {
    let mut before = None;
    text.char_indices().filter_map(move |(at, character)| {
        let after = || text[at + character.len_utf8()..].chars().next();
        let counts = is_hidden(character) && !is_ordinary(before, character, after());
        before = Some(character);
        counts.then_some(at)
    })
}

/// Reports whether a hidden character is one that editors and keyboards insert automatically: a
/// two-character line end, emoji in colour or joined into one, joiners in scripts that use them.
fn is_ordinary(before: Option<char>, character: char, after: Option<char>) -> bool {
    let both = |is: fn(char) -> bool| before.is_some_and(is) && after.is_some_and(is);
    match character {
        '\r' => after == Some('\n'),
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(is_pictograph),
        '\u{200d}' => both(is_joined_script) || both(|c| is_pictograph(c) || c == '\u{fe0f}'),
        '\u{200c}' => both(is_joined_script),
        _ => false,
    }
}

fn is_pictograph(character: char) -> bool {
    matches!(character,
        '#' | '*' | '0'..='9' | '©' | '®' | '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
        && !is_hidden(character)
}

/// Reports whether a character is in a script from Arabic to Myanmar, which includes Persian and
/// the scripts of India.
fn is_joined_script(character: char) -> bool {
    ('\u{600}'..='\u{109f}').contains(&character) && !is_hidden(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    #[test]
    fn the_ranges_are_what_unicode_says() {
        let classes =
            r"[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}--\n\t]";
        let expected = Regex::new(classes).unwrap();
        let mut buffer = [0; 4];
        let wrong: Vec<u32> = (char::MIN..=char::MAX)
            .filter(|c| expected.is_match(c.encode_utf8(&mut buffer)) != is_hidden(*c))
            .map(u32::from)
            .collect();
        assert!(wrong.is_empty(), "{wrong:x?}");
    }

    #[test]
    fn hidden_characters_are_shown_by_their_number() {
        for (text, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("Größe 日本語 🙂", "Größe 日本語 🙂"),
            ("a\u{200b}b", "a⟨U+200B⟩b"),
            ("\u{1b}[31m", "⟨U+001B⟩[31m"),
            ("\u{202e}x\u{2066}", "⟨U+202E⟩x⟨U+2066⟩"),
            ("so\u{ad}ft", "so⟨U+00AD⟩ft"),
            ("\u{e0049}\u{e007f}", "⟨U+E0049⟩⟨U+E007F⟩"),
            ("\u{e041}\u{f0041}", "⟨U+E041⟩⟨U+F0041⟩"),
            ("\u{fe0f}\u{e0100}", "⟨U+FE0F⟩⟨U+E0100⟩"),
            ("a\r\n", "a⟨U+000D⟩\n"),
        ] {
            assert_eq!(visible(text), shown);
            assert_eq!(matches!(visible(text), Cow::Borrowed(_)), text == shown);
        }
    }

    #[test]
    fn legitimate_joiners_and_selectors_are_not_counted() {
        for (text, count) in [
            ("plain\ttext\n", 0),
            ("two\r\nlines\r\n", 0),
            ("\u{26a0}\u{fe0f} careful 1\u{fe0f}\u{20e3}", 0),
            ("\u{1f469}\u{200d}\u{1f4bb} \u{1f3f3}\u{fe0f}\u{200d}\u{1f308}", 0),
            ("\u{645}\u{6cc}\u{200c}\u{62e}", 0),
            ("a\u{200d}b", 1),
            ("a\rb", 1),
            ("\u{26a0}\u{fe0f}\u{fe0f}", 1),
            ("a\u{fe0f}", 1),
            ("\u{feff}a\u{200b}\u{2060}", 3),
        ] {
            assert_eq!(hidden_characters(text), count, "{}", visible(text));
        }
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in "[a-z\n\t\\x00-\\x1f\u{ad}\u{200b}-\u{202e}😀\u{fe0f}\u{e0020}]{0,40}|\\PC{0,40}") {
            let shown = visible(&text);
            prop_assert!(!shown.chars().any(is_hidden), "{shown:?}");
            prop_assert_eq!(visible(&shown), shown.as_ref());
            prop_assert!(hidden_characters(&text) <= text.chars().filter(|c| is_hidden(*c)).count());
        }
    }
}
