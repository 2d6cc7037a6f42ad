//! The ground floor of the workspace: strict JSON with its faults in plain words, trees of JSON and
//! YAML with the place of each value, hidden characters, near words and durations. It knows nothing
//! of the product.

pub mod document;
pub mod duration;
pub mod json;
pub mod near;
mod visible;

pub use visible::{hidden_characters, hidden_places, is_hidden, visible};
