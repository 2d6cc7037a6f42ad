//! Remembers which stem a word has. Servers speak of the same things: kept from one segment to the
//! next, a word is stemmed once for the whole catalog. Forgotten when it has grown too large.

use super::terms::Terms;
use super::word_map::WordMap;
use super::words;

/// Words kept for the next segment: those of ten thousand tools, about two megabytes.
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
    words: WordMap<Known>,
    numbers: WordMap<u32>,
    stems: Terms,
    /// The latest segment in which each stem occurred, and its term there.
    latest: Vec<(u32, u32)>,
    /// The number of the segment that is being built.
    segment: u32,
}

impl Lexicon {
    /// From now on terms are those of a new segment.
    pub(super) fn begin_segment(&mut self) {
        if self.words.len() > WORDS_KEPT_MAX || self.segment == u32::MAX {
            *self = Lexicon::default();
        }
        self.segment += 1;
    }

    pub(super) fn look_up(&mut self, word: &str) -> Known {
        self.words.get(word).unwrap_or_else(|| self.meet(word))
    }

    #[cold]
    fn meet(&mut self, word: &str) -> Known {
        let stop = words::is_stop(word);
        let known = if stop { Known::Stop } else { Known::Stem(self.number(&words::stem(word))) };
        self.words.insert(word, known);
        known
    }

    /// The number of a stem.
    pub(super) fn number(&mut self, stem: &str) -> u32 {
        if let Some(number) = self.numbers.get(stem) {
            return number;
        }
        let number = self.stems.push(stem);
        self.numbers.insert(stem, number);
        self.latest.push((0, 0));
        number
    }

    /// The term of a stem in the segment at hand, which `terms` collects.
    pub(super) fn term(&mut self, number: u32, terms: &mut Terms) -> u32 {
        let (segment, term) = &mut self.latest[number as usize];
        if *segment != self.segment {
            *segment = self.segment;
            *term = terms.push(self.stems.get(number));
        }
        *term
    }
}
