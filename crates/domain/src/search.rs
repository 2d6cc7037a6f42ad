//! Finds tools by words: BM25F over names, descriptions, parameters and their values, held in
//! memory and read without locks. It knows nothing of scope, policy or transport: the caller says
//! which tools may be seen. `docs/search.md` tells what each part of the ranking brought.

mod index;
mod lexicon;
mod plan;
mod query;
mod schema;
mod segment;
mod tally;
mod words;

pub use index::Index;
pub use segment::{Document, Segment};

use plan::Plan;
use query::Query;
use tally::Candidate;

/// Candidates beyond the limit that may still move up when all evidence is weighed.
const CANDIDATES_EXTRA: usize = 32;

/// A tool that was found, by the places given to [`Index::build`] and [`Segment::build`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    pub segment: u32,
    pub tool: u32,
    /// 0 to 1: the share of what a tool could reach that matches every word of the query at its
    /// best. Comparable within one answer, roughly so between answers.
    pub score: f32,
}

impl Index {
    /// The best `limit` tools for `query`, best first; equals in the order of the catalog.
    ///
    /// A tool for which `keep(segment, tool)` is false takes no place in the ranking.
    pub fn search(&self, query: &str, limit: usize, keep: impl Fn(u32, u32) -> bool) -> Vec<Hit> {
        if limit == 0 || self.is_empty() {
            return Vec::new();
        }
        let plan = Plan::new(self, &Query::parse(query));
        let keep = |tool| {
            let (segment, tool) = self.place(tool);
            keep(segment, tool)
        };
        let room = limit.min(self.len()).saturating_add(CANDIDATES_EXTRA);
        let mut candidates = tally::best(self, &plan, room, keep);
        for candidate in &mut candidates {
            candidate.score = self.evidence(candidate, &plan).blend();
        }
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        candidates.truncate(limit);
        candidates.iter().map(|candidate| self.hit(candidate, &plan)).collect()
    }

    fn evidence(&self, candidate: &Candidate, plan: &Plan) -> Evidence {
        let order = self.order(candidate.tool);
        let stands = |first, second| order.windows(2).any(|pair| pair == [first, second]);
        let neighbours = plan.neighbours.iter().filter(|pair| stands(pair.first, pair.second));
        Evidence { words: candidate.score, neighbours: neighbours.map(|pair| pair.worth).sum() }
    }

    fn hit(&self, candidate: &Candidate, plan: &Plan) -> Hit {
        let (segment, tool) = self.place(candidate.tool);
        Hit { segment, tool, score: (candidate.score / plan.attainable).clamp(0.0, 1.0) }
    }
}

/// What speaks for one candidate. The only place where scores of different kinds meet: a further
/// one, such as a learned one, is a field here and a term in `blend`.
struct Evidence {
    words: f32,
    neighbours: f32,
}

impl Evidence {
    fn blend(&self) -> f32 {
        self.words + self.neighbours
    }
}

#[cfg(test)]
mod tests;
