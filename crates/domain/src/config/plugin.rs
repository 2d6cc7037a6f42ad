//! `plugins`: the configured plugins, by name.

use serde_json::{Map, Value};

use super::declare::{Section, section};
use super::keys::Table;
use super::kind::{Kind, Optional, Shape, TEXT, as_json};
use super::members::{Members, entries, put};
use super::name::check_name;
use super::report::Report;
use super::secret;
use super::template::ConfigTemplate;
use super::values::VARIABLES;
use text::document::{Content, Member, Node, ScalarKind};

const SHA256_HEX_CHARS: usize = 64;

section! {
    #[derive(Clone, PartialEq)]
    pub struct PluginConfig at "plugins.<name>" {
        Reconnect path: Option<String> = None, Optional(TEXT),
            "Absolute path of its folder or executable, if it is not in a plugin folder.";
        Reconnect config: Map<String, Value> = Map::new(), JSON_OBJECT,
            "Passed to the plugin unchanged.";
        Reconnect env: Vec<(String, ConfigTemplate)> = Vec::new(), VARIABLES,
            "Environment variables of the plugin.";
        // In lowercase.
        Reconnect sha256: Option<String> = None, Optional(SHA256),
            "SHA-256 of the executable; setting it approves the plugin.";
    }
    and {
        name: String = String::new();
    }
}

pub(super) struct Plugins;

impl Kind<Vec<PluginConfig>> for Plugins {
    fn words(&self) -> String {
        format!("names to objects, see `{}`", PluginConfig::TABLE.path)
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<Vec<PluginConfig>> {
        let entries = entries(node, report)?;
        Some(entries.iter().filter_map(|entry| plugin(entry, report)).collect())
    }

    /// Replaces those of the same name.
    fn set(&self, field: &mut Vec<PluginConfig>, node: &Node<'_>, report: &mut Report) {
        let plugins = self.read(node, report).unwrap_or_default();
        if field.is_empty() {
            *field = plugins;
            return;
        }
        for plugin in plugins {
            put(field, plugin, |plugin| &plugin.name);
        }
    }

    fn show(&self, value: &Vec<PluginConfig>) -> Option<Value> {
        let plugin = |plugin: &PluginConfig| (plugin.name.clone(), Value::Object(plugin.show()));
        Some(value.iter().map(plugin).collect())
    }

    fn table(&self) -> Option<&'static Table> {
        Some(PluginConfig::TABLE)
    }
}

fn plugin(entry: &Member<'_>, report: &mut Report) -> Option<PluginConfig> {
    check_name(entry, report);
    let members = Members::open(&entry.node, PluginConfig::TABLE, report)?;
    let mut plugin = PluginConfig { name: entry.name.to_owned(), ..PluginConfig::default() };
    plugin.set(&members, report);
    Some(plugin)
}

const SHA256: Shape<String> = Shape {
    words: "64 hex digits",
    read: |node, report| {
        let text = report.take(node.text())?;
        let hex = text.len() == SHA256_HEX_CHARS && text.chars().all(|c| c.is_ascii_hexdigit());
        if !hex {
            report.fault(&node.location, "expected a SHA-256 of 64 hex digits");
        }
        hex.then(|| text.to_ascii_lowercase())
    },
    show: as_json,
};

/// Any object, passed on.
const JSON_OBJECT: Shape<Map<String, Value>> = Shape {
    words: "object",
    read: json_object,
    show: |value| Some(secret::json(&Value::Object(value.clone()))),
};

fn json_object(node: &Node<'_>, report: &mut Report) -> Option<Map<String, Value>> {
    let entries = entries(node, report)?;
    Some(entries.iter().map(|entry| (entry.name.to_owned(), json(&entry.node, report))).collect())
}

/// Converts a value to JSON. The depth of the tree is limited, and so is the recursion.
fn json(node: &Node<'_>, report: &mut Report) -> Value {
    match &node.tree.content {
        Content::Map(_) => json_object(node, report).map(Value::Object).unwrap_or_default(),
        Content::List(_) => {
            let items = report.take(node.items("a list"));
            items.into_iter().flatten().map(|item| json(&item, report)).collect()
        }
        Content::Scalar(scalar) => {
            if scalar.kind == ScalarKind::Number(None) {
                report.fault(&node.location, "not a number that JSON can represent");
            }
            node.tree.to_json()
        }
    }
}
