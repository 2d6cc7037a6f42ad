//! The gate's own config, to which the servers of other programs are added.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Map, Value, json};
use vault::{Secret, Space, Vault, VaultError};

use super::change::{FileChange, StoredSecret, unreadable};
use super::settings_file::text_of;
use crate::cli::Reference;
use crate::exit::Failure;
use crate::home::Home;
use crate::output;
use clients::edit;
use clients::import::{self, ImportedServer};
use clients::{ENTRY, SettingsSyntax};

/// The member of our config that holds the servers.
const CONTAINER: &str = "mcpServers";

/// The members under which programs keep their servers.
const CONTAINERS: &[&str] = &["mcpServers", "mcp_servers", "servers", "context_servers", "mcp"];

/// The start of the names of secrets that somebody else chose.
const IMPORTED: &str = "IMPORTED_";

/// The source of an import, and how far it is trusted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    /// The name of the client, which is appended to a name that is taken.
    pub(super) name: &'a str,
    /// Somebody else may have written the file: its servers wait for approval, and its references
    /// to variables are not the user's own.
    pub(super) is_untrusted: bool,
    /// References that the user named.
    pub(super) allowed: &'a [Reference],
}

impl Origin<'_> {
    /// Returns the name to store a secret under. Somebody else's is never one that the user may
    /// have chosen, for a value stored already or later.
    fn secret_name(&self, wanted: &str) -> String {
        match self.is_untrusted {
            true => format!("{IMPORTED}{wanted}"),
            false => wanted.to_owned(),
        }
    }
}

/// Our config with what is to be added.
pub(super) struct GateConfig {
    pub(super) change: FileChange,
    /// New secrets, by name.
    pub(super) secrets: BTreeMap<String, String>,
    vault: Vault,
}

impl GateConfig {
    pub(super) fn read(home: &Home) -> Result<GateConfig, Failure> {
        let file = home.config_files().first().cloned();
        let file = file.ok_or_else(|| Failure::system("no home directory: set HOME"))?;
        let change = FileChange::of(file, None, SettingsSyntax::Json, CONTAINER)?;
        let vault = Vault::of_home(home.path());
        // A config with faults is refused later.
        if let Ok(read) = domain::config::parse(change.before.as_deref().unwrap_or("{}")) {
            vault.choose_key(read.config.secrets.key);
        }
        Ok(GateConfig { change, secrets: BTreeMap::new(), vault })
    }

    /// Adds the other servers of a client; with `is_moving`, takes them out of its file.
    pub(super) fn import(
        &mut self,
        client: &mut FileChange,
        origin: Origin<'_>,
        is_moving: bool,
    ) -> Result<(), Failure> {
        for (name, entry) in client.entries()?.iter().filter(|(name, _)| *name != ENTRY) {
            if self.add(name, origin, entry)? && is_moving {
                client.set(name, None)?;
            }
        }
        self.check()
    }

    /// Adds the servers in a file of another program.
    pub(super) fn import_file(&mut self, file: &Path, origin: Origin<'_>) -> Result<(), Failure> {
        for (name, entry) in &servers(file)? {
            self.add(name, origin, entry)?;
        }
        self.check()
    }

    /// Adds one server, unless the same one is there. Reports whether the gate has it now.
    fn add(&mut self, name: &str, origin: Origin<'_>, foreign: &Value) -> Result<bool, Failure> {
        let mut new = BTreeMap::new();
        let mut fault = None;
        let mut keep = |wanted: &str, value: &str| {
            let wanted = origin.secret_name(wanted);
            match self.free_name(&new, &wanted, value) {
                Ok(name) => {
                    new.insert(name.clone(), value.to_owned());
                    name
                }
                Err(error) => {
                    fault = Some(vault_failure(error));
                    wanted
                }
            }
        };
        let server = import::server(name, foreign, &mut keep);
        if let Some(fault) = fault {
            return Err(fault);
        }
        let Some(ImportedServer { mut entry, references, notes, fault }) = server else {
            output::note(&format!("server '{name}' names neither a program nor an address"));
            return Ok(false);
        };
        if let Some(reason) = fault.or_else(|| unnamed(&references, origin)) {
            output::note(&format!("server '{name}' was left out: {reason}"));
            return Ok(false);
        }
        for note in notes {
            output::note(&format!("server '{name}': {note}"));
        }
        if origin.is_untrusted {
            entry.insert("untrusted".to_owned(), json!(true));
        }
        let entry = Value::Object(entry);
        let present = self.change.entries()?;
        let name = match present.get(name) {
            Some(same) if *same == entry => return Ok(true),
            Some(_) => format!("{name}-{}", origin.name),
            None => name.to_owned(),
        };
        match present.get(&name) {
            Some(same) if *same == entry => Ok(true),
            Some(_) => {
                output::note(&format!(
                    "server '{name}' was left out: the config of the gate has another one of that \
                     name"
                ));
                Ok(false)
            }
            None => {
                self.change.set(&name, Some(entry))?;
                self.secrets.extend(new);
                Ok(true)
            }
        }
    }

