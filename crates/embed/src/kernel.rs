//! Products of int8 matrices. Sums of integers are exact, so the vector instructions of every
//! processor give the same result.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, i8x16, i8x32, i16x16, i32x8, u8x16, u8x32};

use crate::file::Matrix;
use crate::float;

/// Rows of a matrix and of the input that are multiplied at a time: their sums fill the registers.
const OUTPUTS: usize = 2;
const INPUTS: usize = 4;

/// Rows of numbers, rounded to int8 with one scale per row. They are held as 16 bits, which the
/// instructions multiply.
#[derive(Default)]
pub(crate) struct Rounded {
    values: Vec<i16>,
    scales: Vec<f32>,
    columns: usize,
}

impl Rounded {
    /// Creates rows that are int8 already.
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
        for row in rows.chunks_exact(columns) {
            let scale = float::peak(row).max(1e-9) / 127.0;
            let share = 1.0 / scale;
            let start = self.values.len();
            self.values.resize(start + columns, 0);
            for (rounded, value) in self.values[start..].iter_mut().zip(row) {
                *rounded = float::rounded(value * share);
            }
            self.scales.push(scale);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.scales.len()
    }

    fn row(&self, row: usize) -> &[i16] {
        &self.values[row * self.columns..][..self.columns]
    }
}

/// Multiplies each input row with a matrix and adds its bias. `outputs` gets one row per input.
#[inline(always)]
pub(crate) fn multiply<S: Simd>(simd: S, matrix: &Matrix, inputs: &Rounded, outputs: &mut [f32]) {
    let (rows, count) = (matrix.rows(), inputs.count());
    for row in (0..rows).step_by(OUTPUTS) {
        let weights = [matrix.row(row), matrix.row(row + 1)];
        let mut input = 0;
        while input + INPUTS <= count {
            let rows = [0, 1, 2, 3].map(|place| inputs.row(input + place));
            let sums = tile(simd, weights, rows);
            put(matrix, inputs, (row, input), &sums, outputs);
            input += INPUTS;
        }
        while input < count {
            let sums = tile(simd, weights, [inputs.row(input)]);
            put(matrix, inputs, (row, input), &sums, outputs);
            input += 1;
        }
    }
}

#[inline(always)]
fn put<const T: usize>(
    matrix: &Matrix,
    inputs: &Rounded,
    (row, input): (usize, usize),
    sums: &[[i32; T]; OUTPUTS],
    outputs: &mut [f32],
) {
    for (row, sums) in (row..).zip(sums) {
        for (input, &sum) in (input..).zip(sums) {
            let scale = matrix.scales[row] * inputs.scales[input];
            outputs[input * matrix.rows() + row] = sum as f32 * scale + matrix.bias[row];
        }
    }
}

/// Returns the products of some rows of weights and some rows of input. Rows have a multiple of 16
/// columns. Vector instructions are inlined into plain loops, but not into closures.
#[inline(always)]
fn tile<S: Simd, const T: usize>(
    simd: S,
    weights: [&[u8]; OUTPUTS],
    inputs: [&[i16]; T],
) -> [[i32; T]; OUTPUTS] {
    let columns = weights[0].len();
    let mut sums = [[simd.splat_i32x8(0); T]; OUTPUTS];
    let mut at = 0;
    while at + 32 <= columns {
        let (low_0, high_0) = widened(simd, &weights[0][at..at + 32]);
        let (low_1, high_1) = widened(simd, &weights[1][at..at + 32]);
        add(simd, &mut sums, [low_0, low_1], inputs, at);
        add(simd, &mut sums, [high_0, high_1], inputs, at + 16);
        at += 32;
    }
    if at + 16 <= columns {
        let row_0 = widened_half(simd, &weights[0][at..at + 16]);
        let row_1 = widened_half(simd, &weights[1][at..at + 16]);
        add(simd, &mut sums, [row_0, row_1], inputs, at);
    }
    let mut products = [[0; T]; OUTPUTS];
    for (products, sums) in products.iter_mut().zip(sums) {
        for (product, sum) in products.iter_mut().zip(sums) {
            *product = simd.reduce_sum_i32x8(sum);
        }
    }
    products
}

/// Adds the products of 16 columns.
#[inline(always)]
fn add<S: Simd, const T: usize>(
    simd: S,
    sums: &mut [[i32x8<S>; T]; OUTPUTS],
    weights: [i16x16<S>; OUTPUTS],
    inputs: [&[i16]; T],
    at: usize,
) {
    for (place, input) in inputs.into_iter().enumerate() {
        let input = i16x16::from_slice(simd, &input[at..at + 16]);
        let product = simd.pairwise_dot_product_i16x16(weights[0], input);
        sums[0][place] = simd.add_i32x8(sums[0][place], product);
        let product = simd.pairwise_dot_product_i16x16(weights[1], input);
        sums[1][place] = simd.add_i32x8(sums[1][place], product);
    }
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
    for (wide, values) in wide.as_chunks::<32>().0.iter().zip(values.as_chunks::<32>().0) {
        let (low, high) = simd.widen_i8x32(i8x32::from_slice(simd, values));
        let (wide_low, wide_high) = wide.split_at(16);
        let wide_low = i16x16::from_slice(simd, wide_low);
        sums = simd.add_i32x8(sums, simd.pairwise_dot_product_i16x16(low, wide_low));
        let wide_high = i16x16::from_slice(simd, wide_high);
        sums = simd.add_i32x8(sums, simd.pairwise_dot_product_i16x16(high, wide_high));
    }
    simd.reduce_sum_i32x8(sums)
}
