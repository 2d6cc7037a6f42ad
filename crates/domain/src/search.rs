//! Finds tools by words: BM25F over names, descriptions, parameters and their values, held in
//! memory and read without locks. It is independent of scope, policy and transport: the caller says
//! which tools are visible. `docs/search.md` describes the effect of each part of the ranking.

mod index;
mod lexicon;
mod plan;
mod query;
mod schema;
mod segment;
mod splitter;
mod tally;
mod terms;
mod word;
mod word_map;
mod words;

pub use index::Index;
pub use segment::{Document, Segment};

use index::ToolSlot;
use plan::Plan;
use query::Query;
use tally::Candidate;

/// A tool that was found, by its positions in the arguments of [`Index::build`] and
/// [`Segment::build`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    pub segment: u32,
    pub tool: u32,
    /// 0 to 1: the share of the highest possible score, that of a tool matching every query word at
    /// its best. Comparable within one response, roughly comparable between responses.
    pub score: f32,
}

impl Index {
    /// Returns the best `limit` tools for `query`, best first; ties are in catalog order.
    ///
    /// A tool for which `keep(segment, tool)` is false takes no place in the ranking.
    pub fn search(&self, query: &str, limit: usize, keep: impl Fn(u32, u32) -> bool) -> Vec<Match> {
        if limit == 0 || self.is_empty() {
            return Vec::new();
        }
        let plan = Plan::new(self, &Query::parse(query));
        let keep = |tool| {
            let ToolSlot { segment, tool } = self.slot(tool);
            keep(segment, tool)
        };
        let mut candidates = tally::best(self, &plan, limit, keep);
        for candidate in &mut candidates {
            candidate.score = Evidence { words: candidate.score }.blend();
        }
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        candidates.iter().map(|candidate| self.hit(candidate, &plan)).collect()
    }

    fn hit(&self, candidate: &Candidate, plan: &Plan) -> Match {
        let ToolSlot { segment, tool } = self.slot(candidate.tool);
        Match { segment, tool, score: (candidate.score / plan.attainable).clamp(0.0, 1.0) }
    }
}

/// The evidence for one candidate. Scores of different kinds are combined only here: another one,
/// such as a learned score, is a field here and a term in `blend`, and needs some candidates beyond
/// the limit that it can move up.
struct Evidence {
    words: f32,
}

impl Evidence {
    fn blend(&self) -> f32 {
        self.words
    }
}

#[cfg(test)]
mod tests;
