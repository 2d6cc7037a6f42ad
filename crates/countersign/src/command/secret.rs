//! `countersign secret set|list|remove`. The vault's own locks make it safe while a gate runs.

mod value;

use std::collections::{BTreeMap, BTreeSet};

use domain::config::{self, Config, ConfigTemplate};
use jiff::Zoned;
use serde::Serialize;
use serde_json::Value;
use store::state::OperatorState;
use vault::{KeyHolder, SecretName, Space, Vault, VaultError};

use crate::cli::{Format, Secret};
use crate::exit::Failure;
use crate::home::Home;
use crate::output::{self, local_time, or_dash, table};
use crate::site::Site;

pub(crate) async fn run(site: &Site, verb: Secret) -> Result<(), Failure> {
    let home = site.home()?;
    let config = &site.source()?.config;
    let vault = Vault::of_home(home.path());
    vault.choose_key(config.secrets.key.clone());
    match verb {
        Secret::Set { name } => {
            home.prepare()?;
            set(&vault, &name, &uses(home, config)?).await
        }
        Secret::List { output } => list(&vault, output, uses(home, config)?),
        Secret::Remove { name } => remove(&vault, &name, &uses(home, config)?),
    }
}

/// The servers and plugins that use each secret.
type Uses = BTreeMap<String, BTreeSet<String>>;

async fn set(vault: &Vault, name: &str, uses: &Uses) -> Result<(), Failure> {
    let value = value::read(name).await?;
    let holder = vault.set(Space::Secret, name, &value).map_err(failure)?;
    output::line(&format!("secret '{name}' is set; its key is {}", holder.place()))?;
    note_advice(vault)?;
    for server in uses.get(name).into_iter().flatten() {
        output::note(&format!(
            "'{server}' uses it from its next connection on: 'countersign upstream restart {server}'"
        ));
    }
    Ok(())
}

fn remove(vault: &Vault, name: &str, uses: &Uses) -> Result<(), Failure> {
    if !vault.remove(Space::Secret, name).map_err(failure)? {
        return Err(Failure::input(format!(
            "NOT_FOUND: secret '{name}' is not set: see 'countersign secret list'"
        )));
    }
    output::line(&format!("removed secret '{name}'"))?;
    for server in uses.get(name).into_iter().flatten() {
        output::note(&format!("'{server}' uses it, and cannot be connected again without it"));
    }
    Ok(())
}

/// Says how to move a key that is not where the config says.
fn note_advice(vault: &Vault) -> Result<(), Failure> {
    if let Some(advice) = vault.key_advice().map_err(failure)? {
        output::note(&advice);
    }
    Ok(())
}

#[derive(Serialize)]
struct SecretList {
    /// The place of the key; `None` if no secret is set.
    key: Option<&'static str>,
    secrets: Vec<SecretUse>,
}

#[derive(Serialize)]
struct SecretUse {
    name: String,
    /// `None` if it is used, but not set.
    set_at: Option<String>,
    used_by: BTreeSet<String>,
}

fn list(vault: &Vault, format: Format, mut uses: Uses) -> Result<(), Failure> {
    let set = vault.names(Space::Secret).map_err(failure)?;
    let mut secrets: Vec<SecretUse> = Vec::new();
    for SecretName { name, set_at } in set {
        let used_by = uses.remove(&name).unwrap_or_default();
        secrets.push(SecretUse { name, set_at: Some(set_at.to_string()), used_by });
    }
    let missing = uses.into_iter();
    secrets.extend(missing.map(|(name, used_by)| SecretUse { name, set_at: None, used_by }));
    let key = vault.key_holder().map_err(failure)?.map(KeyHolder::as_str);
    output::print(format, &SecretList { key, secrets }, shown)?;
    note_advice(vault)
}

fn shown(list: &SecretList) -> String {
    if list.secrets.is_empty() {
        return "no secrets; set one with 'countersign secret set NAME'".to_owned();
    }
    let now = Zoned::now();
    let row = |secret: &SecretUse| {
        let set_at = secret.set_at.as_deref().map(|time| local_time(time, &now));
        let used_by: Vec<&str> = secret.used_by.iter().map(String::as_str).collect();
        let used_by = Some(used_by.join(", ")).filter(|names| !names.is_empty());
        vec![
            secret.name.clone(),
            set_at.unwrap_or_else(|| "not set".to_owned()),
            or_dash(used_by.as_deref()),
        ]
    };
    table(&["name", "set", "used by"], &list.secrets.iter().map(row).collect::<Vec<_>>())
}

/// Returns the uses of secrets in the config and in the servers that were added at run time.
fn uses(home: &Home, config: &Config) -> Result<Uses, Failure> {
    let mut uses = Uses::new();
    let mut note = |name: &str, user: &str| {
        uses.entry(name.to_owned()).or_default().insert(user.to_owned());
    };
    for server in &config.servers {
        server
            .templates()
            .flat_map(ConfigTemplate::secrets)
            .for_each(|name| note(name, &server.name));
    }
    for plugin in &config.plugins {
        let templates = plugin.env.iter().map(|(_, value)| value);
        templates.flat_map(ConfigTemplate::secrets).for_each(|name| note(name, &plugin.name));
    }
    let state = OperatorState::of_home(home.path()).map_err(Failure::store)?;
    let added = state.as_ref().map(OperatorState::servers).transpose().map_err(Failure::store)?;
    for server in added.unwrap_or_default() {
        let definition = server.added.as_deref().unwrap_or_default();
        let definition: Value = serde_json::from_str(definition).unwrap_or_default();
        config::secret_names(&definition).iter().for_each(|name| note(name, &server.name));
    }
    Ok(uses)
}

fn failure(error: VaultError) -> Failure {
    let message = format!("{}: {error}", error.code());
    match error {
        VaultError::Input(_) => Failure::input(message),
        VaultError::File { .. }
        | VaultError::Damaged { .. }
        | VaultError::Newer(_)
        | VaultError::Key(_)
        | VaultError::Keychain(_)
        | VaultError::Command(_)
        | VaultError::Busy(_) => Failure::system(message),
    }
}
