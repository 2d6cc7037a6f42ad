//! The gate's own tools as `tools/list` shows them. The descriptions are for models: they say when
//! to use which tool.

use std::sync::OnceLock;

use domain::tool::Class;
use mcp::message::{Raw, to_raw};
use serde_json::{Value, json};

use crate::limits;

/// The `tools/list` result, built once.
pub(super) fn list() -> Raw {
    static LIST: OnceLock<Raw> = OnceLock::new();
    LIST.get_or_init(|| to_raw(&json!({"tools": definitions()}))).clone()
}

/// Names of all tools defined here, for suggestions.
pub(super) const NAMES: [&str; 7] = [
    "retrieve_tools",
    "describe_tool",
    "call_tool_read",
    "call_tool_write",
    "call_tool_destructive",
    "read_cache",
    "upstream_servers",
];

fn definitions() -> Vec<Value> {
    let mut tools = vec![retrieve_tools(), describe_tool()];
    tools.extend(Class::ALL.map(call_tool));
    tools.extend([read_cache(), upstream_servers()]);
    for tool in &mut tools {
        // Claude Code hides the tools of a server behind its own search without it.
        tool["_meta"] = json!({"anthropic/alwaysLoad": true});
    }
    tools
}

fn retrieve_tools() -> Value {
    let flag = |description: &str| json!({"type": "boolean", "description": description});
    json!({
        "name": "retrieve_tools",
        "description": "Start here: only this search finds the servers' tools. Returns name, \
            purpose, parameters (* required) and call_with, the tool to call it with. \
            include_disabled:true also shows locked tools, why, and who can unlock them.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What you want to do, in a few words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": limits::SEARCH_LIMIT_MAX},
                "detail": {"type": "string", "enum": ["compact", "full"],
                    "description": "full: with input schemas."},
                "read_only_only": flag("Only tools marked read-only."),
                "exclude_destructive": flag("No tools marked destructive."),
                "exclude_open_world": flag("Only tools marked closed-world."),
                "include_disabled": {"type": "boolean"},
            },
            "required": ["query"],
        },
        "annotations": read_only(),
    })
}

fn describe_tool() -> Value {
    json!({
        "name": "describe_tool",
        "description": "Returns full definitions, with input schemas, by name.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_ids": {"type": "array", "items": {"type": "string"},
                    "maxItems": limits::DESCRIBE_MAX,
                    "description": "Names from retrieve_tools: server:tool."},
            },
            "required": ["tool_ids"],
        },
        "annotations": read_only(),
    })
}

fn call_tool(class: Class) -> Value {
    let description = match class {
        Class::Read => {
            "Calls a tool that only reads (call_with: call_tool_read), or reads a resource: give its \
             link as name."
        }
        Class::Write => {
            "Calls a tool that creates or changes something (call_with: call_tool_write); also when \
             in doubt about a tool without annotations."
        }
        Class::Destructive => {
            "Calls a tool that deletes, overwrites or cannot be undone (call_with: \
             call_tool_destructive)."
        }
    };
    json!({
        "name": class.variant(),
        "description": description,
        "inputSchema": call_schema(class),
        "annotations": {
            "readOnlyHint": class == Class::Read,
            "destructiveHint": class == Class::Destructive,
            "openWorldHint": true,
        },
    })
}

/// Requires only `name`, because the intent may be nested or flat. The schema is sent three times,
/// so it says no more than a model needs.
fn call_schema(class: Class) -> Value {
    let operation = json!({"type": "string", "enum": [class.as_str()]});
    let sensitivity =
        json!({"type": "string", "enum": ["public", "internal", "private", "unknown"]});
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "server:tool"},
            "args": {"type": "object"},
            "args_json": {"type": "string", "description": "Or args as a JSON string."},
            "intent": {
                "type": "object",
                "description": "Required, here or flat.",
                "properties": {
                    "operation_type": operation,
                    "data_sensitivity": sensitivity,
                    "reason": {"type": "string", "description": "Why; recorded."},
                },
                "required": ["operation_type"],
            },
            "intent_operation_type": operation,
            "intent_data_sensitivity": {"type": "string"},
            "intent_reason": {"type": "string"},
        },
        "required": ["name"],
    })
}

fn read_cache() -> Value {
    json!({
        "name": "read_cache",
        "description": "Reads on in a result that was cut; the cut result names the key.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "key": {"type": "string"},
                "offset": {"type": "integer", "minimum": 0, "description": "First character."},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["key"],
        },
        "annotations": read_only(),
    })
}

fn upstream_servers() -> Value {
    json!({
        "name": "upstream_servers",
        "description": "Shows the servers behind the gate and whether they are available.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "operation": {"type": "string", "enum": ["list", "get"]},
                "name": {"type": "string"},
            },
        },
        "annotations": read_only(),
    })
}

fn read_only() -> Value {
    json!({"readOnlyHint": true})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_match_the_list_of_names() {
        let names: Vec<String> =
            definitions().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn all_definitions_together_fit_1200_tokens() {
        let tokens = list().get().chars().count() / 4;
        assert!(tokens <= 1200, "{tokens}");
    }

    #[test]
    fn the_three_variants_carry_their_own_annotations() {
        for (class, read_only, destructive) in [
            (Class::Read, true, false),
            (Class::Write, false, false),
            (Class::Destructive, false, true),
        ] {
            let annotations = &call_tool(class)["annotations"];
            assert_eq!(annotations["readOnlyHint"], read_only);
            assert_eq!(annotations["destructiveHint"], destructive);
            assert_eq!(annotations["openWorldHint"], true);
        }
    }
}
