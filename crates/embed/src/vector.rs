//! A text as a point: 256 numbers of length one, rounded to int8.

use fearless_simd::{Level, Simd, dispatch};

use crate::{float, kernel};

/// Numbers of a vector.
pub(crate) const DIMENSIONS: usize = 256;

/// The vector of a text. The cosine of two vectors is near one if their texts mean the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Vector {
    values: [i8; DIMENSIONS],
    scale: f32,
}

impl Vector {
    /// The length of [`Vector::to_bytes`].
    pub const BYTES: usize = DIMENSIONS + 4;

    pub(crate) fn new(values: &[f32; DIMENSIONS]) -> Vector {
        let length = float::dot(values, values).sqrt().max(1e-9);
        let scale = float::peak(values).max(1e-9) / 127.0;
        let values = values.map(|value| float::rounded(value / scale) as i8);
        Vector { values, scale: scale / length }
    }

    /// Appends the cosine with each of the others to `cosines`.
    pub fn append_cosines(&self, others: &[Vector], cosines: &mut Vec<f32>) {
        let wide = self.values.map(i16::from);
        dispatch!(Level::new(), simd => self.scan(simd, &wide, others, cosines));
    }

    #[inline(always)]
    fn scan<S: Simd>(
        &self,
        simd: S,
        wide: &[i16; DIMENSIONS],
        others: &[Vector],
        cosines: &mut Vec<f32>,
    ) {
        for other in others {
            let product = kernel::dot(simd, wide, &other.values);
            cosines.push(product as f32 * (self.scale * other.scale));
        }
    }

    /// Returns the form in which a vector is stored.
    pub fn to_bytes(&self) -> [u8; Vector::BYTES] {
        let mut bytes = [0; Vector::BYTES];
        let (values, scale) = bytes.split_at_mut(DIMENSIONS);
        for (byte, value) in values.iter_mut().zip(self.values) {
            *byte = value.cast_unsigned();
        }
        scale.copy_from_slice(&self.scale.to_le_bytes());
        bytes
    }

    /// Reads a stored vector; `None` if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Vector> {
        let (values, scale) = bytes.split_first_chunk::<DIMENSIONS>()?;
        let scale = f32::from_le_bytes(scale.try_into().ok()?);
        let is_length = scale.is_finite() && scale > 0.0 && scale <= 1.0;
        is_length.then(|| Vector { values: values.map(u8::cast_signed), scale })
    }
}
