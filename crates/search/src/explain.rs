//! The words of a query that a tool was found by.

use super::index::Index;
use super::plan::Plan;
use super::query::Query;

/// A word of a query that occurs in a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchedWord {
    /// The stem of the word.
    pub word: String,
    /// The stem in the tool's text; another one if only their beginnings are the same.
    pub term: String,
    pub score: f32,
}

impl Index {
    /// Returns the words of a query that occur in a tool, by its positions as in
    /// [`super::Match`].
    pub fn matched_words(&self, query: &str, segment: u32, tool: u32) -> Vec<MatchedWord> {
        let query = Query::parse(query);
        let plan = Plan::new(self, &query);
        let tool = self.number(segment, tool);
        let mut matched = Vec::new();
        for (word, kin) in query.words.iter().zip(plan.words()) {
            let scores = kin.iter().filter_map(|kin| {
                let (postings, rarity) = self.postings(kin.term);
                let impacts = postings.iter().filter(|posting| { posting.tool } == tool);
                let impact = impacts.map(|posting| { posting.impact }.get()).fold(0.0, f32::max);
                (impact > 0.0).then_some((kin.term, kin.weight * rarity * impact))
            });
            if let Some((term, score)) = scores.max_by(|a, b| a.1.total_cmp(&b.1)) {
                let (word, term) = (word.stem.clone(), self.terms.get(term).to_owned());
                matched.push(MatchedWord { word, term, score });
            }
        }
        matched
    }
}
