//! The similarity of a query to every tool of an index.

use embed::Vector;

use super::index::Index;

pub(super) struct Similarities {
    /// One per tool; not a number for a tool without a vector.
    values: Vec<f32>,
    mean: f32,
}

impl Similarities {
    /// Compares a query with all tools; `None` while no tool has a vector.
    pub(super) fn new(index: &Index, query: &Vector) -> Option<Similarities> {
        let mut values = Vec::with_capacity(index.len());
        for segment in index.segments() {
            match segment.vectors() {
                Some(vectors) => query.append_cosines(vectors, &mut values),
                None => values.resize(values.len() + segment.tools as usize, f32::NAN),
            }
        }
        let known = || values.iter().filter(|value| !value.is_nan());
        let count = known().count();
        let mean = known().sum::<f32>() / count as f32;
        (count > 0).then_some(Similarities { values, mean })
    }

    pub(super) fn of(&self, tool: u32) -> Option<f32> {
        Some(self.values[tool as usize]).filter(|value| !value.is_nan())
    }

    /// Returns the similarity to count for a tool without a vector: neither better nor worse than
    /// that of others.
    pub(super) fn mean(&self) -> f32 {
        self.mean
    }
}
