//! Remembers which stem a word has. Servers speak of the same things: kept from one segment to the
//! next, a word is stemmed once for the whole catalog. Forgotten when it has grown too large.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use super::segment::Terms;
use super::words;

/// Words kept for the next segment: more than real catalogs hold, about two megabytes.
const WORDS_KEPT_MAX: usize = 16 * 1024;

/// What is known of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Stop,
    /// The number of its stem in this lexicon.
    Stem(u32),
}

#[derive(Default)]
pub(super) struct Lexicon {
    /// Most words fit into their key, which spares a walk to their letters.
    short: HashMap<Short, Known, Seed>,
    long: HashMap<Box<str>, Known, Seed>,
    numbers: HashMap<Box<str>, u32, Seed>,
    stems: Vec<Stem>,
    /// The number of the segment that is being built.
    segment: u32,
}

struct Stem {
    text: Box<str>,
    /// Its term in the segment of this number.
    segment: u32,
    term: u32,
}

impl Lexicon {
    /// From now on terms are those of a new segment.
    pub(super) fn begin_segment(&mut self) {
        let words = self.short.len() + self.long.len();
        if words > WORDS_KEPT_MAX || self.segment == u32::MAX {
            *self = Lexicon::default();
        }
        self.segment += 1;
    }

    pub(super) fn look_up(&mut self, word: &str) -> Known {
        let short = Short::new(word);
        let known = match &short {
            Some(short) => self.short.get(short),
            None => self.long.get(word),
        };
        if let Some(&known) = known {
            return known;
        }
        let known = self.meet(word);
        match short {
            Some(short) => self.short.insert(short, known),
            None => self.long.insert(word.into(), known),
        };
        known
    }

    fn meet(&mut self, word: &str) -> Known {
        if words::is_stop(word) {
            return Known::Stop;
        }
        Known::Stem(self.number(&words::stem(word)))
    }

    /// The number of a stem.
    pub(super) fn number(&mut self, stem: &str) -> u32 {
        if let Some(&number) = self.numbers.get(stem) {
            return number;
        }
        let number = self.stems.len() as u32;
        self.numbers.insert(stem.into(), number);
        self.stems.push(Stem { text: stem.into(), segment: 0, term: 0 });
        number
    }

    /// The term of a stem in the segment at hand, which `terms` collects.
    pub(super) fn term(&mut self, number: u32, terms: &mut Terms) -> u32 {
        let stem = &mut self.stems[number as usize];
        if stem.segment != self.segment {
            stem.segment = self.segment;
            stem.term = terms.push(&stem.text);
        }
        stem.term
    }
}

/// A word of at most sixteen bytes: its first and last eight, which may overlap, and its length.
#[derive(PartialEq, Eq)]
struct Short {
    first: u64,
    last: u64,
    length: u8,
}

impl Short {
    fn new(word: &str) -> Option<Short> {
        let bytes = word.as_bytes();
        let length = u8::try_from(bytes.len()).ok().filter(|&length| length <= 16)?;
        let (first, last) = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => (packed(bytes), 0),
        };
        Some(Short { first, last, length })
    }
}

impl Hash for Short {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.first);
        state.write_u64(self.last ^ u64::from(self.length));
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
pub(super) struct Seed(u64);

pub(super) struct Fold(u64);

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
