//! Files and folders that no tool may touch.

use std::path::PathBuf;
use std::sync::Arc;

/// Countersign's own files: whoever could change them would decide what may be called.
#[derive(Clone)]
pub struct OffLimits {
    /// Folders that no tool reaches, also inside the root.
    pub folders: Vec<PathBuf>,
    /// Files that no tool changes. Asked for at each change, since a person may trust more of them
    /// meanwhile; where they cannot be told, nothing is changed.
    pub files: ProtectedFiles,
}

pub type ProtectedFiles = Arc<dyn Fn() -> Result<Vec<PathBuf>, String> + Send + Sync>;

impl Default for OffLimits {
    fn default() -> OffLimits {
        OffLimits { folders: Vec::new(), files: Arc::new(|| Ok(Vec::new())) }
    }
}
