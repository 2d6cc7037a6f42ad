//! A configuration as JSON, with defaults filled in and likely secrets hidden, as printed by
//! `config show`. `Debug` of values that may hold secrets uses it too.

use std::fmt;

use serde_json::{Map, Value, json};

use super::declare::Section;
use super::keys::Table;
use super::plugin::PluginConfig;
use super::server::ServerConfig;
use super::top::Config;
use super::transport::Transport;

/// Renders the whole configuration in the file's format.
pub fn render(config: &Config) -> Value {
    let port = config.listen.port();
    let servers = config.servers.iter().map(|it| (it.name.clone(), Value::Object(it.shown())));
    let profiles = config.profiles.iter().map(|it| (it.name.clone(), Value::Object(it.show())));
    let derived = [
        ("allowed_hosts", json!(config.hosts(port))),
        ("allowed_origins", json!(config.origins(port))),
        ("mcpServers", servers.collect()),
        ("profiles", profiles.collect()),
    ];
    let mut members = config.show();
    members.extend(derived.map(|(key, value)| (key.to_owned(), value)));
    let first = [
        "listen",
        "allowed_hosts",
        "allowed_origins",
        "behind_proxy",
        "agent_token",
        "mcpServers",
        "profiles",
    ];
    Value::Object(arranged(members, &first, Config::TABLE))
}

/// Puts some members first, and those without a default last.
pub(super) fn arranged(
    mut members: Map<String, Value>,
    first: &[&str],
    table: &Table,
) -> Map<String, Value> {
    let named: Vec<(String, Value)> =
        first.iter().filter_map(|name| members.shift_remove_entry(*name)).collect();
    let is_optional = |key: &str| table.key(key).is_some_and(|key| (key.kind)().is_optional);
    let (last, others): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|(key, _)| is_optional(key));
    named.into_iter().chain(others).chain(last).collect()
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Config {}", render(self))
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server {:?} {}", self.name, Value::Object(self.shown()))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transport {}", Value::Object(self.show()))
    }
}

impl fmt::Debug for PluginConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plugin {:?} {}", self.name, Value::Object(self.show()))
    }
}
