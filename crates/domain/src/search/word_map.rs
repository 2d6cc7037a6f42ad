//! A hash map for words. Most words fit into their key, which spares a walk to their letters.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

pub(super) struct WordMap<V> {
    short: HashMap<Short, V, Seed>,
    long: HashMap<Box<str>, V, Seed>,
}

impl<V> Default for WordMap<V> {
    fn default() -> WordMap<V> {
        WordMap { short: HashMap::default(), long: HashMap::default() }
    }
}

impl<V: Copy> WordMap<V> {
    pub(super) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    pub(super) fn get(&self, word: &str) -> Option<V> {
        match Short::new(word) {
            Some(short) => self.short.get(&short).copied(),
            None => self.long.get(word).copied(),
        }
    }

    pub(super) fn insert(&mut self, word: &str, value: V) {
        match Short::new(word) {
            Some(short) => self.short.insert(short, value),
            None => self.long.insert(word.into(), value),
        };
    }
}

/// A word of at most fifteen bytes, and in the highest byte its length.
#[derive(PartialEq, Eq)]
struct Short(u64, u64);

impl Short {
    fn new(word: &str) -> Option<Short> {
        let bytes = word.as_bytes();
        let length = bytes.len() as u64;
        match (bytes.first_chunk(), bytes.last_chunk()) {
            _ if length > 15 => None,
            // The last eight bytes without those that are among the first.
            (Some(first), Some(last)) => {
                let last = u64::from_le_bytes(*last).checked_shr(8 * (16 - length as u32));
                Some(Short(u64::from_le_bytes(*first), last.unwrap_or(0) | length << 56))
            }
            _ => Some(Short(packed(bytes), length << 56)),
        }
    }
}

impl Hash for Short {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
        state.write_u64(self.1);
    }
}

/// Up to seven bytes as one number, with few branches: ends that may overlap, or all three.
fn packed(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        _ => match *bytes {
            [] => 0,
            [a] => u64::from(a),
            [a, ref middle @ .., z] => {
                let middle = middle.first().map_or(0, |&byte| u64::from(byte));
                u64::from(a) | middle << 8 | u64::from(z) << 16
            }
        },
    }
}

/// Makes hashers for short words, several times as fast as the standard ones. Seeded at random, as
/// those are, so that a server cannot choose words that collide.
#[derive(Clone)]
struct Seed(u64);

struct Fold(u64);

impl Default for Seed {
    fn default() -> Seed {
        Seed(RandomState::new().hash_one(0_u64))
    }
}

impl BuildHasher for Seed {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold(self.0)
    }
}

impl Fold {
    /// Multiplies to 128 bits and folds the halves: every bit of the word reaches every other.
    fn mix(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        for chunk in chunks {
            self.mix(u64::from_le_bytes(*chunk));
        }
        self.mix(packed(rest));
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_anywhere_are_told_apart() {
        let letters = "abcdefghijklmnopqrst";
        let mut words: Vec<String> = Vec::new();
        for length in 0..=letters.len() {
            let word = &letters[..length];
            words.push(word.to_owned());
            words.push(format!("{word}\0"));
            words.extend((0..length).map(|at| format!("{}z{}", &word[..at], &word[at + 1..])));
        }
        let mut map = WordMap::default();
        for (place, word) in words.iter().enumerate() {
            assert_eq!(map.get(word), None, "{word:?}");
            map.insert(word, place);
        }
        assert!(words.iter().enumerate().all(|(place, word)| map.get(word) == Some(place)));
        assert_eq!(map.len(), words.len());
    }
}
