//! A query prepared for one index: the terms that match each of its words and their weights, and
//! the highest score that any tool could reach.

use super::index::Index;
use super::query::{Query, Word};
use super::splitter::Form;
use text::near;

/// Shorter words are prefixes of too many others by chance. In bytes: one Chinese character may
/// begin pairs, see `has_kin`.
const PREFIX_BYTES_MIN: usize = 4;

/// The weights of a term that begins with the word ("calculator" for "calc") and of a term that the
/// word begins with ("finance" for "financial"); both are multiplied by the share in common.
const LONGER_WEIGHT: f32 = 0.6;
const SHORTER_WEIGHT: f32 = 0.5;

/// The weight of a term that differs from the word by one letter, used only if no word of the query
/// is known.
const TYPO_WEIGHT: f32 = 0.5;

/// Words of a query that are compared with the whole vocabulary.
const TYPO_WORDS_MAX: usize = 8;

/// The shortest stem that is compared.
const TYPO_BYTES_MIN: usize = 5;

/// Terms that may match one word; the nearest are used.
const KIN_MAX: usize = 8;

/// The impact assumed for a word that is unknown to the whole catalog, counted in the attainable
/// score: the best of several poor matches must not look like a good one.
const UNKNOWN_IMPACT: f32 = 0.5;

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The terms for all words, word by word.
    kin: Vec<Kin>,
    ends: Vec<usize>,
    /// The upper limit of every score.
    pub(super) attainable: f32,
}

/// A term that matches a word of the query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kin {
    pub(super) term: u32,
    pub(super) weight: f32,
}

impl Plan {
    pub(super) fn new(index: &Index, query: &Query) -> Plan {
        let plan = Plan::with(index, query, Plan::add_known);
        if plan.kin.is_empty() { Plan::with(index, query, Plan::add_typos) } else { plan }
    }

    fn with(index: &Index, query: &Query, find: fn(&mut Plan, &Index, &Word)) -> Plan {
        let mut plan = Plan::default();
        for word in &query.words {
            plan.add(index, word, find);
        }
        plan
    }

    /// Returns the terms for each word of the query.
    pub(super) fn words(&self) -> impl Iterator<Item = &[Kin]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.kin[start..end])
    }

    fn add(&mut self, index: &Index, word: &Word, find: fn(&mut Plan, &Index, &Word)) {
        let start = self.kin.len();
        find(self, index, word);
        let found = &mut self.kin[start..];
        if found.len() > KIN_MAX {
            found.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.term.cmp(&b.term)));
            self.kin.truncate(start + KIN_MAX);
        }
        self.ends.push(self.kin.len());
        let reach = |kin: &Kin| kin.weight * index.peaks[kin.term as usize];
        let reachable = self.kin[start..].iter().map(reach).fold(0.0, f32::max);
        self.attainable += if reachable > 0.0 { reachable } else { unknown(index, word) };
    }

    fn add_known(&mut self, index: &Index, word: &Word) {
        if word.form == Form::Part && has_kin(&word.stem) {
            self.add_kin(index, word);
        } else {
            self.add_exact(index, word);
        }
    }

    /// Adds the terms that the word may be a misspelling of.
    fn add_typos(&mut self, index: &Index, word: &Word) {
        let is_compared = word.form == Form::Part && self.ends.len() < TYPO_WORDS_MAX;
        // One letter of a short word makes another word.
        if !is_compared || !has_kin(&word.stem) || word.stem.len() < TYPO_BYTES_MIN {
            return;
        }
        for term in 0..index.terms.len() as u32 {
            if near::differs_by_one(&word.stem, index.terms.get(term)) {
                self.kin.push(Kin { term, weight: TYPO_WEIGHT * word.weight });
            }
        }
    }

    fn add_exact(&mut self, index: &Index, word: &Word) {
        let term = index.terms.first_from(word.stem.as_bytes());
        if (term as usize) < index.terms.len() && index.terms.get(term) == word.stem {
            self.kin.push(Kin { term, weight: word.weight });
        }
    }

    /// Adds the terms that match a word. They all begin with its first bytes, so they are adjacent
    /// in the vocabulary.
    fn add_kin(&mut self, index: &Index, word: &Word) {
        let stem = word.stem.as_bytes();
        let head = &stem[..PREFIX_BYTES_MIN.min(stem.len())];
        for term in index.terms.first_from(head)..index.terms.len() as u32 {
            let other = index.terms.get(term).as_bytes();
            if !other.starts_with(head) {
                break;
            }
            let closeness = if other == stem {
                1.0
            } else if other.starts_with(stem) {
                LONGER_WEIGHT * stem.len() as f32 / other.len() as f32
            } else if stem.starts_with(other) {
                SHORTER_WEIGHT * other.len() as f32 / stem.len() as f32
            } else {
                continue;
            };
            self.kin.push(Kin { term, weight: word.weight * closeness });
        }
    }
}

/// Reports whether a stem can match by prefix. Numbers are prefixes of other numbers by chance; a
/// single character of a script without spaces is not.
fn has_kin(stem: &str) -> bool {
    let long = stem.len() >= PREFIX_BYTES_MIN || !stem.is_ascii();
    long && !stem.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns the amount by which a word that is not in the catalog lowers the score. Numbers in a
/// query are future arguments, and compounds are covered by their parts: they lower nothing.
fn unknown(index: &Index, word: &Word) -> f32 {
    let counts = word.form == Form::Part && !word.stem.bytes().all(|byte| byte.is_ascii_digit());
    if counts { word.weight * UNKNOWN_IMPACT * index.rarity_of(0) } else { 0.0 }
}
