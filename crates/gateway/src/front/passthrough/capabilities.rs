//! The capabilities that a view declares: those of its server, or of all servers that the caller
//! sees, without those that the gate does not pass on.

use std::sync::Arc;

use mcp::handshake::Welcome;
use mcp::message::Raw;
use mcp::object::ObjectMembers;

use crate::limits;

/// The capabilities of a view that has only tools.
pub(super) const TOOLS: &str = r#"{"tools":{"listChanged":true}}"#;

/// Lists that the gate reviews, and so may change at any time.
const REVIEWED: [&str; 3] = ["tools", "prompts", "resources"];

/// Capabilities of no fixed size, which are not reviewed.
const OPEN: [&str; 2] = ["experimental", "extensions"];

/// A capability that is not passed on.
const TASKS: &str = "tasks";

/// Returns a server's capabilities as its clients get them.
pub(super) fn passed(welcome: &Welcome) -> Option<Raw> {
    passed_of(&welcome.capabilities()?)
}

fn passed_of(declared: &str) -> Option<Raw> {
    let mut members: ObjectMembers<'_> = serde_json::from_str(declared).ok()?;
    members.remove(TASKS);
    for name in REVIEWED {
        let Some(capability) = members.get(name).map(str::to_owned) else { continue };
        let mut capability: ObjectMembers<'_> = serde_json::from_str(&capability).ok()?;
        capability.set("listChanged", "true");
        let capability = capability.write_text();
        members.set(name, capability);
    }
    for name in OPEN {
        if members.get(name).is_some_and(|json| json.len() > limits::OPEN_CAPABILITY_BYTES_MAX) {
            members.remove(name);
        }
    }
    Some(members.write())
}

/// Returns what all servers together offer. One that has not answered yet may offer anything.
pub(super) fn of_all(welcomes: &[Option<Arc<Welcome>>]) -> Raw {
    let declared = |name: &str| {
        let of = |welcome: &Option<Arc<Welcome>>| match welcome {
            Some(welcome) => welcome.capability(name),
            None => Some(EVERYTHING.to_owned()),
        };
        welcomes.iter().filter_map(of).collect::<Vec<String>>()
    };
    merged(declared)
}

/// Value for a capability about which nothing is known.
const EVERYTHING: &str = r#"{"subscribe":true}"#;

fn merged(declared: impl Fn(&str) -> Vec<String>) -> Raw {
    let mut members = ObjectMembers::default();
    members.set("tools", r#"{"listChanged":true}"#);
    if !declared("prompts").is_empty() {
        members.set("prompts", r#"{"listChanged":true}"#);
    }
    let resources = declared("resources");
    if !resources.is_empty() {
        let subscribes = |capability: &String| {
            let members: Option<ObjectMembers<'_>> = serde_json::from_str(capability).ok();
            members.is_some_and(|members| members.get("subscribe") == Some("true"))
        };
        let subscribe = resources.iter().any(subscribes);
        members.set("resources", format!(r#"{{"subscribe":{subscribe},"listChanged":true}}"#));
    }
    for name in ["completions", "logging"] {
        if !declared(name).is_empty() {
            members.set(name, "{}");
        }
    }
    members.write()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_capabilities_pass_except_for_tasks() {
        let passed = |declared: &str| passed_of(declared).map(|raw| raw.get().to_owned());
        let declared = r#"{"logging":{},"prompts":{},"tasks":{"list":{}},"resources":{"subscribe":true,"x":1E2},"experimental":{"a":{}},"tools":{"listChanged":false}}"#;
        let expected = r#"{"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"x":1E2,"listChanged":true},"experimental":{"a":{}},"tools":{"listChanged":true}}"#;
        assert_eq!(passed(declared).as_deref(), Some(expected));
        assert_eq!(passed("{}").as_deref(), Some("{}"));
        assert_eq!(passed("[]"), None);
        let large = format!(r#"{{"experimental":{{"a":"{}"}},"tools":{{}}}}"#, "x".repeat(20_000));
        assert_eq!(passed(&large).as_deref(), Some(TOOLS));
    }

    #[test]
    fn all_servers_declare_what_any_of_them_has() {
        let merge = |servers: &[&[(&str, &str)]]| {
            let declared = |name: &str| {
                let of = |server: &&[(&str, &str)]| {
                    server.iter().find(|(known, _)| *known == name).map(|(_, it)| (*it).to_owned())
                };
                servers.iter().filter_map(of).collect()
            };
            merged(declared).get().to_owned()
        };
        assert_eq!(merge(&[]), TOOLS);
        assert_eq!(merge(&[&[("tools", "{}"), ("experimental", "{}")]]), TOOLS);
        let expected = r#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"logging":{}}"#;
        let (one, other) = (
            [("resources", "{}"), ("logging", "{}")],
            [("resources", r#"{"subscribe":true}"#), ("prompts", "{}")],
        );
        assert_eq!(merge(&[&one, &other]), expected);
        assert!(of_all(&[None]).get().contains(r#""completions":{}"#), "it may have everything");
    }
}
