//! Countersign's decisions as pure functions: tools, catalog and search, intent and policy,
//! configuration, error codes. Nothing here awaits, reads a clock, opens a file or draws a random
//! number; such inputs are passed as arguments.

pub mod caller;
pub mod catalog;
pub mod choice;
pub mod code;
pub mod config;
pub mod exposed;
pub mod intent;
pub mod last_words;
pub mod method;
pub mod policy;
pub mod refusal;
pub mod schema;
pub mod sighting;
pub mod signature;
pub mod taxonomy;
pub mod tool;
pub mod trust;
pub mod upstream;

pub use caller::Caller;
pub use catalog::Catalog;
pub use code::Code;
pub use refusal::Refusal;
pub use tool::{Class, Tool, ToolName};
