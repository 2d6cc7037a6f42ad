//! Statistics of a measurement's samples, and the comparison of two measurements.

use std::collections::BTreeMap;

/// A rise or fall that is worth a look.
const PERCENT_MAX: f64 = 5.0;

/// Returns the middle one. There must be at least one sample.
pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// Returns the sample below which this part of them lies. There must be at least one.
pub fn quantile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

/// A figure that differs from the baseline by more than 5 %.
#[derive(Debug, PartialEq)]
pub struct Movement {
    pub figure: String,
    pub before: u64,
    pub now: u64,
}

impl Movement {
    pub fn is_rise(&self) -> bool {
        self.now > self.before
    }
}

/// Compares figures with a baseline by name. A difference of `noise` or less does not count, nor
/// does a figure that only one of them has.
pub fn movements(
    before: &BTreeMap<String, u64>,
    now: &BTreeMap<String, u64>,
    noise: u64,
) -> Vec<Movement> {
    let moved = |(figure, now): (&String, &u64)| {
        let before = *before.get(figure)?;
        let difference = before.abs_diff(*now);
        let is_far = difference as f64 * 100.0 > before as f64 * PERCENT_MAX;
        (is_far && difference > noise).then(|| Movement {
            figure: figure.clone(),
            before,
            now: *now,
        })
    };
    now.iter().filter_map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(median(&samples), 3.0);
        assert_eq!(quantile(&samples, 0.0), 1.0);
        assert_eq!(quantile(&samples, 0.99), 5.0);
        assert_eq!(quantile(&samples, 1.0), 5.0);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        let hundred: Vec<f64> = (1..=101).map(f64::from).collect();
        assert_eq!(quantile(&hundred, 0.99), 100.0);
    }

    #[test]
    fn a_figure_has_moved_beyond_five_percent_and_the_noise() {
        let figures = |all: &[(&str, u64)]| -> BTreeMap<String, u64> {
            all.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let before = figures(&[("at", 1000), ("over", 1000), ("under", 1000), ("small", 10)]);
        let now =
            figures(&[("at", 1050), ("over", 1051), ("under", 949), ("small", 30), ("new", 5_000)]);
        let found = movements(&before, &now, 20);
        let shown: Vec<_> =
            found.iter().map(|moved| (moved.figure.as_str(), moved.is_rise())).collect();
        assert_eq!(shown, [("over", true), ("under", false)]);
        assert_eq!(movements(&figures(&[("none", 0)]), &figures(&[("none", 0)]), 0), []);
    }
}
