//! A vocabulary: many short texts stored as one, for few allocations and little memory.

use super::word::Word;

/// Words in one string, numbered in insertion order.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    text: String,
    ends: Vec<u32>,
}

impl Terms {
    pub(super) fn push(&mut self, term: &str) -> u32 {
        self.text.push_str(term);
        self.ends.push(self.text.len() as u32);
        self.ends.len() as u32 - 1
    }

    pub(super) fn get(&self, term: u32) -> &str {
        let term = term as usize;
        let start = if term == 0 { 0 } else { self.ends[term - 1] as usize };
        &self.text[start..self.ends[term] as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn words(&self) -> impl Iterator<Item = Word<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let part = start..end as usize;
            start = part.end;
            Word::within(&self.text, part)
        })
    }

    /// Returns the first term that is not less than `word`; the terms must be in byte order.
    pub(super) fn first_from(&self, word: &[u8]) -> u32 {
        let (mut low, mut high) = (0, self.len() as u32);
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle).as_bytes() < word {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Returns the numbers of the terms in byte order of their texts.
    pub(super) fn sorted(&self) -> Vec<u32> {
        let head = |term| {
            let bytes = self.get(term).bytes().chain(std::iter::repeat(0));
            bytes.take(8).fold(0, |head, byte| head << 8 | u64::from(byte))
        };
        // Most comparisons are decided by the first eight bytes.
        let mut terms: Vec<(u64, u32)> = (0..self.len() as u32).map(|t| (head(t), t)).collect();
        terms.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.get(a.1).cmp(self.get(b.1))));
        terms.into_iter().map(|(_, term)| term).collect()
    }

    /// Returns the same terms renumbered: number `order[0]` first, and so on.
    pub(super) fn in_order(&self, order: &[u32]) -> Terms {
        let text = String::with_capacity(self.text.len());
        let mut terms = Terms { text, ends: Vec::with_capacity(order.len()) };
        for &term in order {
            terms.push(self.get(term));
        }
        terms
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}
