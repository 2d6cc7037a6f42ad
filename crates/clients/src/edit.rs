//! Changes to the text of a settings file that touch only the members named. Comments, order and
//! everything else stay byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::client::SettingsSyntax;

/// The member of Claude Code's settings that holds lists of tools.
pub const PERMISSIONS: &str = "permissions";

/// Placeholder for a text that replaces it.
const PLACEHOLDER: &str = "countersign: put back here";

/// The change of one entry.
#[derive(Clone, Debug)]
pub struct EntryEdit {
    pub name: String,
    /// The entry as it must be; `None` if there must be none.
    pub from: Option<Value>,
    pub to: Option<Value>,
}

/// A change that is to be taken back: the file before and after it.
#[derive(Clone, Copy, Debug)]
pub struct Reversal<'a> {
    pub before: &'a str,
    pub after: &'a str,
    pub syntax: SettingsSyntax,
    /// The member that holds what was changed.
    pub section: &'a str,
    /// An entry that is taken back even if it was edited since.
    pub loose: Option<&'a str>,
}

/// The reason that a file cannot be edited, with the position.
#[derive(Debug, PartialEq, Eq)]
pub struct EditFault(pub String);

/// Returns the servers in `container`, by name.
pub fn servers(
    text: &str,
    syntax: SettingsSyntax,
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
pub fn read(text: &str, syntax: SettingsSyntax) -> Result<Map<String, Value>, EditFault> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let root = match syntax {
        SettingsSyntax::Json => json_root(text)?.to_serde_value(),
        SettingsSyntax::Toml => {
            let root: toml_edit::DocumentMut = toml_document(text)?;
            Some(Value::Object(toml_members(root.as_table())))
        }
    };
    match root {
        Some(Value::Object(members)) => Ok(members),
        _ => Err(EditFault("it is not an object".to_owned())),
    }
}

/// Reads a value as it is spelled in a file. `None` if it is none, or a list or an object.
pub fn scalar(spelled: &str, syntax: SettingsSyntax) -> Option<String> {
    let value = match syntax {
        SettingsSyntax::Json => {
            let root = CstRootNode::parse(spelled, &ParseOptions::default()).ok()?;
            root.to_serde_value()?
        }
        SettingsSyntax::Toml => toml_value(&spelled.parse().ok()?),
    };
    match value {
        Value::String(text) => Some(text),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the text with one entry of `container` set. The same text comes back if the entry is
/// there already.
fn set(
    text: &str,
    syntax: SettingsSyntax,
    container: &str,
    entry: (&str, &Value),
) -> Result<String, EditFault> {
    let (name, value) = entry;
    if servers(text, syntax, container)?.get(name) == Some(value) {
        return Ok(text.to_owned());
    }
    match syntax {
        SettingsSyntax::Json => set_json(text, container, name, value),
        SettingsSyntax::Toml => set_toml(text, container, name, value),
    }
}

/// Returns the text with the entries changed. An entry that is neither as it was nor as it should be
/// is somebody else's change.
pub fn apply(
    text: &str,
    syntax: SettingsSyntax,
    container: &str,
    edits: &[EntryEdit],
) -> Result<String, EditFault> {
    let mut text = text.to_owned();
    for EntryEdit { name, from, to } in edits {
        let present = servers(&text, syntax, container)?.remove(name);
        if present == *to {
            continue;
        }
        if present != *from {
            return Err(EditFault(format!("its entry '{name}' was changed just now")));
        }
        text = match to {
            Some(value) => set(&text, syntax, container, (name, value))?,
            None => remove(&text, syntax, container, name)?,
        };
    }
    Ok(text)
}

/// Reports whether a file has no members and no comments.
pub fn is_empty(text: &str) -> bool {
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '{' | '}')).count() == 0
}

/// Returns the text without one entry of `container`.
fn remove(
    text: &str,
    syntax: SettingsSyntax,
    container: &str,
    name: &str,
) -> Result<String, EditFault> {
    if !servers(text, syntax, container)?.contains_key(name) {
        return Ok(text.to_owned());
    }
    match syntax {
        SettingsSyntax::Json => {
            let root = json_root(text)?;
            let object = json_object(&root)?;
            let entry = object.object_value(container).and_then(|servers| servers.get(name));
            match entry {
                Some(entry) => entry.remove(),
                None => remove_items(object.array_value(container), |item| {
                    item.get("name").and_then(Value::as_str) == Some(name)
                }),
            }
            Ok(root.to_string())
        }
        SettingsSyntax::Toml => {
            let mut root = toml_document(text)?;
            if let Some(servers) = root.get_mut(container).and_then(Item::as_table_like_mut) {
                servers.remove(name);
            }
            Ok(root.to_string())
        }
    }
}

