//! Lists the available plugins. Reads folders and files and starts nothing; a plugin's faults are
//! part of its entry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use domain::config;
use serde_json::{Map, Value};

use super::manifest::{self, Declaration, Manifest};
use super::{file, limits};

pub const MANIFEST: &str = "plugin.yaml";
const PREFIXES: [&str; 2] = ["awf-plugin-", "countersign-plugin-"];

/// The variables that name plugin folders, with their values when read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    pub countersign_plugins_path: Option<String>,
    pub awf_plugins_path: Option<String>,
    pub xdg_data_home: Option<String>,
    pub home: Option<String>,
}

/// The places searched for plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Plugin folders named by the environment.
    listed: Vec<(PathBuf, PluginOrigin)>,
    /// The project's folder: it may contain plugin folders and files that declare plugins.
    project: PathBuf,
    /// The person's own plugin folders.
    own: Vec<PathBuf>,
}

/// The project folders for our files, and for those of AWF.
const PROJECT_FOLDERS: [&str; 2] = [".countersign", ".awf"];

/// The origin of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginOrigin {
    /// The person who runs the gate.
    Own,
    /// The author of the current project: such a plugin runs only after the person approves it.
    Project,
}

/// A plugin, or an entry that looks like one.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPlugin {
    /// The name from the manifest, or the folder's name if the manifest cannot be read.
    pub name: String,
    pub version: String,
    pub description: String,
    /// Absolute and without links, if they could be resolved.
    pub folder: PathBuf,
    pub executable: PathBuf,
    pub manifest_sha256: String,
    pub executable_sha256: String,
    pub origin: PluginOrigin,
    /// The digest in the person's own config, which approves this executable and no other.
    pub pinned: Option<String>,
    /// The manifest's defaults, overridden by the project's declaration, overridden by the person's
    /// config.
    pub config: Map<String, Value>,
    /// The environment variables that the person's own config gives it.
    pub env: Vec<(String, config::ConfigTemplate)>,
    /// The reason it cannot be started.
    pub fault: Option<String>,
    /// The folder of the plugin of the same name that is used instead.
    pub shadowed_by: Option<PathBuf>,
}

/// All plugins and faults that were found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Plugins in use and shadowed ones; the first of each name is the one in use.
    pub plugins: Vec<FoundPlugin>,
    /// Faults that belong to no plugin.
    pub faults: Vec<String>,
}

impl Variables {
    /// Reads the variables of this process.
    pub fn of_process() -> Variables {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Variables {
            countersign_plugins_path: read("COUNTERSIGN_PLUGINS_PATH"),
            awf_plugins_path: read("AWF_PLUGINS_PATH"),
            xdg_data_home: read("XDG_DATA_HOME"),
            home: read("HOME"),
        }
    }
}

impl Places {
    pub fn new(variables: &Variables, project: &Path) -> Places {
        let list = variables.countersign_plugins_path.as_ref();
        let list = list.or(variables.awf_plugins_path.as_ref()).map_or("", String::as_str);
        let listed = list.split(':').filter(|entry| !entry.is_empty()).map(|entry| {
            // A relative path means a different folder in each project, so it belongs to the
            // project.
            let path = Path::new(entry);
            let origin = if path.is_absolute() { PluginOrigin::Own } else { PluginOrigin::Project };
            (project.join(path), origin)
        });
        let absolute = |path: &String| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let home = variables.home.as_ref().and_then(absolute);
        let data = variables.xdg_data_home.as_ref().and_then(absolute);
        let data = data.or_else(|| Some(home?.join(".local/share")));
        let own =
            ["countersign", "awf"].map(|name| Some(data.as_ref()?.join(name).join("plugins")));
        Places {
            listed: listed.collect(),
            project: project.to_owned(),
            own: own.into_iter().flatten().collect(),
        }
    }
}

impl FoundPlugin {
    /// The identity that an approval is bound to: it changes with the executable's path or bytes,
    /// and with the manifest.
    pub fn identity(&self) -> String {
        let (executable, manifest) = (&self.executable_sha256, &self.manifest_sha256);
        format!("plugin {:?} sha256:{executable} manifest sha256:{manifest}", self.executable)
    }

