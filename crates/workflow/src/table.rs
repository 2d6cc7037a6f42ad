//! The tools of a step: the built-ins if they are intercepted, plugin operations, and servers of
//! the config.

use serde_json::{Map, Value};

use super::fault::Report;
use super::plan::{Proxy, State};
use super::{Inventory, KnownOperation, KnownPlugin, ServerAvailability, WorkflowFault};
use domain::code::Code;
use domain::exposed::NAME_CHARS_MAX;
use domain::schema::{Schema, SchemaVerdict};
use text::document::Location;
use text::json::Object;
use text::near;

/// The tools that replace the agent's own.
pub const BUILTINS: [&str; 6] = ["Read", "Write", "Edit", "Bash", "Glob", "Grep"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolTableEntry {
    /// `server__*` means all tools that a server has when the step runs.
    pub name: String,
    pub source: ToolSource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolSource {
    Builtin,
    Plugin { plugin: String, operation: String },
    Server(String),
}

/// Returns the tools of a step with an agent; none for other states or if `mcp_proxy` is not
/// enabled.
///
/// A workflow that was read against the same inventory has a table for every step.
pub fn table(step: &State, known: &Inventory) -> Result<Vec<ToolTableEntry>, WorkflowFault> {
    let Some(agent) = step.agent().filter(|agent| agent.proxy.enable) else {
        return Ok(Vec::new());
    };
    let mut report = Report::default();
    let table = checked(&agent.proxy, known, &mut report);
    match report.finish().errors.into_iter().next() {
        Some(fault) => Err(fault),
        None => Ok(table),
    }
}

pub(super) fn checked(
    proxy: &Proxy,
    known: &Inventory,
    report: &mut Report,
) -> Vec<ToolTableEntry> {
    let mut table = Table { entries: Vec::new(), report };
    if proxy.intercept_builtins {
        for name in BUILTINS {
            table.add(name.to_owned(), ToolSource::Builtin, &proxy.location);
        }
    }
    for (server, location) in proxy.mcp_servers.iter().zip(&proxy.server_locations) {
        table.add_server(server, known, location);
    }
    for tools in &proxy.plugin_tools {
        for (operation, location) in tools.expose.iter().zip(&tools.locations) {
            let is_known = known_operation(&tools.plugin, operation, known);
            if let Err((code, message)) = is_known {
                // The plugin itself is reported once, where it is named.
                if code == Code::ProxyUnknownOperation {
                    table.report.error(location, code, message);
                }
                continue;
            }
            let name = tool_name(&tools.plugin, operation);
            let (plugin, operation) = (tools.plugin.clone(), operation.clone());
            table.add(name, ToolSource::Plugin { plugin, operation }, location);
        }
        if let Err((code, message)) = known_plugin(&tools.plugin, known) {
            table.report.error(&tools.location, code, message);
        }
    }
    table.entries
}

/// Returns the tool name of a plugin's operation.
pub fn tool_name(plugin: &str, operation: &str) -> String {
    format!("{plugin}_{operation}")
}

/// Returns the message for a plugin that has not been approved.
pub fn not_approved(plugin: &str) -> String {
    format!(
        "plugin '{plugin}' is not approved: review it, then run 'countersign plugin approve \
         {plugin}'"
    )
}

/// Checks a plugin's name, and returns the code and message of a fault.
pub(super) fn known_plugin(plugin: &str, known: &Inventory) -> Result<(), (Code, String)> {
    match known.plugins.get(plugin) {
        Some(KnownPlugin::Approved { .. }) => Ok(()),
        Some(KnownPlugin::NotApproved) => Err((Code::ProxyPluginNotApproved, not_approved(plugin))),
        Some(KnownPlugin::Unusable(reason)) => {
            let message = format!("plugin '{plugin}' cannot be used: {reason}");
            Err((Code::ProxyUnknownPlugin, message))
        }
        None => {
            let near = near::names(plugin, known.plugins.keys().map(String::as_str), 1);
            let message = format!("plugin '{plugin}' not found{}", near::hint(&near));
            Err((Code::ProxyUnknownPlugin, message))
        }
    }
}

pub(super) fn known_operation(
    plugin: &str,
    operation: &str,
    known: &Inventory,
) -> Result<(), (Code, String)> {
    known_plugin(plugin, known)?;
    let Some(KnownPlugin::Approved { operations }) = known.plugins.get(plugin) else {
        return Ok(());
    };
    let message = match operations.get(operation) {
        Some(KnownOperation::Usable { .. }) => return Ok(()),
        // The reason names the plugin and the operation.
        Some(KnownOperation::Unusable(reason)) => reason.clone(),
        None => {
            let near = near::names(operation, operations.keys().map(String::as_str), 1);
            let hint = near::hint(&near);
            format!("plugin '{plugin}' has no operation '{operation}'{hint}")
        }
    };
    Err((Code::ProxyUnknownOperation, message))
}

/// Returns the fault in those inputs of an operation that do not depend on values.
pub(super) fn input_fault(
    plugin: &str,
    operation: &str,
    inputs: &Map<String, Value>,
    known: &Inventory,
) -> Option<String> {
    let Some(KnownPlugin::Approved { operations }) = known.plugins.get(plugin) else { return None };
    let Some(KnownOperation::Usable { inputs: schema }) = operations.get(operation) else {
        return None;
    };
    let (open, fixed): (Vec<_>, Vec<_>) =
        inputs.clone().into_iter().partition(|(_, value)| has_template(value));
    let mut schema = schema.clone();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !open.iter().any(|(given, _)| name == given));
    }
    if schema["additionalProperties"] == Value::Bool(false)
        && let Some((name, _)) = open.iter().find(|(name, _)| schema["properties"][name].is_null())
    {
        return Some(format!("{plugin}.{operation} has no input '{name}'"));
    }
    let fixed = Value::Object(fixed.into_iter().collect()).to_string();
    let fixed = Object::parse(&fixed).ok().flatten()?;
    match Schema::compile(Some(&schema.to_string())).check(&fixed) {
        SchemaVerdict::Faulty(refusal) => Some(refusal.message),
        SchemaVerdict::Fits | SchemaVerdict::Unknown(_) => None,
    }
}

fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(elements) => elements.iter().any(has_template),
        Value::Object(members) => members.values().any(has_template),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

struct Table<'r> {
    entries: Vec<ToolTableEntry>,
    report: &'r mut Report,
}

impl Table<'_> {
    fn add_server(&mut self, server: &str, known: &Inventory, location: &Location) {
        match known.servers.get(server) {
            Some(ServerAvailability::Usable) => {}
            Some(ServerAvailability::Unusable(reason)) => {
                let message = format!("server '{server}' cannot be used: {reason}");
                self.report.error(location, Code::ProxyServerUnusable, message);
                return;
            }
            None => {
                let near = near::names(server, known.servers.keys().map(String::as_str), 1);
                let hint = near::hint(&near);
                let message = format!("server '{server}' not found in the config{hint}");
                self.report.error(location, Code::ProxyUnknownServer, message);
                return;
            }
        }
        self.add(format!("{server}__*"), ToolSource::Server(server.to_owned()), location);
    }

    fn add(&mut self, name: String, source: ToolSource, location: &Location) {
        if let Some(other) = self.entries.iter().find(|entry| meet(&entry.name, &name)) {
            let message = format!("two tools are named {name}: {} and this one", told(other));
            self.report.error(location, Code::ProxyNameCollision, message);
            return;
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_server = matches!(source, ToolSource::Server(_));
        if !is_server && (name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain)) {
            let message = format!(
                "tool name '{name}' is not valid: clients accept at most {NAME_CHARS_MAX} \
                 letters, digits, '_' and '-'"
            );
            self.report.error(location, Code::WorkflowBadName, message);
            return;
        }
        self.entries.push(ToolTableEntry { name, source });
    }
}

/// Reports whether two names can clash. A server's tools are unknown, so every name with its prefix
/// counts.
fn meet(one: &str, other: &str) -> bool {
    match (one.strip_suffix("__*"), other.strip_suffix("__*")) {
        (Some(server), None) => begins(other, server),
        (None, Some(server)) => begins(one, server),
        (Some(_), Some(_)) | (None, None) => one == other,
    }
}

fn begins(name: &str, server: &str) -> bool {
    name.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"))
}

fn told(entry: &ToolTableEntry) -> String {
    match &entry.source {
        ToolSource::Builtin => "the built-in one".to_owned(),
        ToolSource::Plugin { plugin, operation } => format!("{operation} of plugin '{plugin}'"),
        ToolSource::Server(server) => format!("a tool of server '{server}'"),
    }
}
