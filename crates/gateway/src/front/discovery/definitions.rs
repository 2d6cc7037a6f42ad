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
        // Claude Code hides the tools of a server behind a search of its own without it.
        tool["_meta"] = json!({"anthropic/alwaysLoad": true});
    }
    tools
}

fn retrieve_tools() -> Value {
    let flag = |description: &str| json!({"type": "boolean", "default": false, "description": description});
    json!({
        "name": "retrieve_tools",
        "title": "Find tools",
        "description": "Finds tools by what they do. Describe the task in a few words; each result \
            has its name, description, input schema and the call_tool_* variant to call it with. \
            Start here: only this search finds the servers' tools. \
            include_disabled:true also shows tools that are locked, why, and who can unlock them.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What you want to do, in a few words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": limits::SEARCH_LIMIT_MAX,
                    "description": "Maximum number of results (default 15)."},
                "detail": {"type": "string", "enum": ["full", "compact"], "default": "full",
                    "description": "compact: one-line signatures in place of input schemas; \
                        describe_tool returns the full schema."},
                "read_only_only": flag("Return only tools marked read-only."),
                "exclude_destructive": flag("Leave out tools marked destructive."),
                "exclude_open_world": flag("Return only tools marked as closed-world."),
                "include_disabled": flag("Also return locked tools, with the reason and who can \
                    unlock them."),
            },
            "required": ["query"],
        },
        "annotations": read_only("Find tools"),
    })
}

fn describe_tool() -> Value {
    json!({
        "name": "describe_tool",
        "title": "Describe tools",
        "description": "Returns the full definitions of tools by name, as their servers sent them.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_ids": {"type": "array", "items": {"type": "string"}, "minItems": 1,
                    "maxItems": limits::DESCRIBE_MAX,
                    "description": "Names as in retrieve_tools results: server:tool."},
            },
            "required": ["tool_ids"],
        },
        "annotations": read_only("Describe tools"),
    })
}

fn call_tool(class: Class) -> Value {
    let (title, description) = match class {
        Class::Read => (
            "Call a tool that reads",
            "Calls a tool that only reads: queries, lists, lookups, searches. Nothing may change. \
             Use it where retrieve_tools says call_with: call_tool_read. \
             intent.operation_type must be \"read\".",
        ),
        Class::Write => (
            "Call a tool that writes",
            "Calls a tool that creates or changes something and destroys nothing. Use it where \
             retrieve_tools says call_with: call_tool_write, and when in doubt about a tool \
             without annotations. intent.operation_type must be \"write\".",
        ),
        Class::Destructive => (
            "Call a destructive tool",
            "Calls a tool that deletes or overwrites, or whose effect cannot be undone. Use it \
             where retrieve_tools says call_with: call_tool_destructive. \
             intent.operation_type must be \"destructive\".",
        ),
    };
    json!({
        "name": class.variant(),
        "title": title,
        "description": description,
        "inputSchema": call_schema(class),
        "annotations": {
            "title": title,
            "readOnlyHint": class == Class::Read,
            "destructiveHint": class == Class::Destructive,
            "openWorldHint": true,
        },
    })
}

/// Requires only `name`, because the intent may be nested or flat.
fn call_schema(class: Class) -> Value {
    let operation = || {
        json!({"type": "string", "enum": [class.as_str()],
        "description": format!("Must be \"{class}\", the same as the tool variant.")})
    };
    let sensitivity = || {
        json!({"type": "string", "enum": ["public", "internal", "private", "unknown"],
        "description": "How sensitive the data that the call touches is."})
    };
    let reason = || {
        json!({"type": "string", "maxLength": 1000,
        "description": "Reason for the call, in one sentence; it is recorded."})
    };
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool, as server:tool."},
            "args": {"type": "object", "description": "The tool's arguments."},
            "args_json": {"type": "string",
                "description": "The arguments as a JSON string, in place of args."},
            "intent": {
                "type": "object",
                "description": "What the call is for. Required, here or in the flat spelling.",
                "properties": {
                    "operation_type": operation(),
                    "data_sensitivity": sensitivity(),
                    "reason": reason(),
                },
                "required": ["operation_type"],
            },
            "intent_operation_type": operation(),
            "intent_data_sensitivity": sensitivity(),
            "intent_reason": reason(),
        },
        "required": ["name"],
    })
}

fn read_cache() -> Value {
    json!({
        "name": "read_cache",
        "title": "Read more",
        "description": "Reads more of a result that was cut because it was too long; the cut \
            result names the key.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "key": {"type": "string", "description": "The key from the cut result."},
                "offset": {"type": "integer", "minimum": 0, "default": 0,
                    "description": "First character to read."},
                "limit": {"type": "integer", "minimum": 1,
                    "description": "Maximum characters to read (default: the limit for one result)."},
            },
            "required": ["key"],
        },
        "annotations": read_only("Read more"),
    })
}

fn upstream_servers() -> Value {
    json!({
        "name": "upstream_servers",
        "title": "Servers",
        "description": "Shows the servers behind the gate and whether they are available.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "operation": {"type": "string", "enum": ["list", "get"], "default": "list",
                    "description": "list: all servers; get: one."},
                "name": {"type": "string", "description": "The server, for get."},
            },
        },
        "annotations": read_only("Servers"),
    })
}

fn read_only(title: &str) -> Value {
    json!({"title": title, "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false})
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
