//! All servers' segments brought together: one sorted vocabulary, and for each term its impact on
//! each tool with the term's rarity in the whole catalog already in it. Read only once built.

use std::collections::HashMap;
use std::sync::Arc;

use super::lexicon::Seed;
use super::segment::{GAP, Posting, SERVER_NAME_IMPACT, Segment, Terms};
use super::words::{self, Splitter};

/// Every tool of the catalog, ready to be searched by any number of readers.
#[derive(Debug, Default)]
pub struct Index {
    /// In byte order, so that words with a common beginning are neighbours.
    pub(super) terms: Terms,
    pub(super) rarity: Vec<f32>,
    /// The highest impact of each term: what a tool can reach with it at most.
    pub(super) peaks: Vec<f32>,
    /// Tools are numbered through; those of term `t` are `postings[starts[t]..starts[t + 1]]`.
    postings: Vec<Posting>,
    starts: Vec<u32>,
    /// The number of the first tool of each segment, and the number of tools.
    bases: Vec<u32>,
    order: Vec<u32>,
    order_ends: Vec<u32>,
}

impl Index {
    /// Brings segments together under their servers' names. Much cheaper than building segments:
    /// when one server changes, the segments of the others are given in again as they are.
    pub fn build(servers: Vec<(Arc<str>, Arc<Segment>)>) -> Index {
        let mut bases = vec![0];
        for (_, segment) in &servers {
            bases.push(bases[bases.len() - 1] + segment.tools);
        }
        let names: Vec<Vec<String>> = servers.iter().map(|(name, _)| name_words(name)).collect();
        let mut merge = Merge::default();
        for ((_, segment), name) in servers.iter().zip(&names) {
            merge.add(segment, name);
        }
        merge.finish(&servers, bases)
    }

    /// The number of tools.
    pub fn len(&self) -> usize {
        self.bases.last().map_or(0, |&tools| tools as usize)
    }

    /// Whether there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn postings(&self, term: u32) -> &[Posting] {
        let term = term as usize;
        &self.postings[self.starts[term] as usize..self.starts[term + 1] as usize]
    }

    /// The segment of a tool and its place there, as given to `build`.
    pub(super) fn place(&self, tool: u32) -> (u32, u32) {
        let segment = self.bases.partition_point(|&base| base <= tool) - 1;
        (segment as u32, tool - self.bases[segment])
    }

    /// The terms of a tool's name and description as they follow each other.
    pub(super) fn order(&self, tool: u32) -> &[u32] {
        let tool = tool as usize;
        let start = if tool == 0 { 0 } else { self.order_ends[tool - 1] };
        &self.order[start as usize..self.order_ends[tool] as usize]
    }

    /// How much less common than "in every tool" a term is; `tools_with` may be zero.
    pub(super) fn rarity_of(&self, tools_with: usize) -> f32 {
        let (all, with) = (self.len() as f32, tools_with.min(self.len()) as f32);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }
}

fn name_words(server: &str) -> Vec<String> {
    let mut found = Vec::new();
    Splitter::default().split(server, |word, _| found.push(words::stem(word).into_owned()));
    found.sort();
    found.dedup();
    found
}

/// Numbers the terms of all segments alike.
#[derive(Default)]
struct Merge<'a> {
    numbers: HashMap<&'a str, u32, Seed>,
    terms: Vec<&'a str>,
    /// How many postings each term will have.
    counts: Vec<u32>,
    /// For each segment the numbers of its terms, then those of its server's name.
    mapped: Vec<(Vec<u32>, Vec<u32>)>,
}

impl<'a> Merge<'a> {
    fn add(&mut self, segment: &'a Segment, name: &'a [String]) {
        let own = segment.terms.iter().zip(segment.starts.windows(2));
        let own = own.map(|(term, bounds)| self.number(term, bounds[1] - bounds[0])).collect();
        let name = name.iter().map(|word| self.number(word, segment.tools)).collect();
        self.mapped.push((own, name));
    }

    fn number(&mut self, term: &'a str, postings: u32) -> u32 {
        let next = self.terms.len() as u32;
        let number = *self.numbers.entry(term).or_insert(next);
        if number == next {
            self.terms.push(term);
            self.counts.push(0);
        }
        self.counts[number as usize] += postings;
        number
    }

    fn finish(mut self, servers: &[(Arc<str>, Arc<Segment>)], bases: Vec<u32>) -> Index {
        let mut index = Index { bases, ..Index::default() };
        self.sort(&mut index);
        let total = index.starts[index.starts.len() - 1] as usize;
        index.postings = vec![Posting { tool: 0, impact: 0.0 }; total];
        let mut next = index.starts.clone();
        for (place, (_, segment)) in servers.iter().enumerate() {
            let (own, name) = &self.mapped[place];
            let base = index.bases[place];
            for (term, bounds) in own.iter().zip(segment.starts.windows(2)) {
                let postings = &segment.postings[bounds[0] as usize..bounds[1] as usize];
                index.fill(&mut next, *term, postings.iter().map(|p| (base + p.tool, p.impact)));
            }
            for &term in name {
                let tools = base..base + segment.tools;
                index.fill(&mut next, term, tools.map(|tool| (tool, SERVER_NAME_IMPACT)));
            }
            index.append_order(segment, own);
        }
        index
    }

    /// Brings the terms into byte order, here and in the index, and lays out the postings.
    fn sort(&mut self, index: &mut Index) {
        let mut sorted: Vec<u32> = (0..self.terms.len() as u32).collect();
        sorted.sort_unstable_by_key(|&number| self.terms[number as usize]);
        let mut renumbered = vec![0; sorted.len()];
        index.starts.push(0);
        for (place, &number) in sorted.iter().enumerate() {
            renumbered[number as usize] = place as u32;
            let count = self.counts[number as usize];
            index.terms.push(self.terms[number as usize]);
            index.starts.push(index.starts[place] + count);
            index.rarity.push(index.rarity_of(count as usize));
        }
        index.peaks = vec![0.0; sorted.len()];
        index.terms.shrink();
        for (own, name) in &mut self.mapped {
            own.iter_mut().chain(name).for_each(|term| *term = renumbered[*term as usize]);
        }
    }
}

impl Index {
    fn fill(&mut self, next: &mut [u32], term: u32, postings: impl Iterator<Item = (u32, f32)>) {
        let term = term as usize;
        let (rarity, peak) = (self.rarity[term], &mut self.peaks[term]);
        for (tool, impact) in postings {
            let impact = impact * rarity;
            *peak = peak.max(impact);
            self.postings[next[term] as usize] = Posting { tool, impact };
            next[term] += 1;
        }
    }

    fn append_order(&mut self, segment: &Segment, own: &[u32]) {
        let base = self.order.len() as u32;
        let numbers = segment.order.iter();
        self.order.extend(numbers.map(|&term| if term == GAP { GAP } else { own[term as usize] }));
        self.order_ends.extend(segment.order_ends.iter().map(|end| base + end));
    }
}