    /// Reports whether it may be started only after the person has approved it.
    pub fn needs_approval(&self) -> bool {
        self.origin == PluginOrigin::Project && self.pinned.is_none()
    }

    /// Reports whether it must match, byte for byte, what was approved.
    pub(super) fn is_bound(&self) -> bool {
        self.origin == PluginOrigin::Project || self.pinned.is_some()
    }
}

/// Searches all places. Reads every executable whole, so it must not run on async threads.
pub fn find(places: &Places, configured: &[config::PluginConfig]) -> Findings {
    let mut findings = Findings::default();
    let declared = declared(places, &mut findings.faults);
    let search = PluginSearch { configured, declared: &declared };
    for plugin in configured {
        if let Some(path) = &plugin.path {
            findings.add(search.named(&plugin.name, Path::new(path), PluginOrigin::Own));
        }
    }
    for (folder, origin) in &places.listed {
        search.folder(folder, *origin, &mut findings);
    }
    for declaration in &declared {
        if let Some(path) = &declaration.path {
            let path = places.project.join(path);
            findings.add(search.named(&declaration.name, &path, PluginOrigin::Project));
        }
    }
    for name in PROJECT_FOLDERS {
        let folder = places.project.join(name).join("plugins");
        search.folder(&folder, PluginOrigin::Project, &mut findings);
    }
    for folder in &places.own {
        search.folder(folder, PluginOrigin::Own, &mut findings);
    }
    findings.note_missing(configured, &declared);
    findings
}

impl Findings {
    fn add(&mut self, mut found: FoundPlugin) {
        let first = self.plugins.iter().find(|known| known.name == found.name);
        found.shadowed_by = first.map(|first| first.folder.clone());
        // Named twice, it is still one plugin.
        let is_same =
            |known: &FoundPlugin| known.folder == found.folder && known.name == found.name;
        if !self.plugins.iter().any(is_same) {
            self.plugins.push(found);
        }
    }

    /// Reports plugins that are named without a path and were not found.
    fn note_missing(&mut self, configured: &[config::PluginConfig], declared: &[Declaration]) {
        let names = configured.iter().map(|plugin| (&plugin.name, "the config"));
        let names = names.chain(declared.iter().map(|plugin| (&plugin.name, "the project")));
        for (name, who) in names {
            if !self.plugins.iter().any(|found| found.name == *name) {
                self.faults.push(format!("{who} names the plugin '{name}', which was not found"));
            }
        }
    }
}

fn declared(places: &Places, faults: &mut Vec<String>) -> Vec<Declaration> {
    let mut all: Vec<Declaration> = Vec::new();
    for name in PROJECT_FOLDERS {
        let path = places.project.join(name).join("plugins.yaml");
        if path.symlink_metadata().is_err() {
            continue;
        }
        let read = file::read_text(&path).and_then(|file| {
            let read = manifest::declarations(&file.text);
            read.map_err(|fault| format!("{}: {fault}", path.display()))
        });
        match read {
            Ok(declared) => {
                let new = |plugin: &Declaration| !all.iter().any(|known| known.name == plugin.name);
                let declared: Vec<_> = declared.into_iter().filter(new).collect();
                all.extend(declared);
            }
            Err(fault) => faults.push(fault),
        }
    }
    all
}

struct PluginSearch<'a> {
    configured: &'a [config::PluginConfig],
    declared: &'a [Declaration],
}

