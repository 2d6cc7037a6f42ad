//! The network: three transformer layers over the tokens of a text, their mean, and a projection to
//! the dimensions of a vector.

use fearless_simd::{Level, Simd, dispatch};

use crate::file::{Matrix, ModelFault, Table, Tensors};
use crate::float::{self, Norm};
use crate::kernel::{self, Rounded};
use crate::vector::{DIMENSIONS, Vector};

const LAYERS: usize = 3;

/// Numbers that represent a token, and those of each attention head.
const WIDTH: usize = 384;
const HEAD: usize = 32;

/// Keys that a query is compared with at once.
const KEYS: usize = 16;

pub(crate) struct Encoder {
    tokens: Table,
    lift: Matrix,
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    projection: Matrix,
}

struct Layer {
    query: Matrix,
    key: Matrix,
    value: Matrix,
    attention: Matrix,
    attention_norm: Norm,
    up: Matrix,
    down: Matrix,
    norm: Norm,
}

/// Working memory for one text.
struct Pass {
    /// One row of `WIDTH` numbers per token.
    rows: Vec<f32>,
    rounded: Rounded,
}

impl Encoder {
    pub(crate) fn read(tensors: &Tensors) -> Result<Encoder, ModelFault> {
        let layers: Result<Vec<Layer>, ModelFault> =
            (0..LAYERS).map(|layer| Layer::read(tensors, layer)).collect();
        let tokens = tensors.table("token")?;
        let lift = tensors.matrix("token.up", None)?;
        Ok(Encoder {
            lift: shaped(lift, "token.up", [WIDTH, tokens.columns])?,
            tokens,
            positions: tensors.halves("position")?,
            norm: norm(tensors, "norm")?,
            layers: layers?,
            projection: shaped(tensors.matrix("out", None)?, "out", [DIMENSIONS, WIDTH])?,
        })
    }

    /// Returns the vector of a text, given as tokens of the vocabulary.
    pub(crate) fn embed(&self, level: Level, tokens: &[u16]) -> Vector {
        let most = self.positions.len() / WIDTH;
        let tokens = &tokens[..tokens.len().min(most)];
        dispatch!(level, simd => self.run(simd, tokens))
    }

    #[inline(always)]
    fn run<S: Simd>(&self, simd: S, tokens: &[u16]) -> Vector {
        let table = tokens.iter().map(|&token| {
            let token = usize::from(token);
            (self.tokens.row(token), self.tokens.scales[token])
        });
        let rounded = Rounded::of_rows(simd, table, self.tokens.columns);
        let mut pass = Pass { rows: vec![0.0; tokens.len() * WIDTH], rounded };
        kernel::multiply(simd, &self.lift, &pass.rounded, &mut pass.rows);
        self.norm.add(&mut pass.rows, &self.positions);
        for layer in &self.layers {
            layer.run(simd, &mut pass);
        }
        let mut mean = [0.0; WIDTH];
        for row in pass.rows.as_chunks::<WIDTH>().0 {
            for (mean, value) in mean.iter_mut().zip(row) {
                *mean += value / tokens.len() as f32;
            }
        }
        pass.rounded.set(simd, &mean, WIDTH);
        let mut values = [0.0; DIMENSIONS];
        kernel::multiply(simd, &self.projection, &pass.rounded, &mut values);
        Vector::new(&values)
    }
}

impl Layer {
    fn read(tensors: &Tensors, layer: usize) -> Result<Layer, ModelFault> {
        let matrix = |name: &str, shape: [usize; 2]| {
            let (name, bias) =
                (format!("layer{layer}.{name}.weight"), format!("layer{layer}.{name}.bias"));
            shaped(tensors.matrix(&name, Some(&bias))?, &name, shape)
        };
        let inner = tensors.values(&format!("layer{layer}.up.bias"))?.len();
        Ok(Layer {
            query: matrix("query", [WIDTH, WIDTH])?,
            key: matrix("key", [WIDTH, WIDTH])?,
            value: matrix("value", [WIDTH, WIDTH])?,
            attention: matrix("attn_out", [WIDTH, WIDTH])?,
            attention_norm: norm(tensors, &format!("layer{layer}.norm1"))?,
            up: matrix("up", [inner, WIDTH])?,
            down: matrix("down", [WIDTH, inner])?,
            norm: norm(tensors, &format!("layer{layer}.norm2"))?,
        })
    }

