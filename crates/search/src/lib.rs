//! Finds tools: BM25F over the words of names, descriptions, parameters and their values, and the
//! similarity of vectors for needs in other words. Held in memory and read without locks. It is
//! independent of scope, policy and transport: the caller says which tools are visible.
//! `docs/search.md` describes the effect of each part of the ranking.

mod explain;
mod index;
mod lexicon;
mod mention;
mod plan;
mod query;
mod schema;
mod segment;
mod similarity;
mod splitter;
mod tally;
mod terms;
mod tool_text;
mod word;
mod word_map;
mod words;

use embed::Vector;

pub use explain::MatchedWord;
pub use index::Index;
pub use segment::{Document, Segment};
pub use tool_text::ToolText;

use index::ToolSlot;
use plan::Plan;
use query::Query;
use similarity::Similarities;
use tally::Candidate;

/// A tool that was found, by its positions in the arguments of [`Index::build`] and
/// [`Segment::build`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    pub segment: u32,
    pub tool: u32,
    /// 0 to 1: the share of the highest possible score, that of a tool matching every query word at
    /// its best, and in meaning. Comparable within one response, roughly comparable between
    /// responses.
    pub score: f32,
    /// The cosine of the vectors of query and tool, if both have one.
    pub similarity: Option<f32>,
}

/// A search text, with its vector if meaning counts.
#[derive(Clone, Copy, Debug)]
pub struct SearchQuery<'a> {
    pub text: &'a str,
    pub vector: Option<&'a Vector>,
}

impl SearchQuery<'_> {
    /// Reports whether a text can have a vector: the model reads English.
    pub fn is_for_vectors(text: &str) -> bool {
        text.bytes().any(|byte| byte.is_ascii_alphabetic())
    }
}

impl<'a> From<&'a str> for SearchQuery<'a> {
    fn from(text: &'a str) -> Self {
        SearchQuery { text, vector: None }
    }
}

impl<'a> From<&'a String> for SearchQuery<'a> {
    fn from(text: &'a String) -> Self {
        SearchQuery { text, vector: None }
    }
}

impl Index {
    /// Returns the best `limit` tools for `query`, best first; ties are in catalog order.
    ///
    /// A tool for which `keep(segment, tool)` is false takes no place in the ranking.
    pub fn search<'q>(
        &self,
        query: impl Into<SearchQuery<'q>>,
        limit: usize,
        keep: impl Fn(u32, u32) -> bool,
    ) -> Vec<Match> {
        let query = query.into();
        if limit == 0 || self.is_empty() {
            return Vec::new();
        }
        let plan = Plan::new(self, &Query::parse(query.text));
        let similarities = query.vector.and_then(|vector| Similarities::new(self, vector));
        let keep = |tool| {
            let ToolSlot { segment, tool } = self.slot(tool);
            keep(segment, tool)
        };
        let mut candidates = match &similarities {
            None => tally::best(self, &plan, limit, keep),
            Some(similarities) => tally::best_blended(self, &plan, similarities, limit, keep),
        };
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        let attainable = Evidence::attainable(&plan, similarities.as_ref());
        let hit = |candidate: &Candidate| {
            let ToolSlot { segment, tool } = self.slot(candidate.tool);
            let score = (candidate.score / attainable).clamp(0.0, 1.0);
            let similarity = similarities.as_ref().and_then(|all| all.of(candidate.tool));
            Match { segment, tool, score, similarity }
        };
        candidates.iter().map(hit).collect()
    }
}

/// The weight of a similarity relative to the score of words. Between 70 and 100 the results are
/// the same, and no weight that adapts to the query or the catalog does better.
const SIMILARITY_WEIGHT: f32 = 80.0;

/// A tool that shares no word with the query is found from this similarity on. Nine in ten tools
/// that have nothing to do with a query are below it.
const SIMILARITY_MIN: f32 = 0.15;

/// The evidence for one candidate. Scores of different kinds are combined only here.
struct Evidence {
    words: f32,
    /// For a tool that has no vector yet, the mean of the others.
    similarity: f32,
}

impl Evidence {
    fn blend(&self) -> f32 {
        self.words + SIMILARITY_WEIGHT * self.similarity
    }

    /// Returns the upper limit of the score.
    fn attainable(plan: &Plan, similarities: Option<&Similarities>) -> f32 {
        plan.attainable + similarities.map_or(0.0, |_| SIMILARITY_WEIGHT)
    }
}

#[cfg(test)]
mod tests;