impl PluginSearch<'_> {
    fn folder(&self, folder: &Path, origin: PluginOrigin, findings: &mut Findings) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        if paths.len() > limits::FOLDERS_MAX {
            let most = limits::FOLDERS_MAX;
            let shown = folder.display();
            findings.faults.push(format!("{shown}: only the first {most} entries are searched"));
            paths.truncate(most);
        }
        for path in paths.iter().filter(|path| path.join(MANIFEST).symlink_metadata().is_ok()) {
            findings.add(self.look(path, None, origin));
        }
    }

    /// Reads a plugin whose folder or executable was named explicitly.
    fn named(&self, name: &str, path: &Path, origin: PluginOrigin) -> FoundPlugin {
        let found = if !path.is_absolute() {
            let fault = format!("the path '{}' must be absolute", path.display());
            FoundPlugin { fault: Some(fault), ..self.empty(path, origin) }
        } else if path.is_dir() {
            self.look(path, None, origin)
        } else {
            let folder = path.parent().unwrap_or(path);
            self.look(folder, Some(path), origin)
        };
        if found.fault.is_none() && found.name != name {
            let fault = format!("its manifest has the name '{}', expected '{name}'", found.name);
            return FoundPlugin { name: name.to_owned(), fault: Some(fault), ..found };
        }
        FoundPlugin { name: name.to_owned(), ..found }
    }

    fn empty(&self, folder: &Path, origin: PluginOrigin) -> FoundPlugin {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        FoundPlugin {
            name,
            version: String::new(),
            description: String::new(),
            folder: folder.to_owned(),
            executable: PathBuf::new(),
            manifest_sha256: String::new(),
            executable_sha256: String::new(),
            origin,
            pinned: None,
            config: Map::new(),
            env: Vec::new(),
            fault: None,
            shadowed_by: None,
        }
    }

    fn look(&self, folder: &Path, executable: Option<&Path>, origin: PluginOrigin) -> FoundPlugin {
        let mut found = self.empty(folder, origin);
        let looked = self.look_into(&mut found, executable);
        found.fault = looked.err();
        found
    }

    fn look_into(&self, found: &mut FoundPlugin, executable: Option<&Path>) -> Result<(), String> {
        let given = found.folder.clone();
        let resolve = |path: &Path| {
            path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
        };
        found.folder = resolve(&given)?;
        let path = found.folder.join(MANIFEST);
        let file = file::read_text(&path)?;
        let manifest =
            Manifest::parse(&file.text).map_err(|fault| format!("{}: {fault}", path.display()))?;
        found.manifest_sha256 = file.sha256;
        found.name.clone_from(&manifest.name);
        found.version.clone_from(&manifest.version);
        found.description.clone_from(&manifest.description);
        let declared = self.declared.iter().find(|plugin| plugin.name == manifest.name);
        let configured = self.configured.iter().find(|plugin| plugin.name == manifest.name);
        found.pinned = configured.and_then(|plugin| plugin.sha256.clone());
        found.env = configured.map(|plugin| plugin.env.clone()).unwrap_or_default();
        found.executable = match executable {
            Some(path) => resolve(path)?,
            // The name it was installed under, not the one a link leads to.
            None => executable_in(&found.folder, &given)?,
        };
        found.executable_sha256 = file::digest(&found.executable)?;
        let pins = [found.pinned.as_ref(), declared.and_then(|plugin| plugin.sha256.as_ref())];
        if let Some(pin) = pins.into_iter().flatten().find(|pin| **pin != found.executable_sha256) {
            let is = &found.executable_sha256;
            return Err(format!("the executable's SHA-256 is {is}, expected {pin}"));
        }
        let mut given: BTreeMap<String, Value> = BTreeMap::new();
        let layers =
            [declared.map(|plugin| &plugin.config), configured.map(|plugin| &plugin.config)];
        for layer in layers.into_iter().flatten() {
            given.extend(layer.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        found.config = manifest.configured(given.into_iter().collect())?;
        Ok(())
    }
}

/// Finds `awf-plugin-<folder>` or `countersign-plugin-<folder>`; the name of a folder that already
/// has the prefix is used unchanged.
fn executable_in(folder: &Path, given: &Path) -> Result<PathBuf, String> {
    let names = [given, folder].into_iter().filter_map(|path| path.file_name()?.to_str());
    let mut tried = Vec::new();
    for name in names {
        for prefix in PREFIXES {
            let file =
                if name.starts_with(prefix) { name.to_owned() } else { format!("{prefix}{name}") };
            let path = folder.join(&file);
            if let Ok(path) = path.canonicalize() {
                return Ok(path);
            }
            if !tried.contains(&file) {
                tried.push(file);
            }
        }
    }
    Err(format!("{}: no executable found, expected {}", folder.display(), tried.join(" or ")))
}
