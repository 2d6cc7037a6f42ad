//! A single word. Most fit into sixteen bytes with their length, and are compared and hashed as a
//! number.

use std::ops::Range;

/// A lowercase word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    Short(Short),
    /// A word that does not fit.
    Long(&'a str),
}

/// A word of at most fifteen bytes, the first one lowest, with its length in the highest byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short(u64, u64);

/// A buffer for the text of a short word.
pub(super) type Room = [u8; 16];

impl<'a> Word<'a> {
    /// Returns the word in a part of a text.
    pub(super) fn within(text: &'a str, part: Range<usize>) -> Word<'a> {
        match Short::within(text.as_bytes(), part.clone()) {
            Some(short) => Word::Short(short),
            None => Word::Long(&text[part]),
        }
    }

    pub(super) fn text<'b>(&'b self, room: &'b mut Room) -> &'b str {
        match self {
            Word::Short(short) => short.text(room),
            Word::Long(text) => text,
        }
    }
}

impl<'a> From<&'a str> for Word<'a> {
    fn from(word: &'a str) -> Word<'a> {
        Word::within(word, 0..word.len())
    }
}

impl Short {
    const BYTES_MAX: usize = 15;

    /// Returns the word in a part of a text that consists of whole characters, unless it is too
    /// long.
    #[inline(always)]
    pub(super) fn within(text: &[u8], part: Range<usize>) -> Option<Short> {
        let length = part.len();
        if length > Short::BYTES_MAX {
            return None;
        }
        let low = eight_at(text, part.start);
        Some(if length < 8 {
            Short::new(first(length, low), 0, length)
        } else {
            Short::new(low, first(length - 8, eight_at(text, part.start + 8)), length)
        })
    }

    /// Returns the word, in lowercase, that begins at a position with a letter and continues with
    /// lowercase ones, and its length, unless it is too long.
    #[inline(always)]
    pub(super) fn of_letters_at(text: &[u8], at: usize) -> Option<(Short, usize)> {
        // Uppercase letters become lowercase, and nothing else becomes a letter.
        let low = eight_at(text, at) | 0x20;
        let length = small_letters(low);
        if length < 8 {
            return Some((Short::new(first(length, low), 0, length), length));
        }
        let high = eight_at(text, at + 8);
        let more = small_letters(high);
        (more < 8).then(|| (Short::new(low, first(more, high), 8 + more), 8 + more))
    }

    fn new(low: u64, high: u64, length: usize) -> Short {
        Short(low, high | (length as u64) << 56)
    }

    /// Returns the same word with ASCII letters in lowercase.
    pub(super) fn lowered(self) -> Short {
        Short(lowered(self.0), lowered(self.1))
    }

    pub(super) fn halves(self) -> (u64, u64) {
        (self.0, self.1)
    }

    fn text(self, room: &mut Room) -> &str {
        *room = (u128::from(self.0) | u128::from(self.1) << 64).to_le_bytes();
        let word = &room[..usize::from(room[Short::BYTES_MAX])];
        std::str::from_utf8(word).expect("words are cut at character boundaries")
    }
}

/// Keeps the first `count` of these bytes; `count` is less than eight.
fn first(count: usize, eight: u64) -> u64 {
    eight & ((1 << (8 * count)) - 1)
}

/// Returns the bytes of a text from a position on as a number, the first one lowest, with zeros
/// beyond its end.
#[inline(always)]
pub(super) fn eight_at(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    match (rest.first_chunk(), text.last_chunk()) {
        (Some(eight), _) => u64::from_le_bytes(*eight),
        (None, Some(last)) if !rest.is_empty() => {
            u64::from_le_bytes(*last) >> (8 * (8 - rest.len()))
        }
        (None, _) => up_to_seven(rest),
    }
}

/// Reads up to seven bytes as a number, from both ends, which may overlap. Copying them into an
/// eight-byte buffer is slower: a value just written in pieces is slow to read as a whole.
fn up_to_seven(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
            u64::from(first) | u64::from(last) << (8 * (bytes.len() - 4))
        }
        _ => bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// Sets the highest bit of each byte that lies between two letters, inclusive.
#[inline(always)]
fn between(bytes: u64, first: u8, last: u8) -> u64 {
    // The first addition sets that bit from the first letter on, the second beyond the last one.
    let low = bytes & (0x7f * ONES);
    let from_first = low + u64::from(0x80 - first) * ONES;
    let beyond_last = low + u64::from(0x7f - last) * ONES;
    from_first & !beyond_last & !bytes & (0x80 * ONES)
}

/// Returns how many of the eight bytes, from the first on, are lowercase ASCII letters.
#[inline(always)]
pub(super) fn small_letters(eight: u64) -> usize {
    let others = !between(eight, b'a', b'z') & (0x80 * ONES);
    others.trailing_zeros() as usize / 8
}

fn lowered(eight: u64) -> u64 {
    eight | between(eight, b'A', b'Z') >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_its_text() {
        for word in ["", "a", "get", "fifteen_letters", "sixteen__letters", "é票", "a\0"] {
            assert_eq!(Word::from(word).text(&mut Room::default()), word);
            for (before, after) in
                [("", " and what follows it"), ("what comes before ", ""), ("a", "b")]
            {
                let text = format!("{before}{word}{after}");
                let part = before.len()..before.len() + word.len();
                assert_eq!(Word::within(&text, part), Word::from(word), "{text}");
            }
        }
    }

    #[test]
    fn lowercase_letters_are_recognized_at_every_position() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let mut bytes = [b'm'; 8];
                bytes[place] = byte;
                let (eight, small) = (u64::from_le_bytes(bytes), byte.is_ascii_lowercase());
                assert_eq!(small_letters(eight), if small { 8 } else { place }, "{byte}");
                assert_eq!(lowered(eight).to_le_bytes()[place], byte.to_ascii_lowercase());
            }
        }
    }
}
