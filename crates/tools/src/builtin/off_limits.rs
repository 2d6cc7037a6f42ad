//! Files and folders that no tool may touch.

use std::path::PathBuf;
use std::sync::Arc;

/// Countersign's own files: anyone who could change them would decide what may be called.
#[derive(Clone)]
pub struct OffLimits {
    /// Folders that no tool may enter, even inside the root.
    pub folders: Vec<PathBuf>,
    /// Files that no tool may change. Queried at each change, since a person may trust more of them
    /// meanwhile; if the query fails, nothing is changed.
    pub files: ProtectedFiles,
}

pub type ProtectedFiles = Arc<dyn Fn() -> Result<Vec<PathBuf>, String> + Send + Sync>;

impl Default for OffLimits {
    fn default() -> OffLimits {
        OffLimits { folders: Vec::new(), files: Arc::new(|| Ok(Vec::new())) }
    }
}
