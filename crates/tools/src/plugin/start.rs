//! Options for starting a plugin.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options for starting a plugin and offering its operations.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The program that runs it as `supervise -- …`, so that it ends with the gate.
    pub supervisor: Option<PathBuf>,
    /// The parent of its private folder. Created if it does not exist.
    pub folder: PathBuf,
    /// The folder it runs in; by default the gate's.
    pub cwd: Option<PathBuf>,
    /// The operations that become tools; `None` is all of them.
    pub expose: Option<BTreeSet<String>>,
    /// The operations that are needed; `None` is all that become tools. Of the others, those that
    /// cannot be tools are left out.
    pub needed: Option<BTreeSet<String>>,
    /// The time limit from the start until its operations are known.
    pub timeout: Duration,
    /// Reads the secrets that the variables of its `env` refer to.
    pub secrets: SecretSource,
}

/// Reads the value of a secret by its name. It may block.
#[derive(Clone)]
pub struct SecretSource(Arc<ReadSecret>);

type ReadSecret = dyn Fn(&str) -> Result<Option<String>, String> + Send + Sync;

impl SecretSource {
    pub fn new(
        read: impl Fn(&str) -> Result<Option<String>, String> + Send + Sync + 'static,
    ) -> SecretSource {
        SecretSource(Arc::new(read))
    }

    /// Returns a source without any secrets.
    pub fn none() -> SecretSource {
        SecretSource::new(|_| Ok(None))
    }

    pub(super) fn read(&self, name: &str) -> Result<Option<String>, String> {
        (self.0)(name)
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretSource")
    }
}
