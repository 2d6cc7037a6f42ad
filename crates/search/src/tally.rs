//! Sums the score of each query word for each tool and picks the best. The working memory is per
//! thread and reused: a query touches only the tools that it matches.

use std::cell::Cell;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::index::Index;
use super::plan::Plan;
use super::segment::Posting;
use super::similarity::Similarities;
use super::{Evidence, SIMILARITY_MIN};

/// A tool and its score for the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) tool: u32,
    pub(super) score: f32,
}

/// Returns the best `limit` tools that `keep` allows, in no particular order.
pub(super) fn best(
    index: &Index,
    plan: &Plan,
    limit: usize,
    keep: impl Fn(u32) -> bool,
) -> Vec<Candidate> {
    // Taken, not borrowed: a `keep` that searches gets an empty tally instead of a panic.
    let mut tally = TALLY.take();
    tally.add_up(index, plan);
    let candidates = tally
        .touched
        .iter()
        .map(|&tool| Candidate { tool, score: tally.slots[tool as usize].score });
    let best = select(candidates, limit, keep);
    TALLY.set(tally);
    best
}

/// Returns the best `limit` tools by words and similarity, in no particular order.
pub(super) fn best_blended(
    index: &Index,
    plan: &Plan,
    similarities: &Similarities,
    limit: usize,
    keep: impl Fn(u32) -> bool,
) -> Vec<Candidate> {
    let mut tally = TALLY.take();
    tally.add_up(index, plan);
    let candidates = (0..index.len() as u32).filter_map(|tool| {
        let (words, similarity) = (tally.words(tool), similarities.of(tool));
        let is_near = similarity.is_some_and(|similarity| similarity >= SIMILARITY_MIN);
        let similarity = similarity.unwrap_or_else(|| similarities.mean());
        let evidence = Evidence { words: words.unwrap_or(0.0), similarity };
        (words.is_some() || is_near).then(|| Candidate { tool, score: evidence.blend() })
    });
    let best = select(candidates, limit, keep);
    TALLY.set(tally);
    best
}

thread_local! {
    static TALLY: Cell<Tally> = Cell::default();
}

#[derive(Default)]
struct Tally {
    slots: Vec<Slot>,
    touched: Vec<u32>,
    /// The number of the last word added; slots with an older one need no clearing.
    word: u32,
    /// The number of the last word of the query before.
    before: u32,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    score: f32,
    /// The highest contribution of a single term of word number `word`.
    given: f32,
    word: u32,
}

impl Tally {
    fn add_up(&mut self, index: &Index, plan: &Plan) {
        let words = plan.words().count() as u32;
        self.touched.clear();
        if self.slots.len() < index.len() || self.word.checked_add(words).is_none() {
            self.slots = vec![Slot::default(); index.len()];
            self.word = 0;
        }
        self.before = self.word;
        for kin in plan.words() {
            self.word += 1;
            for kin in kin {
                let (postings, rarity) = index.postings(kin.term);
                let weight = kin.weight * rarity;
                for Posting { tool, impact } in postings.iter().copied() {
                    self.add(tool, weight * impact.get());
                }
            }
        }
    }

    /// Adds a contribution. Of several terms for the same word, only the strongest counts.
    fn add(&mut self, tool: u32, given: f32) {
        let slot = &mut self.slots[tool as usize];
        if slot.word <= self.before {
            *slot = Slot { score: given, given, word: self.word };
            self.touched.push(tool);
        } else if slot.word < self.word {
            *slot = Slot { score: slot.score + given, given, word: self.word };
        } else if slot.given < given {
            slot.score += given - slot.given;
            slot.given = given;
        }
    }

    /// Returns the score of a tool that has some word of the query.
    fn words(&self, tool: u32) -> Option<f32> {
        let slot = self.slots[tool as usize];
        (slot.word > self.before).then_some(slot.score)
    }
}

/// Returns the best `limit` of the candidates that `keep` allows.
fn select(
    candidates: impl Iterator<Item = Candidate>,
    limit: usize,
    keep: impl Fn(u32) -> bool,
) -> Vec<Candidate> {
    let mut best = BinaryHeap::new();
    let mut worst = None;
    for candidate in candidates {
        if worst.is_some_and(|worst| candidate < worst) || !keep(candidate.tool) {
            continue;
        }
        best.push(Reverse(candidate));
        if best.len() > limit {
            best.pop();
            worst = best.peek().map(|&Reverse(worst)| worst);
        }
    }
    best.into_iter().map(|Reverse(candidate)| candidate).collect()
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The better candidate is greater; among equals, the one that comes first in the catalog.
impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.tool.cmp(&self.tool))
    }
}
