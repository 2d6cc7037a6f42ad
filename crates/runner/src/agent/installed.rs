//! An agent program of this machine, and what is known of it.

use std::path::{Path, PathBuf};

use crate::agent::isolation::Isolation;
use crate::agent::program::Provider;

/// A program that was found and has answered.
#[derive(Clone, Debug)]
pub struct InstalledAgent {
    pub(super) provider: Provider,
    pub(super) program: PathBuf,
    pub(super) version: String,
    pub(super) isolation: Isolation,
    /// Codex's models without tools of their own.
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

    /// Tells whether this program can be left without tools of its own.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    pub(super) fn catalogue(&self) -> &[u8] {
        &self.catalogue
    }

    /// For tests of what is made of a program: nothing is asked.
    #[cfg(test)]
    pub(super) fn imagined(provider: Provider, isolation: Isolation) -> InstalledAgent {
        let program = PathBuf::from("/opt").join(provider.as_str());
        let catalogue = b"{\"models\":[]}".to_vec();
        InstalledAgent { provider, program, version: "1.2.3".to_owned(), isolation, catalogue }
    }
}
