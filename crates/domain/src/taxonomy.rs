//! The action type of a call and its risk: the published action types with their default risks, and
//! the tools that map to them. Known facts can raise a risk but never lower it.

use std::collections::HashMap;
use std::sync::LazyLock;

use receipt::RiskLevel;
use serde::{Deserialize, Serialize};

use crate::tool::{Class, Source};

/// The published action types with their default risks.
static ACTIONS: LazyLock<Vec<(&str, RiskLevel)>> = LazyLock::new(|| {
    let published: Taxonomy = serde_json::from_str(include_str!("taxonomy/action-types.json"))
        .expect("the tests read the list");
    let actions = published.domains.into_values().flat_map(|domain| domain.actions);
    let risk = |level| RiskLevel::parse(level).expect("the tests read the list");
    actions.map(|action| (action.name, risk(action.risk_level))).collect()
});

#[derive(Deserialize)]
struct Taxonomy<'a> {
    #[serde(borrow)]
    domains: HashMap<&'a str, Domain<'a>>,
}

#[derive(Deserialize)]
struct Domain<'a> {
    #[serde(borrow)]
    actions: Vec<Action<'a>>,
}

#[derive(Deserialize)]
struct Action<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    risk_level: &'a str,
}

/// An action type of the taxonomy, or [`ActionType::UNKNOWN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct ActionType(&'static str);

impl ActionType {
    /// A receipt of this type must name the system acted upon.
    pub const UNKNOWN: ActionType = ActionType("unknown");

    /// Returns `None` for types that the taxonomy does not list.
    pub fn parse(text: &str) -> Option<ActionType> {
        ACTIONS.iter().find(|(name, _)| *name == text).map(|(name, _)| ActionType(name))
    }

    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Returns the taxonomy's default risk; unknown actions count as medium.
    pub fn default_risk(self) -> RiskLevel {
        let listed = ACTIONS.iter().find(|(name, _)| *name == self.0);
        listed.map_or(RiskLevel::Medium, |(_, risk)| *risk)
    }
}

/// The action that a receipt records for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallAction {
    pub action_type: ActionType,
    pub risk: RiskLevel,
}

/// Knowledge about a file before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    Absent,
    Present,
    Unknown,
}

/// Returns the action of a call. `effective` is the class that the gate assigned, if the call got
/// that far.
pub fn classify(
    source: &Source,
    tool: &str,
    effective: Option<Class>,
    before: Before,
) -> CallAction {
    let action_type = match source {
        Source::Builtin => builtin(tool, before).unwrap_or(ActionType::UNKNOWN),
        Source::Mcp(_) => effective.map_or(ActionType::UNKNOWN, api),
        Source::Plugin(_) => ActionType::UNKNOWN,
    };
    CallAction { action_type, risk: raised(action_type.default_risk(), effective) }
}

/// Returns the action of an outside event: its own type if the taxonomy lists it, otherwise that of
/// its tool. A server's tool names are its own and map to nothing.
pub fn classify_event(given: Option<&str>, server: Option<&str>, tool: &str) -> CallAction {
    let own = || server.is_none().then(|| outside_builtin(tool)).flatten();
    let action_type = given.and_then(ActionType::parse).or_else(own).unwrap_or(ActionType::UNKNOWN);
    CallAction { action_type, risk: action_type.default_risk() }
}

/// Returns the action of a run-time decision about a server, a tool or a token, which changes what
/// agents may do from then on.
pub fn classify_decision() -> CallAction {
    let action_type = ActionType("system.settings.modify");
    CallAction { action_type, risk: action_type.default_risk() }
}

fn raised(risk: RiskLevel, effective: Option<Class>) -> RiskLevel {
    match effective {
        Some(Class::Destructive) => risk.max(RiskLevel::High),
        Some(Class::Read | Class::Write) | None => risk,
    }
}

fn api(class: Class) -> ActionType {
    match class {
        Class::Read => ActionType("data.api.read"),
        Class::Write => ActionType("data.api.write"),
        Class::Destructive => ActionType("data.api.delete"),
    }
}

