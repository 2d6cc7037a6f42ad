//! The arithmetic between the matrix products. Each function is a loop without branches that a
//! compiler vectorises, and sums in a fixed order: every processor gets the same bits.

/// Lanes of a sum. Eight partial sums fill a vector register and hide the latency of additions.
const LANES: usize = 8;

/// Adding and subtracting this rounds a small number to the nearest integer, ties to even; in
/// between, the integer is in the low bits.
const ROUND: f32 = 12_582_912.0;

#[inline(always)]
pub(crate) fn sum(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += chunk[lane];
        }
    }
    let mut total = fold(lanes);
    for value in rest {
        total += value;
    }
    total
}

/// Returns the product of two rows of the same length, a multiple of eight.
#[inline(always)]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, b) = (a.as_chunks::<LANES>().0, b.as_chunks::<LANES>().0);
    let b = &b[..a.len()];
    let mut lanes = [0.0; LANES];
    for at in 0..a.len() {
        for lane in 0..LANES {
            lanes[lane] += a[at][lane] * b[at][lane];
        }
    }
    fold(lanes)
}

#[inline(always)]
fn fold([a, b, c, d, e, f, g, h]: [f32; LANES]) -> f32 {
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}

/// Returns the largest magnitude in a row whose length is a multiple of eight.
#[inline(always)]
pub(crate) fn peak(values: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    for chunk in values.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            let magnitude = chunk[lane].abs();
            lanes[lane] = if magnitude > lanes[lane] { magnitude } else { lanes[lane] };
        }
    }
    let mut peak = 0.0;
    for lane in lanes {
        peak = if lane > peak { lane } else { peak };
    }
    peak
}

/// Rounds `value`, whose magnitude fits 16 bits, to an integer.
#[inline(always)]
pub(crate) fn rounded(value: f32) -> i16 {
    (value + ROUND).to_bits() as i16
}

/// e to the power of a number that is not positive.
#[inline(always)]
fn exp(value: f32) -> f32 {
    // Below this, the result counts as zero everywhere that it is used.
    let value = if value < -87.0 { -87.0 } else { value };
    let shifted = value * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 in two parts, so that the product is exact.
    let rest = value - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let series = 1.987_569_1e-4;
    let series = series * rest + 1.398_199_9e-3;
    let series = series * rest + 8.333_452e-3;
    let series = series * rest + 4.166_579_6e-2;
    let series = series * rest + 1.666_666_5e-1;
    let series = series * rest + 5e-1;
    let fraction = series * rest * rest + rest + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    fraction * f32::from_bits(exponent << 23)
}

/// Turns scores into shares that add up to one.
#[inline(always)]
pub(crate) fn softmax(scores: &mut [f32]) {
    let mut top = f32::MIN;
    for &score in scores.iter() {
        top = if score > top { score } else { top };
    }
    for score in scores.iter_mut() {
        *score = exp(*score - top);
    }
    let whole = sum(scores);
    for score in scores {
        *score /= whole;
    }
}

/// The Gaussian error linear unit; erf by Abramowitz and Stegun 7.1.26, exact to 1.5e-7.
#[inline(always)]
pub(crate) fn gelu(values: &mut [f32]) {
    for value in values {
        let scaled = value.abs() * std::f32::consts::FRAC_1_SQRT_2;
        let t = 1.0 / (1.0 + 0.327_591_1 * scaled);
        let series = 1.061_405_4 * t - 1.453_152;
        let series = series * t + 1.421_413_7;
        let series = series * t - 0.284_496_74;
        let series = (series * t + 0.254_829_6) * t;
        let erf = (1.0 - series * exp(-(scaled * scaled))).copysign(*value);
        *value = 0.5 * *value * (1.0 + erf);
    }
}

/// A layer norm: mean zero and variance one, then scaled and shifted.
pub(crate) struct Norm {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

impl Norm {
    /// Adds `more` to each row of `rows` and norms the sum.
    #[inline(always)]
    pub(crate) fn add(&self, rows: &mut [f32], more: &[f32]) {
        let width = self.weight.len();
        let bias = &self.bias[..width];
        for at in 0..rows.len() / width {
            let (row, more) = (&mut rows[at * width..][..width], &more[at * width..][..width]);
            for at in 0..width {
                row[at] += more[at];
            }
            let mean = sum(row) / width as f32;
            for value in row.iter_mut() {
                *value -= mean;
            }
            let deviation = (dot(row, row) / width as f32 + 1e-12).sqrt();
            for at in 0..width {
                row[at] = row[at] / deviation * self.weight[at] + bias[at];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_are_as_exact_as_single_precision_allows() {
        for step in 0..2000 {
            let value = -(step as f32) / 25.0;
            let expected = f64::from(value).exp() as f32;
            assert!((exp(value) - expected).abs() <= 4e-7 * expected.max(1e-30), "{value}");
        }
        assert!(exp(-1e9) < 1e-37);
        for (value, expected) in [(0.0, 0.0), (1.0, 0.841_345), (-1.0, -0.158_655), (6.0, 6.0)] {
            let mut values = [value];
            gelu(&mut values);
            assert!((values[0] - expected).abs() < 1e-6, "{value}: {}", values[0]);
        }
        let mut shares = [1.0, 2.0, 3.0];
        softmax(&mut shares);
        assert!((shares[2] - 0.665_240_96).abs() < 1e-6);
    }

    #[test]
    fn rounding_is_to_the_nearest_even_integer() {
        for (value, expected) in [(0.4, 0), (0.5, 0), (1.5, 2), (-0.6, -1), (-8191.0, -8191)] {
            assert_eq!(rounded(value), expected, "{value}");
        }
    }
}
