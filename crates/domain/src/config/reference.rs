//! The configuration reference, generated from the tables of keys and the defaults.

use serde_json::Value;

use super::declare::Section;
use super::keys::{Key, Table, When};
use super::{Config, OAuth, ServerConfig, Transport, render};

const INTRODUCTION: &str = "\
# Configuration

One JSON file; comments and trailing commas are allowed. `countersign config check` reports every
fault with its line and column. `countersign config show` prints the file with all defaults filled
in and secrets masked.

A duration is `\"500ms\"`, `\"30s\"`, `\"2m\"`, `\"1h\"` or a number of seconds. `${env:NAME}` is
replaced by the environment variable, and `${secret:NAME}` by the value of `countersign secret set
NAME` ([secrets.md](secrets.md)), when the value is used; if one is not set, only that server fails.
Any other `${…}` is left unchanged.

A running gate notices a changed file within about a second. A change takes effect *at once*, when
the server *reconnects* (the gate reconnects it without losing running calls), or at the next
*start*. A file with a fault changes nothing: the old configuration stays in effect, and
`GET /api/v1/status` reports the fault.
";

const HEAD: &str = "\
| key | type | default | takes effect | meaning |
|---|---|---|---|---|
";

const FOREIGN: &str = "
You can paste the `mcpServers` block of another client. Keys that Countersign does not use get a
note:

| key of another client | effect |
|---|---|
";

/// Returns the text of `docs/config.md`.
pub fn reference() -> String {
    let defaults = sample();
    let mut page = INTRODUCTION.to_owned();
    section(&mut page, Config::TABLE, &defaults);
    page
}

/// Returns a config that shows every default, including a server without settings.
pub(super) fn sample() -> Value {
    let mut config = Config::default();
    let server = ServerConfig::new("<name>", Transport::stdio(""));
    config.servers.push(ServerConfig { oauth: Some(OAuth::default()), ..server });
    let mut sample = render(&config);
    if let Some(server) = sample["mcpServers"]["<name>"].as_object_mut() {
        server.remove("command");
        server.remove("transport");
    }
    sample
}

fn section(page: &mut String, table: &Table, defaults: &Value) {
    let title = match table.path {
        "" => "Top level".to_owned(),
        path => format!("`{path}`"),
    };
    let rows: String = table.keys().map(|key| row(table, key, defaults)).collect();
    page.push_str(&format!("\n## {title}\n\n{HEAD}{rows}"));
    if !table.foreign.is_empty() {
        page.push_str(FOREIGN);
        let foreign = table.foreign.iter().copied().flatten();
        page.extend(foreign.map(|(key, treatment)| format!("| `{key}` | {treatment} |\n")));
    }
    for inner in table.keys().filter_map(|key| (key.kind)().table) {
        section(page, inner, defaults);
    }
}

fn row(table: &Table, key: &Key, defaults: &Value) -> String {
    let Key { name, meaning, .. } = key;
    let (kind, default) = ((key.kind)().words, default(table, key, defaults));
    let when = match key.when {
        When::Hot => "at once",
        When::Reconnect => "on reconnect",
        When::Restart => "next start",
    };
    format!("| `{name}` | {kind} | {default} | {when} | {meaning} |\n")
}

fn default(table: &Table, key: &Key, defaults: &Value) -> String {
    match default_value(table, key, defaults) {
        Value::Null => "–".to_owned(),
        value => format!("`{value}`"),
    }
}

/// Returns the default of a key that has one; the reference gives none for objects.
pub(super) fn default_value<'v>(table: &Table, key: &Key, defaults: &'v Value) -> &'v Value {
    if (key.kind)().table.is_some() {
        return &Value::Null;
    }
    let steps = table.path.split('.').filter(|step| !step.is_empty());
    &steps.fold(defaults, |value, step| &value[step])[key.name]
}
