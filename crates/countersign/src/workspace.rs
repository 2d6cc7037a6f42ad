//! The built-in tools in their configured form, as server `workspace`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use domain::config;
use domain::exposed::Names;
use gateway::plan::Builtin;
use tools::builtin::{OffLimits, Permissions, Workspace};

pub(crate) const NAME: &str = domain::tool::WORKSPACE;

/// The root if the configuration names none.
const CURRENT: &str = ".";

/// Keeps the last instance, so that a reload without changes to it replaces nothing.
pub(crate) struct Keeper {
    pub(crate) off_limits: OffLimits,
    supervisor: Option<PathBuf>,
    last: Mutex<Option<(config::WorkspaceConfig, Arc<Builtin>)>>,
}

impl Keeper {
    pub(crate) fn new(off_limits: OffLimits, supervisor: Option<PathBuf>) -> Keeper {
        Keeper { off_limits, supervisor, last: Mutex::default() }
    }

    /// Returns the tools; none if they are not wanted or not available, for the reason in the log.
    pub(crate) fn builtin(&self, wanted: &config::WorkspaceConfig) -> Option<Arc<Builtin>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !wanted.enabled {
            *last = None;
            return None;
        }
        if let Some((made_for, builtin)) = &*last
            && made_for == wanted
        {
            return Some(builtin.clone());
        }
        let made = self.make(wanted).inspect_err(|reason| {
            tracing::warn!("no built-in tools: {reason}");
        });
        let made = made.ok().map(Arc::new);
        *last = made.clone().map(|builtin| (wanted.clone(), builtin));
        made
    }

    fn make(&self, wanted: &config::WorkspaceConfig) -> Result<Builtin, String> {
        let root = Path::new(&wanted.root);
        if let Some(words) = too_wide(&wanted.root) {
            return Err(words);
        }
        let allowed = Permissions {
            write: wanted.write,
            shell: wanted.shell,
            allow_outside: wanted.allow_outside,
        };
        let workspace = Workspace::new(root, allowed, self.off_limits.clone())?
            .supervised(self.supervisor.clone());
        let root = workspace.root().to_str().ok_or("the root's path is not UTF-8")?;
        Ok(Builtin {
            name: NAME.into(),
            root: root.into(),
            definitions: workspace.definitions(),
            names: Names::Prefixed,
            call_timeout: Workspace::CALL_TIMEOUT,
            provider: Arc::new(workspace),
        })
    }
}

/// Returns the root of a configuration's tools, or the reason there are none; for people.
pub(crate) fn words(wanted: &config::WorkspaceConfig) -> Result<String, String> {
    if let Some(words) = too_wide(&wanted.root) {
        return Err(words);
    }
    let root = Path::new(&wanted.root).canonicalize();
    root.map(|root| root.display().to_string()).map_err(|error| format!("{}: {error}", wanted.root))
}

/// Returns a message if the default root is too broad. Starting the gate at the root of the disk or
/// in one's home folder does not mean that agents may read all of it.
fn too_wide(root: &str) -> Option<String> {
    if root != CURRENT {
        return None;
    }
    let here = Path::new(root).canonicalize().ok()?;
    is_wide(&here).then(|| {
        format!(
            "the current folder '{}' is too broad to open by default: start in a project folder, \
             or set 'workspace.root' in the config",
            here.display()
        )
    })
}

fn is_wide(folder: &Path) -> bool {
    let person = std::env::var_os("HOME").and_then(|home| Path::new(&home).canonicalize().ok());
    folder == Path::new("/") || person.is_some_and(|person| folder == person)
}

/// Returns the folder that a step's tools work in. A folder that is too broad is allowed only if
/// the user's own config names it.
pub(crate) fn step_root(
    folder: &Path,
    of_config: &config::WorkspaceConfig,
) -> Result<PathBuf, String> {
    let root = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    let named = || {
        of_config.root != CURRENT
            && Path::new(&of_config.root).canonicalize().is_ok_and(|named| named == root)
    };
    if is_wide(&root) && !named() {
        return Err(format!(
            "the step's folder '{}' is too broad to open by default: give the step a 'dir', or \
             set 'workspace.root' to this folder in the config",
            root.display()
        ));
    }
    Ok(root)
}