/// Returns the text of a JSON file in which each list at `section` has the given items too.
pub fn extend_lists(
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

impl Reversal<'_> {
    /// Takes the change back in the present text, and keeps every other edit. An entry that was
    /// changed or added again since stands in the way.
    pub fn apply(&self, now: &str) -> Result<String, EditFault> {
        if self.section == PERMISSIONS {
            return self.without_items(now);
        }
        let read = |text| servers(text, self.syntax, self.section);
        let (before, after, present) = (read(self.before)?, read(self.after)?, read(now)?);
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let mut text = now.to_owned();
        for name in names {
            let (before, after, present) = (before.get(name), after.get(name), present.get(name));
            if before == after || present == before {
                continue;
            }
            if present != after && self.loose != Some(name) {
                let since = if after.is_none() { "added again" } else { "changed" };
                return Err(EditFault(format!("its entry '{name}' was {since} since")));
            }
            text = match before {
                Some(_) => self.put_back(&text, name)?,
                None => remove(&text, self.syntax, self.section, name)?,
            };
        }
        self.without_section(text)
    }

    /// Puts an entry back as it was written, with its comments.
    fn put_back(&self, text: &str, name: &str) -> Result<String, EditFault> {
        match self.syntax {
            SettingsSyntax::Json => self.put_back_json(text, name),
            SettingsSyntax::Toml => self.put_back_toml(text, name),
        }
    }

    fn put_back_json(&self, text: &str, name: &str) -> Result<String, EditFault> {
        let impossible = || EditFault(format!("its entry '{name}' cannot be put back"));
        let old = json_root(self.before)?;
        let old = json_object(&old)?.object_value(self.section).and_then(|it| it.get(name));
        let old = old.ok_or_else(impossible)?;
        let written = old.value().ok_or_else(impossible)?.to_string();
        let root = json_root(or_empty(text))?;
        let servers = json_object(&root)?.object_value_or_create(self.section);
        let servers = servers.ok_or_else(impossible)?;
        let placeholder = CstInputValue::String(PLACEHOLDER.to_owned());
        match servers.get(name) {
            Some(entry) => entry.set_value(placeholder),
            None => {
                let index = old.property_index().min(servers.properties().len());
                servers.insert(index, name, placeholder);
            }
        }
        let (head, tail) = root
            .to_string()
            .split_once(&format!("\"{PLACEHOLDER}\""))
            .map(|(head, tail)| (head.to_owned(), tail.to_owned()))
            .ok_or_else(impossible)?;
        Ok(format!("{head}{written}{tail}"))
    }

    fn put_back_toml(&self, text: &str, name: &str) -> Result<String, EditFault> {
        let impossible = || EditFault(format!("its entry '{name}' cannot be put back"));
        let mut old = toml_document(self.before)?;
        let old = old.get_mut(self.section).and_then(Item::as_table_like_mut);
        let mut old = old.and_then(|servers| servers.remove(name)).ok_or_else(impossible)?;
        to_end(&mut old);
        let mut root = toml_document(text)?;
        toml_servers(&mut root, self.section)?.insert(name, old);
        Ok(root.to_string())
    }

    /// Removes the section if the change had made it and nothing else is in it.
    fn without_section(&self, text: String) -> Result<String, EditFault> {
        if read(self.before, self.syntax)?.contains_key(self.section)
            || !servers(&text, self.syntax, self.section)?.is_empty()
        {
            return Ok(text);
        }
        match self.syntax {
            SettingsSyntax::Json => {
                let root = json_root(or_empty(&text))?;
                if let Some(section) = json_object(&root)?.get(self.section) {
                    section.remove();
                }
                Ok(root.to_string())
            }
            SettingsSyntax::Toml => {
                let mut root = toml_document(&text)?;
                root.remove(self.section);
                Ok(root.to_string())
            }
        }
    }

    /// Removes the items that the change added to lists.
    fn without_items(&self, now: &str) -> Result<String, EditFault> {
        let (before, after) = (lists(self.before)?, lists(self.after)?);
        let root = json_root(or_empty(now))?;
        let object = json_object(&root)?;
        let Some(section) = object.object_value(PERMISSIONS) else { return Ok(now.to_owned()) };
        for (name, items) in &after {
            let old = before.get(name);
            let is_added =
                |item: &Value| items.contains(item) && !old.is_some_and(|old| old.contains(item));
            remove_items(section.array_value(name), is_added);
            if old.is_none()
                && section.array_value(name).is_some_and(|list| list.elements().is_empty())
                && let Some(list) = section.get(name)
            {
                list.remove();
            }
        }
        if section.properties().is_empty()
            && !read(self.before, SettingsSyntax::Json)?.contains_key(PERMISSIONS)
            && let Some(section) = object.get(PERMISSIONS)
        {
            section.remove();
        }
        Ok(root.to_string())
    }
}

