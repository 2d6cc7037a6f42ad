//! A hash map for words. Most words are their own key, which saves following a pointer to their
//! letters.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use super::word::{Short, Word, eight_at};

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

    #[inline]
    pub(super) fn get(&self, word: Word<'_>) -> Option<V> {
        match word {
            Word::Short(short) => self.get_short(short),
            Word::Long(long) => self.long.get(long).copied(),
        }
    }

    /// Not inlined: it is called from many places, with its word in registers.
    #[inline(never)]
    fn get_short(&self, word: Short) -> Option<V> {
        self.short.get(&word).copied()
    }

    pub(super) fn insert(&mut self, word: Word<'_>, value: V) {
        match word {
            Word::Short(short) => self.short.insert(short, value),
            Word::Long(long) => self.long.insert(long.into(), value),
        };
    }
}

impl Hash for Short {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (low, high) = self.halves();
        state.write_u128(u128::from(low) | u128::from(high) << 64);
    }
}

/// Creates hashers for short words that are several times as fast as the standard ones. Seeded at
/// random like those, so that a server cannot choose words that collide.
#[derive(Clone)]
struct Seed(u64, u64);

struct Fold(u64, u64);

impl Default for Seed {
    fn default() -> Seed {
        let random = RandomState::new();
        Seed(random.hash_one(0_u64), random.hash_one(1_u64))
    }
}

impl BuildHasher for Seed {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold(self.0, self.1)
    }
}

impl Fold {
    /// Multiplies to 128 bits and folds the halves, so that every bit affects every other.
    fn mix(&mut self, low: u64, high: u64) {
        let product = u128::from(low ^ self.0) * u128::from(high ^ self.1);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for at in (0..bytes.len()).step_by(16) {
            self.mix(eight_at(bytes, at), eight_at(bytes, at + 8));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(value.into(), 0);
    }

    fn write_u128(&mut self, value: u128) {
        self.mix(value as u64, (value >> 64) as u64);
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
            assert_eq!(map.get(word.as_str().into()), None, "{word:?}");
            map.insert(word.as_str().into(), place);
        }
        let found = |word: &String| map.get(word.as_str().into());
        assert!(words.iter().enumerate().all(|(place, word)| found(word) == Some(place)));
        assert_eq!(map.len(), words.len());
    }
}
