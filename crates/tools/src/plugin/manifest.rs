//! `plugin.yaml`: a plugin's name, and the configuration it expects. Also the file in which a
//! project declares plugins.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use text::document::{Content, Tree};

use super::{limits, yaml};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Manifest {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) description: String,
    config: BTreeMap<String, Field>,
}

/// The manifest's description of one member of the config.
#[derive(Clone, Debug, PartialEq)]
struct Field {
    kind: Option<FieldKind>,
    is_required: bool,
    default: Option<Value>,
    allowed: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    String,
    Integer,
    Boolean,
}

/// An entry of `plugins` in a file of declarations.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) path: Option<String>,
    pub(super) config: Map<String, Value>,
    pub(super) sha256: Option<String>,
}

impl Manifest {
    pub(super) fn parse(text: &str) -> Result<Manifest, String> {
        let root = yaml::parse(text)?;
        let entries = yaml::entries(&root).ok_or("expected a mapping with name and version")?;
        let word = |name: &str| match yaml::get(&root, name).map(yaml::text) {
            None => Ok(None),
            Some(Some(text)) => Ok(Some(text.to_owned())),
            Some(None) => Err(format!("'{name}' must be a string")),
        };
        let needed = |name: &str| {
            let given = word(name)?.filter(|text| !text.trim().is_empty());
            given.ok_or_else(|| format!("'{name}' is missing"))
        };
        let (name, version) = (needed("name")?, needed("version")?);
        if let Some(fault) = name_fault(&name) {
            return Err(fault);
        }
        // A plugin that does not declare operations has none; other capabilities are for hosts that
        // know them.
        if let Some(tree) = yaml::get(&root, "capabilities")
            && let Content::List(capabilities) = &tree.content
            && !capabilities.iter().any(|tree| yaml::text(tree) == Some("operations"))
        {
            return Err(
                "'capabilities' does not include 'operations', so it offers no tools".to_owned()
            );
        }
        let mut config = BTreeMap::new();
        if let Some((_, tree)) = entries.iter().find(|(key, _)| key.name == "config") {
            let members = yaml::entries(tree).ok_or("'config' must be a mapping")?;
            for (key, tree) in members {
                let name = &key.name;
                let field =
                    Field::read(tree).map_err(|fault| format!("config '{name}': {fault}"))?;
                config.insert(name.clone(), field);
            }
        }
        let description = word("description")?.unwrap_or_default();
        Ok(Manifest { name, version, description, config })
    }

    /// Returns the config the plugin is started with: the given values over its defaults.
    pub(super) fn configured(
        &self,
        given: Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let defaults = self
            .config
            .iter()
            .filter_map(|(name, field)| field.default.clone().map(|value| (name.clone(), value)));
        let mut config: Map<String, Value> = defaults.collect();
        config.extend(given);
        for (name, field) in &self.config {
            field.check(config.get(name)).map_err(|fault| format!("config '{name}' {fault}"))?;
        }
        Ok(config)
    }
}

impl Field {
    /// A mapping describes the member; anything else is its default.
    fn read(tree: &Tree) -> Result<Field, String> {
        if !matches!(tree.content, Content::Map(_)) {
            let default = Some(tree.to_json());
            return Ok(Field { kind: None, is_required: false, default, allowed: Vec::new() });
        }
        let kind = match yaml::get(tree, "type").and_then(yaml::text) {
            Some("string") => FieldKind::String,
            Some("integer") => FieldKind::Integer,
            Some("boolean") => FieldKind::Boolean,
            other => {
                let other = other.unwrap_or_default();
                return Err(format!("unknown type '{other}': must be string, integer or boolean"));
            }
        };
        let flag = |name: &str| match yaml::get(tree, name).map(Tree::to_json) {
            None | Some(Value::Bool(false)) => Ok(false),
            Some(Value::Bool(true)) => Ok(true),
            Some(_) => Err(format!("'{name}' must be true or false")),
        };
        let allowed = match yaml::get(tree, "enum").map(Tree::to_json) {
            None => Vec::new(),
            Some(Value::Array(allowed)) => allowed,
            Some(_) => return Err("'enum' must be a list".to_owned()),
        };
        let default = yaml::get(tree, "default").map(Tree::to_json);
        let field = Field { kind: Some(kind), is_required: flag("required")?, default, allowed };
        if let Some(default) = &field.default {
            field.fits(default).map_err(|fault| format!("default {fault}"))?;
        }
        Ok(field)
    }

