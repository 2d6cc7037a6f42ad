//! Merges all servers' segments: one sorted vocabulary, and for each term its rarity in the whole
//! catalog and its impact on each tool. Read-only once built.

use std::sync::Arc;

use super::segment::{Impact, Posting, SERVER_NAME_IMPACT, Segment};
use super::splitter::Splitter;
use super::terms::Terms;
use super::word::{Room, Word};
use super::word_map::WordMap;
use super::words;

/// Every tool of the catalog, searchable by any number of concurrent readers.
#[derive(Debug, Default)]
pub struct Index {
    /// In byte order, so that words with a common prefix are adjacent.
    pub(super) terms: Terms,
    /// The highest contribution of each term to a tool; its rarity is the contribution per unit of
    /// impact.
    pub(super) peaks: Vec<f32>,
    rarities: Vec<f32>,
    /// Tools are numbered consecutively; those of term `t` are
    /// `postings[starts[t]..starts[t + 1]]`.
    postings: Vec<Posting>,
    starts: Vec<u32>,
    /// The number of the first tool of each segment, and the number of tools.
    bases: Vec<u32>,
    segments: Vec<Arc<Segment>>,
}

/// A tool, by its segment and its position there.
pub(super) struct ToolSlot {
    pub(super) segment: u32,
    pub(super) tool: u32,
}

impl Index {
    /// Merges segments under their servers' names. Much cheaper than building segments: when one
    /// server changes, the segments of the others are reused.
    pub fn build(servers: Vec<(Arc<str>, Arc<Segment>)>) -> Index {
        let mut merge = Merge::default();
        for (name, segment) in &servers {
            merge.add(name, segment);
        }
        let segments: Vec<Arc<Segment>> = servers.into_iter().map(|(_, segment)| segment).collect();
        let index = merge.finish(&segments);
        Index { segments, ..index }
    }

    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.bases.last().map_or(0, |&tools| tools as usize)
    }

    /// Reports whether the index has no tools.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the tools that contain a term, and the term's rarity.
    pub(super) fn postings(&self, term: u32) -> (&[Posting], f32) {
        let term = term as usize;
        let (start, end) = (self.starts[term] as usize, self.starts[term + 1] as usize);
        (&self.postings[start..end], self.rarities[term])
    }

    /// Returns the segment of a tool and its position there, as passed to `build`.
    pub(super) fn slot(&self, tool: u32) -> ToolSlot {
        let segment = self.bases.partition_point(|&base| base <= tool) - 1;
        ToolSlot { segment: segment as u32, tool: tool - self.bases[segment] }
    }

    /// Returns the number of a tool, the inverse of `slot`.
    pub(super) fn number(&self, segment: u32, tool: u32) -> u32 {
        self.bases[segment as usize] + tool
    }

    pub(super) fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// Returns a term's rarity relative to one that is in every tool; `tools_with` may be zero.
    pub(super) fn rarity_of(&self, tools_with: usize) -> f32 {
        let (all, with) = (self.len() as f32, tools_with.min(self.len()) as f32);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }
}

/// Assigns common numbers to the terms of all segments, then merges their postings.
#[derive(Default)]
struct Merge {
    numbers: WordMap<u32>,
    terms: Terms,
    /// The destination of each term's postings.
    stretches: Vec<Stretch>,
    /// The numbers of each segment's terms, segment by segment.
    own: Vec<u32>,
    /// The numbers of the words of each server's name, up to `name_ends[segment]`.
    names: Vec<u32>,
    name_ends: Vec<usize>,
    /// The stems of words in names, shared between servers.
    stems: WordMap<u32>,
    splitter: Splitter,
}

#[derive(Default)]
struct Stretch {
    length: u32,
    next: u32,
    peak: Impact,
}

impl Merge {
    fn add(&mut self, name: &str, segment: &Segment) {
        for (term, bounds) in segment.terms.words().zip(segment.starts.windows(2)) {
            let number = self.number(term);
            self.stretches[number as usize].length += bounds[1] - bounds[0];
            self.own.push(number);
        }
        let start = self.names.len();
        let mut splitter = std::mem::take(&mut self.splitter);
        splitter.split(name, |word, _| {
            let number = self.stem_number(word);
            if !self.names[start..].contains(&number) {
                self.stretches[number as usize].length += segment.tools;
                self.names.push(number);
            }
        });
        self.splitter = splitter;
        self.name_ends.push(self.names.len());
    }

    fn stem_number(&mut self, word: Word<'_>) -> u32 {
        self.stems.get(word).unwrap_or_else(|| {
            let number = self.number(words::stem(word.text(&mut Room::default())).as_ref().into());
            self.stems.insert(word, number);
            number
        })
    }

    fn number(&mut self, term: Word<'_>) -> u32 {
        self.numbers.get(term).unwrap_or_else(|| {
            let number = self.terms.push(term.text(&mut Room::default()));
            self.numbers.insert(term, number);
            self.stretches.push(Stretch::default());
            number
        })
    }

    fn finish(mut self, segments: &[Arc<Segment>]) -> Index {
        let mut index = Index { bases: vec![0], starts: vec![0], ..Index::default() };
        for segment in segments {
            index.bases.push(index.bases[index.bases.len() - 1] + segment.tools);
        }
        let sorted = self.terms.sorted();
        index.terms = self.terms.in_order(&sorted);
        index.starts.reserve_exact(sorted.len());
        for (place, &number) in sorted.iter().enumerate() {
            let stretch = &mut self.stretches[number as usize];
            stretch.next = index.starts[place];
            index.starts.push(stretch.next + stretch.length);
        }
        index.postings = self.gather(segments, &index.bases);
        let stretch = |&number: &u32| &self.stretches[number as usize];
        let stretches = || sorted.iter().map(stretch);
        index.rarities = stretches().map(|s| index.rarity_of(s.length as usize)).collect();
        let peaks = stretches().zip(&index.rarities).map(|(s, rarity)| s.peak.get() * rarity);
        index.peaks = peaks.collect();
        index
    }

    fn gather(&mut self, segments: &[Arc<Segment>], bases: &[u32]) -> Vec<Posting> {
        let total = self.stretches.iter().map(|stretch| stretch.length as usize).sum();
        let mut gathered = vec![Posting { tool: 0, impact: Impact::default() }; total];
        let of_name = Impact::new(SERVER_NAME_IMPACT);
        let mut own = self.own.iter();
        let mut name_start = 0;
        for ((segment, &base), &name_end) in segments.iter().zip(bases).zip(&self.name_ends) {
            for (bounds, &term) in segment.starts.windows(2).zip(&mut own) {
                let postings = &segment.postings[bounds[0] as usize..bounds[1] as usize];
                let postings = postings.iter().map(|p| (base + p.tool, p.impact));
                self.stretches[term as usize].fill(&mut gathered, postings);
            }
            for &term in &self.names[name_start..name_end] {
                let tools = base..base + segment.tools;
                let postings = tools.map(|tool| (tool, of_name));
                self.stretches[term as usize].fill(&mut gathered, postings);
            }
            name_start = name_end;
        }
        gathered
    }
}

impl Stretch {
    fn fill(
        &mut self,
        gathered: &mut [Posting],
        postings: impl ExactSizeIterator<Item = (u32, Impact)>,
    ) {
        let places = &mut gathered[self.next as usize..][..postings.len()];
        self.next += postings.len() as u32;
        for (place, (tool, impact)) in places.iter_mut().zip(postings) {
            *place = Posting { tool, impact };
            self.peak = self.peak.max(impact);
        }
    }
}
