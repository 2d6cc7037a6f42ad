//! Products with int8 matrices. Sums of integers are exact, so the vector instructions of every
//! processor give the same result.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, i8x16, i8x32, i16x16, i32x8, u8x16, u8x32};

use crate::file::Matrix;
use crate::float;

/// Rows of a matrix and of the input that are multiplied at a time: their sums fill the registers.
const OUTPUTS: usize = 2;
const INPUTS: usize = 4;

/// Rows of input that are multiplied with the whole matrix before the next ones: they stay in the
/// nearest cache.
const BLOCK: usize = 16;

/// The largest magnitude of a rounded number. Larger ones could overflow a sum.
const PEAK: f32 = 8191.0;

/// The most columns of a matrix whose sums stay within 32 bits: 127 times `PEAK` times this.
pub(crate) const COLUMNS_MAX: usize = 2048;

/// Rows of numbers, rounded to 14 bits with one scale per row: the instructions multiply 16 bits.
#[derive(Default)]
pub(crate) struct Rounded {
    values: Vec<i16>,
    scales: Vec<f32>,
    columns: usize,
}

impl Rounded {
    /// Creates rows of numbers that are int8 already.
    pub(crate) fn of_rows<'a>(rows: impl Iterator<Item = (&'a [u8], f32)>) -> Rounded {
        let mut all = Rounded::default();
        for (row, scale) in rows {
            all.values.extend(row.iter().map(|&byte| i16::from(byte.cast_signed())));
            all.scales.push(scale);
            all.columns = row.len();
        }
        all
    }

    /// Replaces the rows.
    #[inline(always)]
    pub(crate) fn set(&mut self, rows: &[f32], columns: usize) {
        self.columns = columns;
        self.values.clear();
        self.scales.clear();
        self.values.resize(rows.len(), 0);
        for at in 0..rows.len() / columns {
            let row = &rows[at * columns..][..columns];
            let scale = float::peak(row).max(1e-9) / PEAK;
            let share = 1.0 / scale;
            let values = &mut self.values[at * columns..][..columns];
            for at in 0..columns {
                values[at] = float::rounded(row[at] * share);
            }
            self.scales.push(scale);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.scales.len()
    }
}

/// Multiplies each input row with a matrix and adds its bias. `outputs` gets one row per input.
#[inline(always)]
pub(crate) fn multiply<S: Simd>(simd: S, matrix: &Matrix, inputs: &Rounded, outputs: &mut [f32]) {
    let columns = matrix.columns;
    for (number, block) in inputs.values.chunks(BLOCK * columns).enumerate() {
        let whole = block.len() / (INPUTS * columns) * INPUTS;
        let (fours, rest) = block.split_at(whole * columns);
        for (pair, weights) in matrix.weights.chunks_exact(OUTPUTS * columns).enumerate() {
            let (first, second) = weights.split_at(columns);
            let mut place = TilePlace { row: pair * OUTPUTS, input: number * BLOCK };
            for four in fours.chunks_exact(INPUTS * columns) {
                let (a, four) = four.split_at(columns);
                let (b, four) = four.split_at(columns);
                let (c, d) = four.split_at(columns);
                let sums = tile(simd, [first, second], [a, b, c, d]);
                place.put(matrix, inputs, sums, outputs);
            }
            for one in rest.chunks_exact(columns) {
                let sums = tile(simd, [first, second], [one]);
                place.put(matrix, inputs, sums, outputs);
            }
        }
    }
}

/// The place of the next products: their first row of weights, and their first input.
struct TilePlace {
    row: usize,
    input: usize,
}

impl TilePlace {
    #[inline(always)]
    fn put<const T: usize>(
        &mut self,
        matrix: &Matrix,
        inputs: &Rounded,
        sums: [[i32; OUTPUTS]; T],
        outputs: &mut [f32],
    ) {
        let rows = matrix.scales.len();
        let scales = &matrix.scales[self.row..][..OUTPUTS];
        let bias = &matrix.bias[self.row..][..OUTPUTS];
        for sums in sums {
            let share = inputs.scales[self.input];
            let outputs = &mut outputs[self.input * rows + self.row..][..OUTPUTS];
            for at in 0..OUTPUTS {
                outputs[at] = sums[at] as f32 * (scales[at] * share) + bias[at];
            }
            self.input += 1;
        }
    }
}

