//! The number of attempts for a step, and the delay between them.

use std::time::Duration;

use domain::choice;

/// A longer wait is of no use to the person who watches the run.
const DELAY_MAX: Duration = Duration::from_secs(60 * 60);

choice! {
    Backoff {
        Constant = "constant",
        /// One, two, three times the first delay.
        Linear = "linear",
        /// Doubles each time.
        Exponential = "exponential",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Includes the first attempt.
    pub max_attempts: u32,
    pub initial_delay: Duration,
    pub backoff: Backoff,
}

impl Default for Retry {
    /// Makes one attempt.
    fn default() -> Self {
        Retry { max_attempts: 1, initial_delay: Duration::from_secs(1), backoff: Backoff::Constant }
    }
}

impl Retry {
    /// Returns the delay after this many attempts.
    pub fn delay(&self, attempts: u32) -> Duration {
        let factor = match self.backoff {
            Backoff::Constant => 1,
            Backoff::Linear => attempts.max(1),
            Backoff::Exponential => 1_u32 << attempts.saturating_sub(1).min(30),
        };
        self.initial_delay.saturating_mul(factor).min(DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_follow_the_backoff_and_stay_bounded() {
        let seconds = |backoff, attempts| {
            let initial_delay = Duration::from_secs(2);
            Retry { max_attempts: 9, initial_delay, backoff }.delay(attempts).as_secs()
        };
        let waits = |backoff| [1, 2, 3, 4, u32::MAX].map(|attempts| seconds(backoff, attempts));
        assert_eq!(waits(Backoff::Constant), [2, 2, 2, 2, 2]);
        assert_eq!(waits(Backoff::Linear), [2, 4, 6, 8, 3600]);
        assert_eq!(waits(Backoff::Exponential), [2, 4, 8, 16, 3600]);
    }
}