    /// Returns a name like the wanted one under which no other value is stored.
    fn free_name(
        &self,
        new: &BTreeMap<String, String>,
        wanted: &str,
        value: &str,
    ) -> Result<String, VaultError> {
        let stored = self.vault.names(Space::Secret)?;
        let numbered = (2..).map(|number| format!("{wanted}_{number}"));
        for name in std::iter::once(wanted.to_owned()).chain(numbered) {
            let known = match self.secrets.get(&name).or_else(|| new.get(&name)) {
                Some(known) => known == value,
                None if stored.iter().any(|known| known.name == name) => {
                    let known = self.vault.get(Space::Secret, &name)?;
                    known.is_none_or(|known| known.expose() == value)
                }
                None => true,
            };
            if known {
                return Ok(name);
            }
        }
        unreachable!("the numbers do not end")
    }

    /// Refuses a result that the gate would not start with.
    fn check(&self) -> Result<(), Failure> {
        if self.change.after.is_empty() {
            return Ok(());
        }
        let read = domain::config::parse(&self.change.after);
        read.map(|_| ()).map_err(|faults| {
            Failure::config(format!("the imported servers do not make a valid config: {faults}"))
        })
    }

    /// Stores the new secrets. What is stored already under its name is not the import's.
    pub(super) fn keep_secrets(&self) -> Result<Vec<StoredSecret>, Failure> {
        let before = names(&self.vault)?;
        let is_new = |name: &&String| !before.iter().any(|known| known.name == **name);
        for name in self.secrets.keys().filter(is_new) {
            let value = Secret::new(self.secrets[name].clone());
            self.vault.set(Space::Secret, name, &value).map_err(vault_failure)?;
        }
        let mut now = names(&self.vault)?;
        now.retain(|known| self.secrets.contains_key(&known.name) && is_new(&&known.name));
        Ok(now)
    }
}

/// Returns why a server is not imported: it refers to values that the user did not hand over.
fn unnamed(references: &BTreeSet<Reference>, origin: Origin<'_>) -> Option<String> {
    let is_unnamed = |reference: &&Reference| {
        let is_own = matches!(reference, Reference::Variable(_)) && !origin.is_untrusted;
        !is_own && !origin.allowed.contains(reference)
    };
    let unnamed: Vec<&Reference> = references.iter().filter(is_unnamed).collect();
    let flags = unnamed.iter().map(|reference| format!("--allow-reference {reference}"));
    let flags: Vec<String> = flags.collect();
    (!unnamed.is_empty()).then(|| {
        format!(
            "it would get values of yours that its author chose; to hand them over, pass {}",
            flags.join(" ")
        )
    })
}

/// Reads the servers in a file of another program.
fn servers(file: &Path) -> Result<Map<String, Value>, Failure> {
    let text = text_of(file)?
        .ok_or_else(|| Failure::input(format!("NOT_FOUND: there is no '{}'", file.display())))?;
    let is_toml = file.extension().is_some_and(|extension| extension == "toml");
    let syntax = if is_toml { SettingsSyntax::Toml } else { SettingsSyntax::Json };
    let fault = |fault| unreadable(file, &fault);
    let root = edit::read(&text, syntax).map_err(fault)?;
    let mut found = Map::new();
    for container in CONTAINERS.iter().filter(|container| root.contains_key(**container)) {
        found.extend(edit::servers(&text, syntax, container).map_err(fault)?);
    }
    if let Some((name, entry)) = toolhive(&root) {
        found.insert(name, entry);
    }
    if found.is_empty() {
        return Err(Failure::input(format!(
            "NOT_FOUND: '{}' names no servers: none of {} is in it",
            file.display(),
            CONTAINERS.join(", ")
        )));
    }
    Ok(found)
}

/// Reads the run configuration of a ToolHive server, which is reached through ToolHive's own proxy.
fn toolhive(root: &Map<String, Value>) -> Option<(String, Value)> {
    let text = |key: &str| root.get(key)?.as_str().filter(|text| !text.is_empty());
    let name = text("name")?;
    if !root.contains_key("image") && !root.contains_key("remote_url") {
        return None;
    }
    let port = root.get("port")?.as_u64()?;
    let is_sse = text("transport") == Some("sse") || text("proxy_mode") == Some("sse");
    let path = if is_sse { "sse" } else { "mcp" };
    let host = text("host").unwrap_or("127.0.0.1");
    Some((name.to_owned(), json!({"url": format!("http://{host}:{port}/{path}")})))
}

/// Removes secrets that were stored for a change, unless they were set anew since or the config
/// still names them.
pub(super) fn forget(home: &Home, secrets: &[StoredSecret]) -> Result<(), Failure> {
    let vault = Vault::of_home(home.path());
    let config = home.config_files().first().map(|file| text_of(file)).transpose()?.flatten();
    let is_named = |name: &str| {
        let reference = format!("${{secret:{name}}}");
        config.as_ref().is_some_and(|config| config.contains(&reference))
    };
    let now = names(&vault)?;
    for StoredSecret { name, set_at } in secrets {
        let is_same = |known: &StoredSecret| known.name == *name && known.set_at == *set_at;
        if !now.iter().any(is_same) || is_named(name) {
            output::note(&format!("the secret '{name}' is in use or was set anew: it stays"));
        } else {
            vault.remove(Space::Secret, name).map_err(vault_failure)?;
        }
    }
    Ok(())
}

fn names(vault: &Vault) -> Result<Vec<StoredSecret>, Failure> {
    let names = vault.names(Space::Secret).map_err(vault_failure)?;
    let stored = names.into_iter();
    Ok(stored.map(|known| StoredSecret { name: known.name, set_at: known.set_at }).collect())
}

fn vault_failure(error: VaultError) -> Failure {
    Failure::system(format!("{}: {error}", error.code()))
}
