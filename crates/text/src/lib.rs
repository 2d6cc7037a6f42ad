//! The ground floor of the workspace: strict JSON with its faults in plain words, trees of JSON and
//! YAML with the place of each value, hidden characters, near words and durations, hexadecimal digits,
//! percent-encoding, and lists of words in files. It knows nothing of the product.

pub mod document;
pub mod duration;
pub mod hex;
pub mod json;
pub mod near;
pub mod percent;
mod visible;
pub mod words;

pub use visible::{hidden_characters, hidden_places, is_hidden, visible};
