//! The model file: `CSEM`, a version, the length of a JSON header, the header, and the tensors that
//! it names. Little endian. An int8 matrix `X` has one scale per row in `X.s`.

use std::collections::HashMap;

use serde::Deserialize;

/// The reason that a file is not a model.
#[derive(Debug, thiserror::Error)]
pub enum ModelFault {
    #[error("the model file has no valid header")]
    Header,
    #[error("the model file has no usable tensor '{0}'")]
    Tensor(String),
}

#[derive(Deserialize)]
struct FileHeader {
    tensors: HashMap<String, TensorPlace>,
}

/// The place of a tensor in the file.
#[derive(Deserialize)]
struct TensorPlace {
    #[serde(rename = "type")]
    kind: String,
    shape: Vec<usize>,
    at: usize,
    bytes: usize,
}

/// The tensors of a file, by name.
pub(crate) struct Tensors {
    file: &'static [u8],
    places: HashMap<String, TensorPlace>,
}

/// Rows of int8 values with one scale each. The values stay in the file.
pub(crate) struct Table {
    values: &'static [u8],
    pub(crate) columns: usize,
    pub(crate) scales: Vec<f32>,
}

impl Table {
    pub(crate) fn row(&self, row: usize) -> &'static [u8] {
        &self.values[row * self.columns..][..self.columns]
    }
}

/// An int8 matrix; a row holds the weights of one output. Its weights stay in the file, in panels
/// of `PANEL` rows. Two columns half a row apart make a pair; a panel holds the first pair of each
/// of its rows, then the next.
pub(crate) struct Matrix {
    pub(crate) weights: &'static [u8],
    pub(crate) columns: usize,
    pub(crate) scales: Vec<f32>,
    /// Zero where the matrix has no bias.
    pub(crate) bias: Vec<f32>,
}

impl Matrix {
    #[inline]
    pub(crate) fn rows(&self) -> usize {
        self.scales.len()
    }
}

/// Rows of a panel.
pub(crate) const PANEL: usize = 16;

impl Tensors {
    pub(crate) fn read(file: &'static [u8]) -> Result<Tensors, ModelFault> {
        let header = || {
            let rest = file.strip_prefix(b"CSEM\x02\0\0\0")?;
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let text = rest.get(..u32::from_le_bytes(*length) as usize)?;
            serde_json::from_slice::<FileHeader>(text).ok()
        };
        let FileHeader { tensors } = header().ok_or(ModelFault::Header)?;
        Ok(Tensors { file, places: tensors })
    }

    pub(crate) fn text(&self, name: &str) -> Result<&'static str, ModelFault> {
        let (_, bytes) = self.of_kind(name, "utf8")?;
        std::str::from_utf8(bytes).map_err(|_| ModelFault::Tensor(name.to_owned()))
    }

    /// Returns single-precision values.
    pub(crate) fn values(&self, name: &str) -> Result<Vec<f32>, ModelFault> {
        let (_, bytes) = self.of_kind(name, "f32")?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    /// Returns half-precision values as single-precision ones.
    pub(crate) fn halves(&self, name: &str) -> Result<Vec<f32>, ModelFault> {
        let (_, bytes) = self.of_kind(name, "f16")?;
        let halves = bytes.as_chunks::<2>().0.iter();
        Ok(halves.map(|bytes| widened(u16::from_le_bytes(*bytes))).collect())
    }

    pub(crate) fn table(&self, name: &str) -> Result<Table, ModelFault> {
        self.scaled(name, "i8")
    }

    /// Returns a matrix of int8 weights; `bias` names its bias, if it has one.
    pub(crate) fn matrix(&self, name: &str, bias: Option<&str>) -> Result<Matrix, ModelFault> {
        let Table { values: weights, columns, scales } = self.scaled(name, "i8p")?;
        let rows = scales.len();
        let bias = bias.map_or_else(|| Ok(vec![0.0; rows]), |bias| self.values(bias))?;
        let fits = bias.len() == rows && rows.is_multiple_of(PANEL);
        let matrix = fits.then_some(Matrix { weights, columns, scales, bias });
        matrix.ok_or_else(|| ModelFault::Tensor(name.to_owned()))
    }

    fn scaled(&self, name: &str, kind: &str) -> Result<Table, ModelFault> {
        let (shape, values) = self.of_kind(name, kind)?;
        let fault = || ModelFault::Tensor(name.to_owned());
        let [rows, columns] = *shape else { return Err(fault()) };
        let scales = self.values(&format!("{name}.s"))?;
        let fits = rows.checked_mul(columns) == Some(values.len()) && scales.len() == rows;
        if fits { Ok(Table { values, columns, scales }) } else { Err(fault()) }
    }

    fn of_kind(&self, name: &str, kind: &str) -> Result<(&[usize], &'static [u8]), ModelFault> {
        let place = self.places.get(name).filter(|place| place.kind == kind);
        let found = place.and_then(|place| {
            let end = place.at.checked_add(place.bytes)?;
            Some((&*place.shape, self.file.get(place.at..end)?))
        });
        found.ok_or_else(|| ModelFault::Tensor(name.to_owned()))
    }
}

/// Widens a half-precision number. The model has none that is infinite.
fn widened(half: u16) -> f32 {
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(half >> 10 & 0x1f);
    let fraction = f32::from(half & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2_f32.powi(-24),
        _ => (fraction + 1024.0) * 2_f32.powi(exponent - 25),
    };
    sign * magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers_are_widened() {
        for (half, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65504.0),
        ] {
            assert_eq!(widened(half), value);
        }
    }

    #[test]
    fn a_file_that_is_cut_or_foreign_is_rejected() {
        let read = |file: &'static [u8]| Tensors::read(file).map(|_| ());
        assert!(matches!(read(b""), Err(ModelFault::Header)));
        assert!(matches!(read(b"CSEM\x01\0\0\0\x02\0\0\0{}"), Err(ModelFault::Header)));
        assert!(matches!(read(b"CSEM\x02\0\0\0\xff\xff\0\0{}"), Err(ModelFault::Header)));
        let outside: &[u8] = b"CSEM\x02\0\0\0\x46\0\0\0{\"tensors\":{\"vocab\":\
            {\"type\":\"utf8\",\"shape\":[9],\"at\":4,\"bytes\":99999}}}    ";
        let tensors = Tensors::read(outside).expect("the header is valid");
        assert!(matches!(tensors.text("vocab"), Err(ModelFault::Tensor(_))));
        assert!(matches!(tensors.values("vocab"), Err(ModelFault::Tensor(_))));
    }
}
