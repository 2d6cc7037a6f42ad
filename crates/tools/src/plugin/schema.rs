//! An operation as a tool: its name, its description, and the JSON Schema of its inputs. An
//! operation that cannot be expressed as a tool is rejected by name.

use std::collections::BTreeSet;

use mcp::message::{Raw, to_raw};
use plugin_sdk::protocol::{InputSchema, OperationSchema};
use serde_json::{Map, Value, json};
use text::json;

use super::connection::PluginOperations;
use super::limits;

/// Similar names suggested for one that is missing.
const NEAR_MAX: usize = 3;

/// An offered operation.
#[derive(Clone, Debug)]
pub(super) struct PluginTool {
    pub(super) name: String,
    pub(super) operation: String,
    pub(super) definition: Raw,
}

/// Returns the schema of each operation's inputs, or the reason that it cannot be a tool.
pub(super) fn described(
    plugin: &str,
    operations: &[OperationSchema],
) -> Result<PluginOperations, String> {
    names(plugin, operations)?;
    let described = operations.iter().map(|operation| {
        let schema = tool(plugin, operation)
            .and_then(|_| input_schema(operation, &place(plugin, operation)));
        (operation.name.clone(), schema)
    });
    Ok(described.collect())
}

/// Returns the names of a plugin's operations, or an error that makes all of them unusable.
fn names<'a>(plugin: &str, operations: &'a [OperationSchema]) -> Result<BTreeSet<&'a str>, String> {
    if operations.len() > limits::OPERATIONS_MAX {
        let (count, most) = (operations.len(), limits::OPERATIONS_MAX);
        return Err(format!(
            "plugin '{plugin}' has {count} operations; at most {most} are allowed"
        ));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = operations.iter().find(|operation| !names.insert(&*operation.name)) {
        return Err(format!("plugin '{plugin}' lists the operation '{}' twice", twice.name));
    }
    Ok(names)
}

/// Returns the requested operations as tools, or an error for the first needed one that cannot be
/// one. Others are left out.
pub(super) fn tools(
    plugin: &str,
    operations: &[OperationSchema],
    wanted: Option<&BTreeSet<String>>,
    needed: Option<&BTreeSet<String>>,
) -> Result<Vec<PluginTool>, String> {
    let names = names(plugin, operations)?;
    let mut asked = wanted.into_iter().chain(needed).flatten();
    if let Some(missing) = asked.find(|name| !names.contains(name.as_str())) {
        let near = text::near::names(missing, names.iter().copied(), NEAR_MAX);
        let hint = text::near::hint(&near);
        return Err(format!("plugin '{plugin}' has no operation '{missing}'{hint}"));
    }
    let is_wanted =
        |operation: &&OperationSchema| wanted.is_none_or(|wanted| wanted.contains(&operation.name));
    let is_needed =
        |operation: &OperationSchema| needed.is_none_or(|needed| needed.contains(&operation.name));
    let tools = operations.iter().filter(is_wanted).filter_map(|operation| {
        let tool = tool(plugin, operation);
        if tool.is_err() && !is_needed(operation) { None } else { Some(tool) }
    });
    tools.collect()
}

pub(super) fn tool(plugin: &str, operation: &OperationSchema) -> Result<PluginTool, String> {
    let place = place(plugin, operation);
    let name = format!("{plugin}_{}", operation.name);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if operation.name.is_empty()
        || name.len() > limits::TOOL_NAME_CHARS_MAX
        || !name.chars().all(is_plain)
    {
        let most = limits::TOOL_NAME_CHARS_MAX;
        return Err(format!(
            "{place}: invalid tool name '{name}': use at most {most} letters, digits, '_' and '-'"
        ));
    }
    let definition = json!({
        "name": name,
        "description": description(plugin, operation),
        "inputSchema": input_schema(operation, &place)?,
    });
    let (operation, definition) = (operation.name.clone(), to_raw(&definition));
    Ok(PluginTool { name, operation, definition })
}

fn place(plugin: &str, operation: &OperationSchema) -> String {
    format!("plugin '{plugin}', operation '{}'", operation.name)
}

/// Combines the operation's own description with its outputs.
fn description(plugin: &str, operation: &OperationSchema) -> String {
    let words = operation.description.trim();
    let mut text = match words {
        "" => format!("Operation '{}' of the plugin '{plugin}'.", operation.name),
        words => words.to_owned(),
    };
    let outputs: Vec<&str> = operation.outputs.iter().map(|output| &*output.name).collect();
    if !outputs.is_empty() {
        if !text.ends_with(['.', '!', '?', ':']) {
            text.push('.');
        }
        text.push_str(&format!(" Returns a JSON object with: {}.", outputs.join(", ")));
    }
    text
}

fn input_schema(operation: &OperationSchema, place: &str) -> Result<Value, String> {
    // Older plugins list only names, so their inputs are unknown.
    let is_described = !(operation.description.is_empty()
        && operation.inputs.is_empty()
        && operation.outputs.is_empty());
    if !is_described {
        return Ok(json!({"type": "object"}));
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for input in &operation.inputs {
        let place = format!("{place}, input '{}'", input.name);
        let property = property(input).map_err(|fault| format!("{place}: {fault}"))?;
        if properties.insert(input.name.clone(), property).is_some() {
            return Err(format!("{place} is declared twice"));
        }
        if input.required {
            required.push(input.name.as_str());
        }
    }
    Ok(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}

fn property(input: &InputSchema) -> Result<Value, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let length = input.name.chars().count();
    if length == 0 || length > limits::INPUT_NAME_CHARS_MAX || !input.name.chars().all(is_plain) {
        let most = limits::INPUT_NAME_CHARS_MAX;
        return Err(format!("a name must have 1 to {most} letters, digits, '_', '.' and '-'"));
    }
    let kind = input.r#type.as_str();
    let mut property = match kind {
        "string" | "integer" | "number" | "boolean" | "object" => json!({"type": kind}),
        // Models expect an item type; the plugin does not state one.
        "array" => json!({"type": kind, "items": {}}),
        "" => return Err("its type is missing".to_owned()),
        other => {
            return Err(format!(
                "unknown type '{other}': must be string, integer, number, boolean, array or object"
            ));
        }
    };
    match (input.validation.as_str(), kind) {
        ("", _) => {}
        ("url", "string") => property["format"] = json!("uri"),
        ("email", "string") => property["format"] = json!("email"),
        (rule @ ("url" | "email"), kind) => {
            return Err(format!(
                "validation '{rule}' requires type 'string', but the type is '{kind}'"
            ));
        }
        (rule, _) => return Err(format!("unknown validation '{rule}': must be url or email")),
    }
    if !input.description.is_empty() {
        property["description"] = json!(input.description);
    }
    // The wire format cannot distinguish an empty default from none.
    if !input.default.is_empty() {
        property["default"] = default(kind, &input.default)?;
    }
    Ok(property)
}

/// Converts a default: the wire format has strings, a schema has values.
fn default(kind: &str, text: &str) -> Result<Value, String> {
    if kind == "string" {
        return Ok(text.into());
    }
    let value = json::parse(text.trim()).ok();
    let fits = |value: &Value| match kind {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    value.filter(fits).ok_or_else(|| format!("the default '{text}' is not of type {kind}"))
}

#[cfg(test)]
mod tests;
