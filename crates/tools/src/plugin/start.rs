//! How a plugin is to be started.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// How a plugin is started, and what of it is offered.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The program that runs it as `supervise -- …`, so that it ends with the gate.
    pub supervisor: Option<PathBuf>,
    /// Where its private folder is made. Made if it is not there.
    pub folder: PathBuf,
    /// Where it runs; by default where the gate does.
    pub cwd: Option<PathBuf>,
    /// The operations that become tools; `None` is all of them.
    pub expose: Option<BTreeSet<String>>,
    /// From the start until its operations are known.
    pub timeout: Duration,
}
