//! Applies a `./countersign.json` that the user has trusted to the user's own configuration.

use super::{Config, Faults, ParsedConfig, read};

#[cfg(test)]
mod tests;

/// Applies a trusted file to the user's own configuration as if it were the user's own. Its values
/// replace existing ones: key by key; servers, plugins and profiles by name. As with an untrusted
/// file, tool lists narrow and redaction is added. A file with faults changes nothing. The notes
/// refer to the trusted file.
pub fn lay_over(own: Config, trusted: &str) -> Result<ParsedConfig, Faults> {
    read::trusted(trusted, own)
}
