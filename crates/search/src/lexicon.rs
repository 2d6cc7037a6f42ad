//! Caches the stem of each word. Servers use the same vocabulary, so the cache is kept between
//! segments and each word is stemmed once for the whole catalog. It is cleared when it grows too
//! large.

use super::terms::Terms;
use super::word::{Room, Word};
use super::word_map::WordMap;
use super::words;

/// Words kept for the next segment: those of ten thousand tools, about two megabytes.
const WORDS_KEPT_MAX: usize = 16 * 1024;

#[derive(Default)]
pub(super) struct Lexicon {
    words: WordMap<Stem>,
    numbers: WordMap<Stem>,
    stems: Terms,
}

/// The number of a stem in this lexicon; words without meaning have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stem(u32);

impl Stem {
    pub(super) const NONE: Stem = Stem(u32::MAX);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Lexicon {
    pub(super) fn is_large(&self) -> bool {
        self.words.len() > WORDS_KEPT_MAX
    }

    /// Returns the number of stems so far.
    pub(super) fn len(&self) -> usize {
        self.stems.len()
    }

    #[inline]
    pub(super) fn look_up(&mut self, word: Word<'_>) -> Stem {
        self.words.get(word).unwrap_or_else(|| self.meet(word))
    }

    #[cold]
    fn meet(&mut self, word: Word<'_>) -> Stem {
        let mut room = Room::default();
        let stem = match word.text(&mut room) {
            text if words::is_stop(text) => Stem::NONE,
            text => self.number(words::stem(text).as_ref().into()),
        };
        self.words.insert(word, stem);
        stem
    }

    /// Returns the number of a stem.
    pub(super) fn number(&mut self, stem: Word<'_>) -> Stem {
        self.numbers.get(stem).unwrap_or_else(|| {
            let number = Stem(self.stems.push(stem.text(&mut Room::default())));
            self.numbers.insert(stem, number);
            number
        })
    }

    pub(super) fn text(&self, stem: Stem) -> &str {
        self.stems.get(stem.0)
    }
}
