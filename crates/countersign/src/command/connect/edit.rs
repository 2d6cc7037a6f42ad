//! Changes to the text of a settings file that touch only the members named. Comments, order and
//! everything else stay byte for byte.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table};

use super::client::Syntax;

/// The reason that a file cannot be edited, with the position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditFault(pub(super) String);

/// Returns the servers in `container`, by name.
pub(super) fn servers(
    text: &str,
    syntax: Syntax,
    container: &str,
) -> Result<Map<String, Value>, EditFault> {
    let root = read(text, syntax)?;
    match root.get(container) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(servers)) => Ok(servers.clone()),
        Some(Value::Array(entries)) => Ok(named(entries)),
        Some(_) => Err(EditFault(format!("'{container}' is not an object"))),
    }
}

/// Reads a list of entries with a `name` as names to entries.
fn named(entries: &[Value]) -> Map<String, Value> {
    let entry = |entry: &Value| {
        let name = entry.get("name")?.as_str()?.to_owned();
        let mut rest = entry.as_object()?.clone();
        rest.remove("name");
        Some((name, Value::Object(rest)))
    };
    entries.iter().filter_map(entry).collect()
}

/// Reads the whole file.
pub(super) fn read(text: &str, syntax: Syntax) -> Result<Map<String, Value>, EditFault> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let root = match syntax {
        Syntax::Json => json_root(text)?.to_serde_value(),
        Syntax::Toml => {
            let root: toml_edit::DocumentMut = toml_document(text)?;
            Some(Value::Object(toml_members(root.as_table())))
        }
    };
    match root {
        Some(Value::Object(members)) => Ok(members),
        _ => Err(EditFault("the file is not an object".to_owned())),
    }
}

/// Returns the text with one entry of `container` set. The same text comes back if the entry is
/// there already.
pub(super) fn set(
    text: &str,
    syntax: Syntax,
    container: &str,
    entry: (&str, &Value),
) -> Result<String, EditFault> {
    let (name, value) = entry;
    if servers(text, syntax, container)?.get(name) == Some(value) {
        return Ok(text.to_owned());
    }
    match syntax {
        Syntax::Json => set_json(text, container, name, value),
        Syntax::Toml => set_toml(text, container, name, value),
    }
}

/// Returns the text without one entry of `container`.
pub(super) fn remove(
    text: &str,
    syntax: Syntax,
    container: &str,
    name: &str,
) -> Result<String, EditFault> {
    if !servers(text, syntax, container)?.contains_key(name) {
        return Ok(text.to_owned());
    }
    match syntax {
        Syntax::Json => {
            let root = json_root(text)?;
            let servers = json_object(&root)?.object_value(container);
            if let Some(entry) = servers.and_then(|servers| servers.get(name)) {
                entry.remove();
            }
            Ok(root.to_string())
        }
        Syntax::Toml => {
            let mut root = toml_document(text)?;
            if let Some(servers) = root.get_mut(container).and_then(Item::as_table_like_mut) {
                servers.remove(name);
            }
            Ok(root.to_string())
        }
    }
}

/// Returns the text of a JSON file in which each list at `section` has the given items too.
pub(super) fn extend_lists(
    text: &str,
    section: &str,
    lists: &Map<String, Value>,
) -> Result<String, EditFault> {
    let root = json_root(or_empty(text))?;
    let section = json_object(&root)?.object_value_or_create(section);
    let section = section.ok_or_else(|| EditFault("'permissions' is not an object".to_owned()))?;
    for (name, items) in lists {
        let list = section.array_value_or_create(name);
        let list = list.ok_or_else(|| EditFault(format!("'permissions.{name}' is not a list")))?;
        let present: Vec<Value> =
            list.elements().iter().filter_map(|item| item.to_serde_value()).collect();
        list.ensure_multiline();
        for item in items.as_array().into_iter().flatten().filter(|item| !present.contains(item)) {
            list.append(input(item));
        }
    }
    Ok(root.to_string())
}

fn set_json(text: &str, container: &str, name: &str, value: &Value) -> Result<String, EditFault> {
    let root = json_root(or_empty(text))?;
    let object = json_object(&root)?;
    if let Some(list) = object.array_value(container) {
        let mut entry = Map::from_iter([("name".to_owned(), Value::from(name))]);
        entry.extend(value.as_object().cloned().unwrap_or_default());
        list.append(input(&Value::Object(entry)));
        return Ok(root.to_string());
    }
    let servers = object
        .object_value_or_create(container)
        .ok_or_else(|| EditFault(format!("'{container}' is not an object")))?;
    match servers.get(name) {
        Some(entry) => entry.set_value(input(value)),
        None => {
            servers.ensure_multiline();
            servers.append(name, input(value));
        }
    }
    Ok(root.to_string())
}

/// An empty file counts as an empty object.
fn or_empty(text: &str) -> &str {
    if text.trim().is_empty() { "{\n}\n" } else { text }
}

fn json_root(text: &str) -> Result<CstRootNode, EditFault> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| EditFault(error.to_string()))
}

fn json_object(root: &CstRootNode) -> Result<CstObject, EditFault> {
    root.object_value().ok_or_else(|| EditFault("the file is not an object".to_owned()))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => CstInputValue::Object(
            members.iter().map(|(name, value)| (name.clone(), input(value))).collect(),
        ),
    }
}

fn toml_document(text: &str) -> Result<DocumentMut, EditFault> {
    text.parse().map_err(|error: toml_edit::TomlError| EditFault(error.to_string()))
}

fn toml_members(table: &dyn toml_edit::TableLike) -> Map<String, Value> {
    table.iter().map(|(name, item)| (name.to_owned(), toml_item(item))).collect()
}

fn toml_item(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return Value::Object(toml_members(table));
    }
    match item {
        Item::Value(value) => toml_value(value),
        Item::ArrayOfTables(tables) => {
            tables.iter().map(|table| Value::Object(toml_members(table))).collect()
        }
        Item::None | Item::Table(_) => Value::Null,
    }
}

fn toml_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        toml_edit::Value::Float(number) => Value::from(*number.value()),
        toml_edit::Value::Boolean(value) => Value::from(*value.value()),
        toml_edit::Value::Datetime(time) => Value::from(time.value().to_string()),
        toml_edit::Value::Array(items) => items.iter().map(toml_value).collect(),
        toml_edit::Value::InlineTable(table) => Value::Object(toml_members(table)),
    }
}

fn set_toml(text: &str, container: &str, name: &str, value: &Value) -> Result<String, EditFault> {
    let mut root = toml_document(text)?;
    let servers = root.entry(container).or_insert_with(|| {
        let mut table = Table::new();
        // `[mcp_servers]` alone would say nothing.
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers
        .as_table_like_mut()
        .ok_or_else(|| EditFault(format!("'{container}' is not a table")))?;
    let mut entry = Table::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        entry.insert(key, Item::Value(toml_input(value)));
    }
    servers.insert(name, Item::Table(entry));
    Ok(root.to_string())
}

fn toml_input(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => number.as_i64().unwrap_or_default().into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => toml_edit::Value::Array(items.iter().map(toml_input).collect()),
        Value::Object(members) => {
            let mut table = toml_edit::InlineTable::new();
            for (name, value) in members {
                table.insert(name, toml_input(value));
            }
            toml_edit::Value::InlineTable(table)
        }
        Value::Null => "".into(),
    }
}
