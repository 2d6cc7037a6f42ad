//! Products with int8 matrices. Sums of integers are exact, so the vector instructions of every
//! processor give the same result.

use fearless_simd::prelude::*;
use fearless_simd::{Simd, f32x16, i8x32, i8x64, i16x32, i32x16, u8x32};

use crate::file::{Matrix, PANEL};
use crate::float;

/// The largest magnitude of a rounded number. Larger ones could overflow a sum.
const PEAK: f32 = 8191.0;

/// The most columns of a matrix whose sums stay within 32 bits: 127 times `PEAK` times this.
pub(crate) const COLUMNS_MAX: usize = 2048;

/// Rows of numbers, rounded to 14 bits with one scale per row: the instructions multiply 16 bits.
///
/// They are stored in groups. A group holds the first pair of each of its rows, then the next, as
/// panels of weights do. The last one may end in rows of zeros.
#[derive(Default)]
pub(crate) struct Rounded {
    pairs: Vec<i32>,
    scales: Vec<f32>,
    /// The pairs of one row.
    row: Vec<i32>,
}

impl Rounded {
    /// Creates rows of numbers that are int8 already.
    #[inline(always)]
    pub(crate) fn of_rows<'a, S: Simd>(
        simd: S,
        rows: impl ExactSizeIterator<Item = (&'a [u8], f32)>,
        columns: usize,
    ) -> Rounded {
        let mut all = Rounded::default();
        all.clear(rows.len(), columns);
        let count = rows.len();
        for (place, (row, scale)) in rows.enumerate() {
            let (first, second) = row.split_at(columns / 2);
            for at in 0..columns / 2 {
                let wide = |byte: u8| i16::from(byte.cast_signed());
                all.row[at] = pair(wide(first[at]), wide(second[at]));
            }
            all.put(simd, place, count);
            all.scales.push(scale);
        }
        all
    }

    /// Replaces the rows.
    #[inline(always)]
    pub(crate) fn set<S: Simd>(&mut self, simd: S, rows: &[f32], columns: usize) {
        let count = rows.len() / columns;
        self.clear(count, columns);
        for place in 0..count {
            let row = &rows[place * columns..][..columns];
            let scale = float::peak(row).max(1e-9) / PEAK;
            let share = 1.0 / scale;
            let (first, second) = row.split_at(columns / 2);
            let pairs = &mut self.row[..first.len()];
            let second = &second[..first.len()];
            for at in 0..first.len() {
                pairs[at] =
                    pair(float::rounded(first[at] * share), float::rounded(second[at] * share));
            }
            self.put(simd, place, count);
            self.scales.push(scale);
        }
    }

    fn clear(&mut self, count: usize, columns: usize) {
        self.pairs.clear();
        self.pairs.resize(count.next_multiple_of(GROUP_MIN) * columns / 2, 0);
        self.scales.clear();
        self.row.resize(columns / 2, 0);
    }