/// Returns the lists of permissions, by name.
fn lists(text: &str) -> Result<BTreeMap<String, Vec<Value>>, EditFault> {
    let root = read(text, SettingsSyntax::Json)?;
    let members = root.get(PERMISSIONS).and_then(Value::as_object).into_iter().flatten();
    let list = |(name, items): (&String, &Value)| Some((name.clone(), items.as_array()?.clone()));
    Ok(members.filter_map(list).collect())
}

fn remove_items(list: Option<CstArray>, is_wanted: impl Fn(&Value) -> bool) {
    for item in list.iter().flat_map(CstArray::elements) {
        if item.to_serde_value().is_some_and(|value| is_wanted(&value)) {
            item.remove();
        }
    }
}

/// Moves a table and those within it behind all others of the file that it is put into.
fn to_end(item: &mut Item) {
    if let Item::Table(table) = item {
        table.set_position(Some(isize::MAX));
        table.iter_mut().for_each(|(_, item)| to_end(item));
    }
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
    CstRootNode::parse(text, &ParseOptions::default())
        .map_err(|error| EditFault(format!("it cannot be read: {error}")))
}

fn json_object(root: &CstRootNode) -> Result<CstObject, EditFault> {
    root.object_value().ok_or_else(|| EditFault("it is not an object".to_owned()))
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
    text.parse()
        .map_err(|error: toml_edit::TomlError| EditFault(format!("it cannot be read: {error}")))
}

fn toml_members(table: &dyn TableLike) -> Map<String, Value> {
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
    let servers = toml_servers(&mut root, container)?;
    let mut entry = Table::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        entry.insert(key, Item::Value(toml_input(value)));
    }
    servers.insert(name, Item::Table(entry));
    Ok(root.to_string())
}

