//! The gate's own config, to which the servers of a client are added.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use store::vault::{Secret, Space, Vault, VaultError};

use super::change::{FileChange, Journal, text_of};
use super::client::{ENTRY, Syntax};
use super::import::{self, ImportedServer};
use super::{ClientPlan, ConnectedClient, edit, is_agreed, shown, unreadable};
use crate::cli::{Connect, Format};
use crate::exit::Failure;
use crate::home::Home;
use crate::output;

/// The member of our config that holds the servers.
const CONTAINER: &str = "mcpServers";

/// The members under which programs keep their servers.
const CONTAINERS: &[&str] = &["mcpServers", "mcp_servers", "servers", "context_servers", "mcp"];

/// Our config with what is to be added.
pub(super) struct GateConfig {
    file: PathBuf,
    before: Option<String>,
    text: String,
    secrets: BTreeMap<String, String>,
}

impl GateConfig {
    pub(super) fn read(home: &Home) -> Result<GateConfig, Failure> {
        let file = home.config_files().first().cloned();
        let file = file.ok_or_else(|| Failure::system("no home directory: set HOME"))?;
        let before = text_of(&file)?;
        let text = before.clone().unwrap_or_default();
        Ok(GateConfig { file, before, text, secrets: BTreeMap::new() })
    }

    /// Adds the other servers of a client; with `is_moving`, takes them out of its file.
    pub(super) fn import(&mut self, plan: &mut ClientPlan, is_moving: bool) -> Result<(), Failure> {
        let client = plan.client;
        let Some(change) = plan.changes.first_mut() else { return Ok(()) };
        let foreign = edit::servers(&change.after, client.syntax(), client.container())
            .map_err(|fault| unreadable(&change.file, &fault))?;
        for (name, entry) in foreign.iter().filter(|(name, _)| *name != ENTRY) {
            if !self.add(name, &client.name(), entry)? || !is_moving {
                continue;
            }
            change.after = edit::remove(&change.after, client.syntax(), client.container(), name)
                .map_err(|fault| unreadable(&change.file, &fault))?;
        }
        Ok(())
    }

    /// Adds the servers in a file of another program.
    pub(super) fn import_file(&mut self, file: &Path) -> Result<(), Failure> {
        let text = text_of(file)?.ok_or_else(|| {
            Failure::input(format!("NOT_FOUND: there is no '{}'", file.display()))
        })?;
        let is_toml = file.extension().is_some_and(|extension| extension == "toml");
        let syntax = if is_toml { Syntax::Toml } else { Syntax::Json };
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
        for (name, entry) in &found {
            self.add(name, "imported", entry)?;
        }
        Ok(())
    }

    /// Adds one server, unless the same one is there. Reports whether the gate has it now.
    fn add(&mut self, name: &str, origin: &str, foreign: &Value) -> Result<bool, Failure> {
        let Some(server) = import::server(name, foreign) else {
            output::note(&format!("server '{name}' names neither a program nor an address"));
            return Ok(false);
        };
        let ImportedServer { entry, secrets, notes } = server;
        for note in notes {
            output::note(&format!("server '{name}': {note}"));
        }
        let entry = Value::Object(entry);
        let fault = |fault| unreadable(&self.file, &fault);
        let present = edit::servers(&self.text, Syntax::Json, CONTAINER).map_err(fault)?;
        let name = match present.get(name) {
            Some(same) if *same == entry => return Ok(true),
            Some(_) => format!("{name}-{origin}"),
            None => name.to_owned(),
        };
        if present.get(&name) != Some(&entry) {
            self.text = edit::set(&self.text, Syntax::Json, CONTAINER, (&name, &entry))
                .map_err(|fault| unreadable(&self.file, &fault))?;
            self.secrets.extend(secrets);
        }
        Ok(true)
    }

    /// Shows the change, asks, stores the secrets and writes the file.
    pub(super) async fn settle(
        self,
        journal: &mut Journal,
        home: &Home,
        args: &Connect,
    ) -> Result<ConnectedClient, Failure> {
        let change = FileChange { file: self.file, before: self.before, after: self.text };
        let mut done = ConnectedClient {
            client: ENTRY.to_owned(),
            status: "unchanged",
            files: vec![change.file.clone()],
            difference: vec![],
            reason: None,
        };
        if change.is_empty() || change.after.is_empty() {
            return Ok(done);
        }
        check(&change)?;
        done.difference = shown(&change);
        if args.output == Format::Table {
            output::line(&done.difference.join("\n"))?;
        }
        if args.dry_run {
            done.status = "would change";
            return Ok(done);
        }
        if !args.yes && !is_agreed("add these servers to the gate?").await? {
            return Err(Failure::input("nothing was changed"));
        }
        let names = keep(home, &self.secrets)?;
        journal.make(&done.client, &change, names)?;
        done.status = "imported";
        Ok(done)
    }
}

/// Refuses a result that the gate would not start with.
fn check(change: &FileChange) -> Result<(), Failure> {
    let read = domain::config::parse(&change.after);
    read.map(|_| ()).map_err(|faults| {
        Failure::config(format!("the imported servers do not make a valid config: {faults}"))
    })
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
    Some((name.to_owned(), serde_json::json!({"url": format!("http://{host}:{port}/{path}")})))
}

/// Stores the secrets of imported servers, and returns their names. One that has another value
/// already is not overwritten.
fn keep(home: &Home, secrets: &BTreeMap<String, String>) -> Result<Vec<String>, Failure> {
    let vault = Vault::of_home(home.path());
    let mut added = Vec::new();
    for (name, value) in secrets {
        match vault.get(Space::Secret, name).map_err(vault_failure)? {
            Some(present) if present.expose() == value => continue,
            Some(_) => {
                return Err(Failure::input(format!(
                    "the secret '{name}' exists with another value: remove it with 'countersign \
                     secret remove {name}', or rename the variable in the client's settings"
                )));
            }
            None => {}
        }
        vault.set(Space::Secret, name, &Secret::new(value.clone())).map_err(vault_failure)?;
        added.push(name.clone());
    }
    Ok(added)
}

/// Removes the secrets that were stored for a change.
pub(super) fn forget(home: &Home, names: &[String]) -> Result<(), Failure> {
    let vault = Vault::of_home(home.path());
    for name in names {
        vault.remove(Space::Secret, name).map_err(vault_failure)?;
    }
    Ok(())
}

fn vault_failure(error: VaultError) -> Failure {
    Failure::system(format!("{}: {error}", error.code()))
}
