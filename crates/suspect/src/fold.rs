//! Characters that read like a Latin letter: the same letter in another style, and letters of other
//! scripts that look alike.

use std::sync::LazyLock;

/// Returns the plain letter for a letter in another style: with an accent, full-width, circled, or
/// mathematical. Lowercase letters stay lowercase.
pub(super) fn plain_letter(character: char) -> char {
    match character {
        ..'\u{80}' | '\u{2e80}'..'\u{ff01}' => character,
        '\u{ff01}'..='\u{ff5e}' => offset(character, 0xff01, '!'),
        '\u{24b6}'..='\u{24cf}' => offset(character, 0x24b6, 'a'),
        '\u{24d0}'..='\u{24e9}' => offset(character, 0x24d0, 'a'),
        '\u{1f130}'..='\u{1f149}' => offset(character, 0x1f130, 'a'),
        '\u{1f150}'..='\u{1f169}' => offset(character, 0x1f150, 'a'),
        '\u{1f170}'..='\u{1f189}' => offset(character, 0x1f170, 'a'),
        '\u{1d400}'..='\u{1d6a3}' => {
            let letter = (u32::from(character) - 0x1d400) % 26;
            offset_by(letter, 'a')
        }
        '\u{1d7ce}'..='\u{1d7ff}' => offset_by((u32::from(character) - 0x1d7ce) % 10, '0'),
        _ => PLAIN_LETTERS.letter(character),
    }
}

/// Returns the Latin letter that a letter of another script, a small capital or a digit inside a
/// word looks like.
pub(super) fn lookalike(character: char) -> char {
    let may_stand = matches!(character, '0' | '1' | '3' | '4' | '5' | '7' | '@' | '!' | '$');
    if character.is_ascii() && !may_stand {
        return character;
    }
    LATIN_LETTERS.letter(character)
}

/// Letters by the characters that are read as them, in the order of these: every character of a
/// text is looked up.
struct LetterTable(Vec<(char, char)>);

static PLAIN_LETTERS: LazyLock<LetterTable> =
    LazyLock::new(|| LetterTable::read(include_str!("fold/accented.txt")));
static LATIN_LETTERS: LazyLock<LetterTable> =
    LazyLock::new(|| LetterTable::read(include_str!("fold/lookalikes.txt")));

impl LetterTable {
    /// Reads lines of a letter, a blank and the characters that are read as it.
    fn read(file: &str) -> LetterTable {
        let mut pairs = Vec::new();
        for line in file.lines().filter(|line| !line.starts_with('#')) {
            let mut characters = line.chars();
            let Some(letter) = characters.next() else { continue };
            pairs.extend(characters.filter(|other| *other != ' ').map(|other| (other, letter)));
        }
        pairs.sort_unstable();
        LetterTable(pairs)
    }

    /// Returns the letter that a character is read as, or the character itself.
    fn letter(&self, character: char) -> char {
        let found = self.0.binary_search_by_key(&character, |(other, _)| *other);
        found.map_or(character, |at| self.0[at].1)
    }
}

/// Reports whether a character is a combining accent.
pub(super) fn is_accent(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}' | '\u{20d0}'..='\u{20ff}')
}

fn offset(character: char, first: u32, plain: char) -> char {
    offset_by(u32::from(character) - first, plain)
}

fn offset_by(distance: u32, plain: char) -> char {
    char::from_u32(u32::from(plain) + distance).unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_in_other_styles_read_the_same() {
        let plain = |text: &str| text.chars().map(plain_letter).collect::<String>();
        assert_eq!(plain("ïgnôrè"), "ignore");
        assert_eq!(plain("ｉｇｎｏｒｅ"), "ignore");
        assert_eq!(plain("𝐢𝐠𝐧𝐨𝐫𝐞 𝒾𝓰𝓷𝓸𝓻𝓮"), "ignore ignore");
        assert_eq!(plain("ⓘⓖⓝⓞⓡⓔ 🅘🅖🅝"), "ignore ign");
        assert_eq!(plain("日本語 игнор"), "日本語 игнор");
    }

    #[test]
    fn no_character_stands_for_two_letters() {
        for table in [&*PLAIN_LETTERS, &*LATIN_LETTERS] {
            let doubled = table.0.windows(2).find(|pair| pair[0].0 == pair[1].0);
            assert_eq!(doubled, None);
        }
    }

    #[test]
    fn other_scripts_look_alike() {
        let alike = |text: &str| text.chars().map(lookalike).collect::<String>();
        assert_eq!(alike("іgnоrе"), "ignore");
        assert_eq!(alike("1gn0r3"), "ignore");
        assert_eq!(alike("ɪɢɴᴏʀᴇ"), "ignore");
    }
}