fn toml_servers<'a>(
    root: &'a mut DocumentMut,
    container: &str,
) -> Result<&'a mut dyn TableLike, EditFault> {
    let servers = root.entry(container).or_insert_with(|| {
        let mut table = Table::new();
        // `[mcp_servers]` alone would say nothing.
        table.set_implicit(true);
        Item::Table(table)
    });
    servers.as_table_like_mut().ok_or_else(|| EditFault(format!("'{container}' is not a table")))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Applies edits, lets somebody edit the result, and takes the edits back.
    #[track_caller]
    fn check(
        syntax: SettingsSyntax,
        before: &str,
        meddle: &dyn Fn(&str) -> String,
        expect: Result<&str, &str>,
    ) {
        let section = if syntax == SettingsSyntax::Toml { "mcp_servers" } else { "mcpServers" };
        let ours = Some(json!({"command": "gate"}));
        let mut edits = vec![EntryEdit { name: "countersign".to_owned(), from: None, to: ours }];
        for (name, server) in servers(before, syntax, section).unwrap() {
            edits.push(EntryEdit { name, from: Some(server), to: None });
        }
        let after = apply(before, syntax, section, &edits).unwrap();
        assert_eq!(apply(&after, syntax, section, &edits).unwrap(), after, "it is done once");
        let now = meddle(&after);
        let reversal = Reversal { before, after: &after, syntax, section, loose: None };
        let undone = reversal.apply(&now);
        if let Ok(text) = &undone {
            assert_eq!(reversal.apply(text).as_ref(), Ok(text), "it is undone once");
        }
        assert_eq!(
            undone.as_deref().map_err(|EditFault(fault)| fault.as_str()),
            expect,
            "after the change: {after}"
        );
    }

    const JSON: &str = r#"{
  // all of mine
  "mcpServers": {
    "time": {
      "command": "uvx", // a tool of uv
      "args": ["mcp-server-time"]
    },
    "docs": {"url": "https://docs.example/mcp"}
  },
  "theme": "dark"
}
"#;

    #[test]
    fn entries_are_put_back_beside_later_edits() {
        let edited = |text: &str| {
            text.replace("\"dark\"", "\"light\", // nicer").replace(
                "\"mcpServers\": {",
                "\"mcpServers\": {\n    // new\n    \"git\": {\"command\": \"git\"},",
            )
        };
        let expect = r#"{
  // all of mine
  "mcpServers": {
    "time": {
      "command": "uvx", // a tool of uv
      "args": ["mcp-server-time"]
    },
    // new
    "git": {"command": "git"},
    "docs": {"url": "https://docs.example/mcp"}
  },
  "theme": "light", // nicer
}
"#;
        check(SettingsSyntax::Json, JSON, &edited, Ok(expect));
        let toml = "# mine\nmodel = 'x'\n\n# the time\n[mcp_servers.time]\ncommand = \"uvx\" # uv\n\n\
                    [mcp_servers.time.env]\nTZ = \"UTC\"\n";
        let edited = |text: &str| {
            let text = text.replace("'x'", "'y' # larger");
            format!("{text}\n[mcp_servers.git]\ncommand = \"git\"\n\n[tui]\nbig = true\n")
        };
        let expect = "# mine\nmodel = 'y' # larger\n\n[mcp_servers.git]\ncommand = \"git\"\n\n[tui]\n\
                      big = true\n\n# the time\n[mcp_servers.time]\ncommand = \"uvx\" # uv\n\n\
                      [mcp_servers.time.env]\nTZ = \"UTC\"\n";
        check(SettingsSyntax::Toml, toml, &edited, Ok(expect));
    }

    #[test]
    fn an_entry_that_somebody_touched_stops_the_undo() {
        for (from, to, expect) in [
            (
                "\"mcpServers\": {",
                "\"mcpServers\": {\n    \"time\": {\"command\": \"other\"},",
                Err("its entry 'time' was added again since"),
            ),
            ("\"gate\"", "\"other\"", Err("its entry 'countersign' was changed since")),
        ] {
            check(SettingsSyntax::Json, JSON, &|text| text.replace(from, to), expect);
        }
        let broken = |_: &str| "{ \"mcpServers\": [".to_owned();
        let after = apply(JSON, SettingsSyntax::Json, "mcpServers", &[]).unwrap();
        let reversal = Reversal {
            before: JSON,
            after: &after,
            syntax: SettingsSyntax::Json,
            section: "mcpServers",
            loose: None,
        };
        let EditFault(fault) = reversal.apply(&broken("")).unwrap_err();
        assert!(fault.starts_with("it cannot be read: "), "{fault}");
    }

    #[test]
    fn a_section_that_was_made_is_removed_again() {
        let edited = |text: &str| text.replace("\"a\": 1", "\"a\": 2");
        check(SettingsSyntax::Json, "{\n  \"a\": 1\n}\n", &edited, Ok("{\n  \"a\": 2\n}\n"));
        check(
            SettingsSyntax::Toml,
            "a = 1\n",
            &|text| text.replace("a = 1", "a = 2"),
            Ok("a = 2\n"),
        );
    }

    #[test]
    fn a_change_meanwhile_is_not_overwritten() {
        let from = Some(json!({"command": "uvx"}));
        let edits = [EntryEdit { name: "time".to_owned(), from, to: None }];
        let fault = apply(JSON, SettingsSyntax::Json, "mcpServers", &edits).unwrap_err();
        assert_eq!(fault, EditFault("its entry 'time' was changed just now".to_owned()));
    }

    #[test]
    fn items_of_lists_are_removed_beside_later_ones() {
        let before = r#"{"permissions": {"allow": ["mine", "both"]}}"#;
        let after = r#"{"permissions": {"allow": ["mine", "both", "ours"], "ask": ["x"]}}"#;
        let now = r#"{"permissions": {"allow": ["mine", "both", "ours", "later"], "ask": ["x"]}}"#;
        let syntax = SettingsSyntax::Json;
        let reversal = Reversal { before, after, syntax, section: PERMISSIONS, loose: None };
        let text = reversal.apply(now).unwrap();
        let left: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(left, json!({"permissions": {"allow": ["mine", "both", "later"]}}));
    }
}
