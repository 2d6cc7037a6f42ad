//! The pace of retention: small steps with pauses between them, so that no call waits long.

use std::time::Duration;

use crate::limits::{
    RETENTION_REST_MAX, RETENTION_REST_MIN, RETENTION_ROWS_MAX, RETENTION_ROWS_MIN, RETENTION_STEP,
};

/// The number of rows of the next step, which follows the duration of the last one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetentionPace {
    rows: usize,
}

impl Default for RetentionPace {
    fn default() -> RetentionPace {
        RetentionPace { rows: RETENTION_ROWS_MIN }
    }
}

impl RetentionPace {
    pub(crate) fn rows(self) -> usize {
        self.rows
    }

    /// Adapts to a step that took this long, and returns the pause after it.
    pub(crate) fn took(&mut self, took: Duration) -> Duration {
        let rows = if took > RETENTION_STEP {
            self.rows / 2
        } else if took < RETENTION_STEP / 3 {
            self.rows + self.rows / 2
        } else {
            self.rows
        };
        self.rows = rows.clamp(RETENTION_ROWS_MIN, RETENTION_ROWS_MAX);
        (took * 9).clamp(RETENTION_REST_MIN, RETENTION_REST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_shrink_when_slow_and_grow_when_quick() {
        let mut pace = RetentionPace::default();
        for _ in 0..20 {
            assert_eq!(pace.took(Duration::ZERO), RETENTION_REST_MIN);
        }
        assert_eq!(pace.rows(), RETENTION_ROWS_MAX);
        assert_eq!(pace.took(RETENTION_STEP), RETENTION_STEP * 9);
        assert_eq!(pace.rows(), RETENTION_ROWS_MAX);
        assert_eq!(pace.took(RETENTION_REST_MAX), RETENTION_REST_MAX);
        assert_eq!(pace.rows(), RETENTION_ROWS_MAX / 2);
        for _ in 0..20 {
            pace.took(RETENTION_REST_MAX);
        }
        assert_eq!(pace.rows(), RETENTION_ROWS_MIN);
    }
}