/// Returns the products of some rows of input with some rows of weights. Rows have a multiple of 16
/// columns. Vector instructions are inlined into plain loops, but not into closures.
#[inline(always)]
fn tile<S: Simd, const T: usize>(
    simd: S,
    weights: [&[u8]; OUTPUTS],
    inputs: [&[i16]; T],
) -> [[i32; OUTPUTS]; T] {
    let chunks = weights[0].len() / 32;
    let (first, first_rest) = weights[0].as_chunks::<32>();
    let (second, second_rest) = weights[1].as_chunks::<32>();
    let (first, second) = (&first[..chunks], &second[..chunks]);
    let mut rows: [&[[i16; 32]]; T] = [&[]; T];
    for place in 0..T {
        rows[place] = &inputs[place].as_chunks::<32>().0[..chunks];
    }
    let mut sums = [[simd.splat_i32x8(0); OUTPUTS]; T];
    for at in 0..chunks {
        let (low_0, high_0) = widened(simd, &first[at]);
        let (low_1, high_1) = widened(simd, &second[at]);
        for place in 0..T {
            let (low, high) = rows[place][at].split_at(16);
            add(simd, &mut sums[place], [low_0, low_1], low);
            add(simd, &mut sums[place], [high_0, high_1], high);
        }
    }
    if first_rest.len() == 16 {
        let last = [widened_half(simd, first_rest), widened_half(simd, second_rest)];
        for place in 0..T {
            add(simd, &mut sums[place], last, &inputs[place][32 * chunks..][..16]);
        }
    }
    let mut products = [[0; OUTPUTS]; T];
    for place in 0..T {
        for at in 0..OUTPUTS {
            products[place][at] = simd.reduce_sum_i32x8(sums[place][at]);
        }
    }
    products
}

/// Adds the products of 16 columns.
#[inline(always)]
fn add<S: Simd>(
    simd: S,
    sums: &mut [i32x8<S>; OUTPUTS],
    weights: [i16x16<S>; OUTPUTS],
    input: &[i16],
) {
    let input = i16x16::from_slice(simd, input);
    sums[0] = simd.add_i32x8(sums[0], simd.pairwise_dot_product_i16x16(weights[0], input));
    sums[1] = simd.add_i32x8(sums[1], simd.pairwise_dot_product_i16x16(weights[1], input));
}

#[inline(always)]
fn widened<S: Simd>(simd: S, weights: &[u8]) -> (i16x16<S>, i16x16<S>) {
    let signed: i8x32<S> = u8x32::from_slice(simd, weights).bitcast();
    simd.widen_i8x32(signed)
}

#[inline(always)]
fn widened_half<S: Simd>(simd: S, weights: &[u8]) -> i16x16<S> {
    let signed: i8x16<S> = u8x16::from_slice(simd, weights).bitcast();
    let (low, high) = simd.widen_i8x16(signed);
    simd.combine_i16x8(low, high)
}

/// Returns the product of two rows of int8 values.
#[inline(always)]
pub(crate) fn dot<S: Simd>(simd: S, wide: &[i16], values: &[i8]) -> i32 {
    let mut sums = simd.splat_i32x8(0);
    let (wide, values) = (wide.as_chunks::<32>().0, values.as_chunks::<32>().0);
    let values = &values[..wide.len()];
    for at in 0..wide.len() {
        let (low, high) = simd.widen_i8x32(i8x32::from_slice(simd, &values[at]));
        let (wide_low, wide_high) = wide[at].split_at(16);
        let wide_low = i16x16::from_slice(simd, wide_low);
        sums = simd.add_i32x8(sums, simd.pairwise_dot_product_i16x16(low, wide_low));
        let wide_high = i16x16::from_slice(simd, wide_high);
        sums = simd.add_i32x8(sums, simd.pairwise_dot_product_i16x16(high, wide_high));
    }
    simd.reduce_sum_i32x8(sums)
}