    fn check(&self, value: Option<&Value>) -> Result<(), String> {
        match value {
            None if self.is_required => Err("is required".to_owned()),
            None => Ok(()),
            Some(value) => self.fits(value),
        }
    }

    fn fits(&self, value: &Value) -> Result<(), String> {
        let is_of_kind = match self.kind {
            None => true,
            Some(FieldKind::String) => value.is_string(),
            Some(FieldKind::Integer) => value.is_i64() || value.is_u64(),
            Some(FieldKind::Boolean) => value.is_boolean(),
        };
        match (is_of_kind, self.kind) {
            (false, Some(FieldKind::String)) => Err("must be a string".to_owned()),
            (false, Some(FieldKind::Integer)) => Err("must be a whole number".to_owned()),
            (false, Some(FieldKind::Boolean) | None) => Err("must be true or false".to_owned()),
            (true, _) if self.allowed.is_empty() || self.allowed.contains(value) => Ok(()),
            (true, _) => {
                let allowed = self.allowed.iter().map(Value::to_string).collect::<Vec<_>>();
                Err(format!("must be one of {}", allowed.join(", ")))
            }
        }
    }
}

/// Returns why a name cannot be the first part of a tool's name.
pub(super) fn name_fault(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_fit =
        !name.is_empty() && name.len() <= limits::NAME_CHARS_MAX && name.chars().all(plain);
    (!is_fit).then(|| {
        let most = limits::NAME_CHARS_MAX;
        format!("invalid name '{name}': must be 1 to {most} letters, digits, '_' or '-'")
    })
}

/// Parses `plugins: {name: {path, config, sha256}}`.
pub(super) fn declarations(text: &str) -> Result<Vec<Declaration>, String> {
    let root = yaml::parse(text)?;
    let entries = yaml::entries(&root).ok_or("expected a mapping with 'plugins'")?;
    if let Some((key, _)) = entries.iter().find(|(key, _)| key.name != "plugins") {
        return Err(format!("unknown key '{}'; expected 'plugins'", key.name));
    }
    let Some(plugins) = yaml::get(&root, "plugins") else { return Ok(Vec::new()) };
    let plugins =
        yaml::entries(plugins).ok_or("'plugins' must be a mapping from names to plugins")?;
    plugins.iter().map(|(key, tree)| declaration(&key.name, tree)).collect()
}

fn declaration(name: &str, tree: &Tree) -> Result<Declaration, String> {
    let fault = |words: &str| format!("plugin '{name}': {words}");
    let entries = yaml::entries(tree).ok_or_else(|| fault("expected a mapping"))?;
    let mut declared = Declaration { name: name.to_owned(), ..Declaration::default() };
    for (key, tree) in entries {
        let text = || yaml::text(tree).map(str::to_owned).ok_or_else(|| fault("expected a string"));
        match key.name.as_str() {
            "path" => declared.path = Some(text()?),
            "sha256" => {
                let hex = text()?.to_ascii_lowercase();
                if hex.len() != 64 || !hex.chars().all(|c| c.is_ascii_hexdigit()) {
                    return Err(fault("'sha256' must be 64 hex digits"));
                }
                declared.sha256 = Some(hex);
            }
            "config" => {
                yaml::entries(tree).ok_or_else(|| fault("'config' must be a mapping"))?;
                if let Value::Object(config) = tree.to_json() {
                    declared.config = config;
                }
            }
            other => {
                let words = format!("unknown key '{other}'; expected path, config or sha256");
                return Err(fault(&words));
            }
        }
    }
    Ok(declared)
}

#[cfg(test)]
mod tests;