fn builtin(tool: &str, before: Before) -> Option<ActionType> {
    Some(ActionType(match (tool, before) {
        ("Read" | "Grep", _) => "filesystem.file.read",
        ("Write", Before::Absent) => "filesystem.file.create",
        ("Write", Before::Present | Before::Unknown) => "filesystem.file.modify",
        ("Edit", _) => "filesystem.file.modify",
        ("Glob", _) => "filesystem.directory.list",
        ("Bash", _) => "system.command.execute",
        _ => return None,
    }))
}

/// Maps the built-ins of agents that run elsewhere, by their Claude Code names.
fn outside_builtin(tool: &str) -> Option<ActionType> {
    Some(ActionType(match tool {
        "MultiEdit" | "NotebookEdit" => "filesystem.file.modify",
        "NotebookRead" => "filesystem.file.read",
        "LS" => "filesystem.directory.list",
        "BashOutput" | "KillBash" | "KillShell" => "system.command.execute",
        "WebFetch" | "WebSearch" => "data.api.read",
        tool => return builtin(tool, Before::Unknown),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_classified_by_tool_and_class() {
        use Before::{Absent, Present, Unknown};
        use Class::{Destructive, Read, Write};
        use RiskLevel::{High, Low, Medium};
        let builtin = Source::Builtin;
        let mcp = Source::Mcp("git".into());
        let plugin = Source::Plugin("jira".into());
        for (source, tool, effective, before, action_type, risk) in [
            (&builtin, "Read", Some(Read), Unknown, "filesystem.file.read", Low),
            (&builtin, "Write", Some(Write), Absent, "filesystem.file.create", Low),
            (&builtin, "Write", Some(Write), Present, "filesystem.file.modify", Medium),
            (&builtin, "Write", Some(Write), Unknown, "filesystem.file.modify", Medium),
            (&builtin, "Write", Some(Destructive), Absent, "filesystem.file.create", High),
            (&builtin, "Edit", Some(Write), Present, "filesystem.file.modify", Medium),
            (&builtin, "Bash", Some(Read), Unknown, "system.command.execute", High),
            (&builtin, "Glob", Some(Read), Unknown, "filesystem.directory.list", Low),
            (&builtin, "Grep", Some(Read), Unknown, "filesystem.file.read", Low),
            (&builtin, "Other", None, Unknown, "unknown", Medium),
            (&mcp, "Read", Some(Read), Unknown, "data.api.read", Low),
            (&mcp, "x", Some(Write), Unknown, "data.api.write", Medium),
            (&mcp, "x", Some(Destructive), Unknown, "data.api.delete", High),
            (&mcp, "x", None, Unknown, "unknown", Medium),
            (&plugin, "x", Some(Read), Unknown, "unknown", Medium),
            (&plugin, "x", Some(Destructive), Unknown, "unknown", High),
        ] {
            let action = classify(source, tool, effective, before);
            assert_eq!((action.action_type.as_str(), action.risk), (action_type, risk), "{tool}");
        }
    }

    #[test]
    fn a_decision_is_a_change_of_settings() {
        let action = classify_decision();
        assert_eq!(ActionType::parse("system.settings.modify"), Some(action.action_type));
        assert_eq!(action.risk, RiskLevel::High);
    }

    #[test]
    fn no_class_lowers_a_risk() {
        for (name, default) in ACTIONS.iter() {
            let action = ActionType::parse(name).unwrap();
            assert_eq!(action.default_risk(), *default);
            for class in Class::ALL {
                assert!(raised(*default, Some(class)) >= *default, "{name}");
            }
        }
    }

    #[test]
    fn events_are_classified_by_what_they_say_or_by_the_tool() {
        for (given, server, tool, expected) in [
            (Some("financial.payment.initiate"), None, "Read", "financial.payment.initiate"),
            (Some("made.up.type"), None, "Read", "filesystem.file.read"),
            (None, None, "MultiEdit", "filesystem.file.modify"),
            (None, None, "WebFetch", "data.api.read"),
            (None, None, "TodoWrite", "unknown"),
            (None, Some("fs"), "Read", "unknown"),
        ] {
            assert_eq!(
                classify_event(given, server, tool).action_type.as_str(),
                expected,
                "{tool}"
            );
        }
    }
}
