//! Statistics of a measurement's samples.

pub(crate) fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

pub(crate) fn quantile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}
