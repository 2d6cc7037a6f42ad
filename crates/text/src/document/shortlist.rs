//! Keeps the first of many findings and counts the rest.

/// More would not be read; a file of a few megabytes could produce millions.
const FINDINGS_MAX: usize = 1_000;

/// The findings of a reading, limited in number.
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
    /// Reports whether further findings are only counted, so that expensive messages can be
    /// skipped.
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
