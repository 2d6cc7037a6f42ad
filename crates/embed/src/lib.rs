//! The search model: turns a query or the text of a tool into a vector. The cosine of two vectors
//! says how near the texts are in meaning. The weights are part of the program; `MODEL.md` says how
//! they were made. No I/O, and the same result on every machine.

#![allow(
    clippy::needless_range_loop,
    reason = "an iterator over two slices is not inlined into vector instructions"
)]

mod encoder;
mod file;
mod float;
mod kernel;
mod tokens;
mod vector;

use std::sync::LazyLock;

use fearless_simd::Level;

pub use file::ModelFault;
pub use vector::Vector;

use encoder::Encoder;
use tokens::Vocabulary;

/// Identifies the weights: the beginning of the SHA-256 of the model file. Vectors of different
/// versions must not be compared.
pub const VERSION: &str = "e3728e8130f756fa";

/// Tokens read of a query and of a tool, with the two that mark the ends.
const QUERY_TOKENS_MAX: usize = 64;
const TOOL_TOKENS_MAX: usize = 128;

static FILE: &[u8] = include_bytes!("../model/tool-embed-int8.bin");

/// A model that is ready for use.
pub struct SearchModel {
    vocabulary: Vocabulary,
    encoder: Encoder,
    level: Level,
}

impl SearchModel {
    /// Returns the model of the program. The first use takes some milliseconds.
    pub fn shipped() -> &'static SearchModel {
        static SHIPPED: LazyLock<SearchModel> = LazyLock::new(|| {
            SearchModel::read(FILE, Level::new()).expect("a test reads the model of the program")
        });
        &SHIPPED
    }

    /// Reports whether this processor computes vectors fast enough to do so for each query.
    #[cfg(target_arch = "x86_64")]
    pub fn is_fast_here() -> bool {
        Level::new().as_avx2().is_some()
    }

    /// Reports whether this processor computes vectors fast enough to do so for each query.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn is_fast_here() -> bool {
        cfg!(target_arch = "aarch64")
    }

    fn read(file: &'static [u8], level: Level) -> Result<SearchModel, ModelFault> {
        let tensors = file::Tensors::read(file)?;
        let vocabulary = Vocabulary::new(tensors.text("vocab")?)?;
        Ok(SearchModel { vocabulary, encoder: Encoder::read(&tensors)?, level })
    }

    /// Returns the vector of a query.
    pub fn query(&self, text: &str) -> Vector {
        self.encoder.embed(self.level, &self.vocabulary.tokens(text, QUERY_TOKENS_MAX))
    }

    /// Returns the vector of a tool's text.
    pub fn tool(&self, text: &str) -> Vector {
        self.encoder.embed(self.level, &self.vocabulary.tokens(text, TOOL_TOKENS_MAX))
    }
}

#[cfg(test)]
mod tests;
