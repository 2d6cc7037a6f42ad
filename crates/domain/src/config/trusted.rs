//! A `./countersign.json` that a person has trusted, laid over the person's own configuration.

use super::{Config, Faults, ParsedConfig, read};

#[cfg(test)]
mod tests;

/// Lays a trusted file over the person's own configuration, all of it as if it were the person's
/// own. What it says takes the place of what was there: key by key, servers, plugins and profiles
/// by name. Lists of tools narrow and redaction is added to, as from a file that is not trusted. A
/// file with faults changes nothing. The notes are on the trusted file.
pub fn lay_over(own: Config, trusted: &str) -> Result<ParsedConfig, Faults> {
    read::trusted(trusted, own)
}