    /// Puts the current row at its place among `count` rows.
    #[inline(always)]
    fn put<S: Simd>(&mut self, _: S, place: usize, count: usize) {
        let start = place - place % group_max::<S>();
        let size = group::<S>(count - start);
        let group = &mut self.pairs[start * self.row.len()..][place - start..];
        for at in 0..self.row.len() {
            group[at * size] = self.row[at];
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.scales.len()
    }
}

#[inline(always)]
fn pair(first: i16, second: i16) -> i32 {
    i32::from(second) << 16 | i32::from(first.cast_unsigned())
}

const GROUP_MIN: usize = 4;

/// The most rows of input that are multiplied at once: as many as have room for their sums in the
/// registers.
#[inline(always)]
const fn group_max<S: Simd>() -> usize {
    if size_of::<S::i32s>() == size_of::<[i32; PANEL]>() { 16 } else { GROUP_MIN }
}

/// Returns the size of the next group while so many rows are left.
#[inline(always)]
fn group<S: Simd>(left: usize) -> usize {
    left.next_multiple_of(GROUP_MIN).min(group_max::<S>())
}

/// Multiplies each input row with a matrix and adds its bias. `outputs` gets one row per input.
#[inline(always)]
pub(crate) fn multiply<S: Simd>(simd: S, matrix: &Matrix, inputs: &Rounded, outputs: &mut [f32]) {
    let mut start = 0;
    while start < inputs.count() {
        let size = group::<S>(inputs.count() - start);
        let pairs = &inputs.pairs[start * matrix.columns / 2..][..size * matrix.columns / 2];
        let mut tile = Tile { simd, matrix, inputs, start, row: 0 };
        for weights in matrix.weights.chunks_exact(PANEL * matrix.columns) {
            match size {
                16 => tile.put(tile.sums::<16>(weights, pairs), outputs),
                12 => tile.put(tile.sums::<12>(weights, pairs), outputs),
                8 => tile.put(tile.sums::<8>(weights, pairs), outputs),
                _ => tile.put(tile.sums::<GROUP_MIN>(weights, pairs), outputs),
            }
            tile.row += PANEL;
        }
        start += size;
    }
}

/// The products of a group of inputs with a panel of weights, by the first input and the first row
/// of weights.
#[derive(Clone, Copy)]
struct Tile<'a, S> {
    simd: S,
    matrix: &'a Matrix,
    inputs: &'a Rounded,
    start: usize,
    row: usize,
}

impl<S: Simd> Tile<'_, S> {
    /// Returns the sums of each input. Vector instructions are inlined into plain loops, but not
    /// into closures.
    #[inline(always)]
    fn sums<const T: usize>(&self, weights: &[u8], pairs: &[i32]) -> [i32x16<S>; T] {
        let simd = self.simd;
        let (weights, pairs) = (weights.as_chunks::<32>().0, pairs.as_chunks::<T>().0);
        let pairs = &pairs[..weights.len()];
        let mut sums = [simd.splat_i32x16(0); T];
        for at in 0..weights.len() {
            let signed: i8x32<S> = u8x32::from_slice(simd, &weights[at]).bitcast();
            let (low, high) = simd.widen_i8x32(signed);
            let weights = simd.combine_i16x16(low, high);
            for place in 0..T {
                let input: i16x32<S> = simd.splat_i32x16(pairs[at][place]).bitcast();
                let products = simd.pairwise_dot_product_i16x32(weights, input);
                sums[place] = simd.add_i32x16(sums[place], products);
            }
        }
        sums
    }

    #[inline(always)]
    fn put<const T: usize>(&self, sums: [i32x16<S>; T], outputs: &mut [f32]) {
        let Tile { simd, matrix, inputs, start, row } = *self;
        let scales = f32x16::from_slice(simd, &matrix.scales[row..][..PANEL]);
        let bias = f32x16::from_slice(simd, &matrix.bias[row..][..PANEL]);
        for place in 0..T {
            if start + place == inputs.count() {
                break;
            }
            let share = simd.splat_f32x16(inputs.scales[start + place]);
            let values = simd.cvt_f32_i32x16(sums[place]) * (scales * share) + bias;
            values.store_slice(&mut outputs[(start + place) * matrix.rows() + row..][..PANEL]);
        }
    }
}

/// Returns the product of two rows of int8 values, one of them widened.
#[inline(always)]
pub(crate) fn dot<S: Simd>(simd: S, wide: &[i16], values: &[i8]) -> i32 {
    let mut sums = simd.splat_i32x16(0);
    let (wide, values) = (wide.as_chunks::<64>().0, values.as_chunks::<64>().0);
    let values = &values[..wide.len()];
    for at in 0..wide.len() {
        let (low, high) = simd.widen_i8x64(i8x64::from_slice(simd, &values[at]));
        let (wide_low, wide_high) = wide[at].split_at(32);
        let wide_low = i16x32::from_slice(simd, wide_low);
        sums = simd.add_i32x16(sums, simd.pairwise_dot_product_i16x32(low, wide_low));
        let wide_high = i16x32::from_slice(simd, wide_high);
        sums = simd.add_i32x16(sums, simd.pairwise_dot_product_i16x32(high, wide_high));
    }
    simd.reduce_sum_i32x16(sums)
}
