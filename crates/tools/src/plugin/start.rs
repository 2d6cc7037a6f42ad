//! Options for starting a plugin.

use std::collections::BTreeSet;
use std::path::PathBuf;
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
}