    #[inline(always)]
    fn run<S: Simd>(&self, simd: S, pass: &mut Pass) {
        let Pass { rows, rounded } = pass;
        rounded.set(simd, rows, WIDTH);
        let queries = product(simd, &self.query, rounded);
        let keys = product(simd, &self.key, rounded);
        let values = product(simd, &self.value, rounded);
        rounded.set(simd, &attend(&queries, &keys, &values), WIDTH);
        self.attention_norm.add(rows, &product(simd, &self.attention, rounded));
        rounded.set(simd, rows, WIDTH);
        let mut inner = product(simd, &self.up, rounded);
        float::gelu(&mut inner);
        rounded.set(simd, &inner, self.up.rows());
        self.norm.add(rows, &product(simd, &self.down, rounded));
    }
}

#[inline(always)]
fn product<S: Simd>(simd: S, matrix: &Matrix, inputs: &Rounded) -> Vec<f32> {
    let mut outputs = vec![0.0; inputs.count() * matrix.rows()];
    kernel::multiply(simd, matrix, inputs, &mut outputs);
    outputs
}

/// Mixes the values of all tokens into each, by how well its query fits their keys; every head for
/// itself.
#[inline(always)]
fn attend(queries: &[f32], keys: &[f32], values: &[f32]) -> Vec<f32> {
    let count = queries.len() / WIDTH;
    let mut mixed = vec![0.0; queries.len()];
    let mut columns = vec![[[0.0; KEYS]; HEAD]; count.div_ceil(KEYS)];
    let mut shares = vec![[0.0; KEYS]; columns.len()];
    for head in 0..WIDTH / HEAD {
        let of = |row: usize| row * WIDTH + head * HEAD;
        for token in 0..count {
            let key = &keys[of(token)..][..HEAD];
            for at in 0..HEAD {
                columns[token / KEYS][at][token % KEYS] = key[at];
            }
        }
        for token in 0..count {
            let query = &queries[of(token)..][..HEAD];
            for group in 0..columns.len() {
                shares[group] = fits(query, &columns[group]);
            }
            let shares = &mut shares.as_flattened_mut()[..count];
            float::softmax(shares);
            let mut sums = [0.0; HEAD];
            for other in 0..count {
                let (share, values) = (shares[other], &values[of(other)..][..HEAD]);
                for at in 0..HEAD {
                    sums[at] += share * values[at];
                }
            }
            mixed[of(token)..][..HEAD].copy_from_slice(&sums);
        }
    }
    mixed
}

/// Returns how well a query fits each of some keys, given column by column.
#[inline(always)]
fn fits(query: &[f32], columns: &[[f32; KEYS]; HEAD]) -> [f32; KEYS] {
    let mut fits = [0.0; KEYS];
    for at in 0..HEAD {
        let value = query[at] / (HEAD as f32).sqrt();
        for key in 0..KEYS {
            fits[key] += value * columns[at][key];
        }
    }
    fits
}

/// Returns the matrix if it has this shape and the kernel can multiply it.
fn shaped(matrix: Matrix, name: &str, shape: [usize; 2]) -> Result<Matrix, ModelFault> {
    let fits = [matrix.rows(), matrix.columns] == shape
        && shape[1].is_multiple_of(2)
        && shape[1] <= kernel::COLUMNS_MAX;
    if fits { Ok(matrix) } else { Err(ModelFault::Tensor(name.to_owned())) }
}

fn norm(tensors: &Tensors, name: &str) -> Result<Norm, ModelFault> {
    let weight = tensors.values(&format!("{name}.weight"))?;
    let bias = tensors.values(&format!("{name}.bias"))?;
    let fits = weight.len() == WIDTH && bias.len() == WIDTH;
    if fits { Ok(Norm { weight, bias }) } else { Err(ModelFault::Tensor(name.to_owned())) }
}
