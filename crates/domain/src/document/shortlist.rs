//! The first of many findings, the rest of them counted.

/// Nobody reads more; a file of a few megabytes could give millions.
const FINDINGS_MAX: usize = 1_000;

/// Findings of a reading, bounded.
#[derive(Debug)]
pub struct Shortlist<T> {
    pub list: Vec<T>,
    pub left_out: usize,
}

impl<T> Default for Shortlist<T> {
    fn default() -> Self {
        Shortlist { list: Vec::new(), left_out: 0 }
    }
}

impl<T> Shortlist<T> {
    /// True once further findings are only counted: costly words about them can be left out.
    pub fn is_full(&self) -> bool {
        self.list.len() >= FINDINGS_MAX
    }

    pub fn push(&mut self, finding: T) {
        if self.is_full() {
            self.left_out += 1;
        } else {
            self.list.push(finding);
        }
    }
}
