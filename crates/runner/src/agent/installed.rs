//! An agent program on this machine, and its known properties.

use std::path::{Path, PathBuf};

use crate::agent::isolation::Isolation;
use crate::agent::program::Provider;

/// A program that was found and has answered the queries.
#[derive(Clone, Debug)]
pub struct InstalledAgent {
    pub(super) provider: Provider,
    pub(super) program: PathBuf,
    pub(super) version: String,
    pub(super) isolation: Isolation,
    /// The flags that we would use and that this version does not have.
    pub(super) lacks: Vec<String>,
    /// Codex's models without built-in tools.
    pub(super) catalogue: Vec<u8>,
}

impl InstalledAgent {
    pub fn provider(&self) -> Provider {
        self.provider
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// Reports whether this program's own tools can be disabled.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Reports whether this version has one of the flags that we use.
    pub(super) fn has(&self, flag: &str) -> bool {
        !self.lacks.iter().any(|lacked| lacked == flag)
    }

    pub(super) fn catalogue(&self) -> &[u8] {
        &self.catalogue
    }

    /// For tests that only use the result: no program is queried.
    #[cfg(test)]
    pub(super) fn imagined(provider: Provider, isolation: Isolation) -> InstalledAgent {
        let program = PathBuf::from("/opt").join(provider.as_str());
        let catalogue = b"{\"models\":[]}".to_vec();
        let version = "1.2.3".to_owned();
        InstalledAgent { provider, program, version, isolation, lacks: Vec::new(), catalogue }
    }
}
