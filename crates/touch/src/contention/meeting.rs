//! The meetings of two agents at one resource.

/// A resource at which two agents met, or the sum of their meetings there.
#[derive(Clone, Copy)]
pub(super) struct Meeting<R> {
    pub(super) count: u64,
    pub(super) first_us: i64,
    /// Breaks ties between equal times.
    pub(super) first_turn: u64,
    pub(super) last_us: i64,
    pub(super) gap_us: i64,
    /// The records of the closest meeting; the last is repeated if two records are enough.
    pub(super) records: [R; 3],
}

impl<R: Copy> Meeting<R> {
    /// Creates a meeting from a touch and the one before it.
    pub(super) fn new(before_us: i64, at_us: i64, turn: u64, records: [R; 3]) -> Meeting<R> {
        let gap_us = at_us.saturating_sub(before_us);
        Meeting { count: 1, first_us: at_us, first_turn: turn, last_us: at_us, gap_us, records }
    }

    pub(super) fn earlier_than(&self, other: &Meeting<R>) -> bool {
        (self.first_us, self.first_turn) < (other.first_us, other.first_turn)
    }

    pub(super) fn merge(&mut self, other: &Meeting<R>) {
        self.count += other.count;
        if other.earlier_than(self) {
            (self.first_us, self.first_turn) = (other.first_us, other.first_turn);
        }
        self.last_us = self.last_us.max(other.last_us);
        if other.gap_us < self.gap_us {
            self.gap_us = other.gap_us;
            self.records = other.records;
        }
    }
}
