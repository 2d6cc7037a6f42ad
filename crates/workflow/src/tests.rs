//! Black-box tests of workflows: text in; faults, plans and actions out.

mod conditions;
mod environment;
mod hostile;
mod reading;
mod running;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;

/// Returns an inventory with one server, two approved plugins, one unapproved plugin, and a codex
/// that keeps its own tools.
fn known() -> Inventory {
    let usable = || KnownOperation::Usable { inputs: serde_json::json!({"type": "object"}) };
    let approved = |names: &[&str]| KnownPlugin::Approved {
        operations: names.iter().map(|name| ((*name).to_owned(), usable())).collect(),
    };
    Inventory {
        servers: BTreeMap::from([("github".to_owned(), ServerAvailability::Usable)]),
        plugins: BTreeMap::from([
            ("kubernetes".to_owned(), approved(&["kubectl_apply", "kubectl_get", "_x"])),
            ("kubernetes_kubectl".to_owned(), approved(&["get"])),
            ("github".to_owned(), approved(&["_issue", "issue", "bad.name"])),
            ("strange".to_owned(), KnownPlugin::NotApproved),
        ]),
        agents: BTreeMap::from([
            (
                (Provider::Codex, None),
                AgentSupport::Coexistence("version 0.1 is too old".to_owned()),
            ),
            ((Provider::Claude, None), AgentSupport::Full),
        ]),
        ..Inventory::default()
    }
}

fn workflow(text: &str) -> Arc<Workflow> {
    let read = read(text, &known());
    let told: Vec<String> = read.errors.iter().map(ToString::to_string).collect();
    Arc::new(read.workflow.unwrap_or_else(|| panic!("{told:#?}\nin {text}")))
}

/// Formats a fault as `CODE line:column path: message`, without the common prefix of all codes.
fn told(fault: &WorkflowFault) -> String {
    let WorkflowFault { code, message, path, line, column } = fault;
    let code = code.as_str().strip_prefix("USER.").unwrap_or(code.as_str());
    format!("{code} {line}:{column} {path}: {message}")
}

fn errors(text: &str) -> Vec<String> {
    read(text, &known()).errors.iter().map(told).collect()
}

fn warnings(text: &str) -> Vec<String> {
    let read = read(text, &known());
    assert_eq!(read.errors, [], "{text}");
    read.warnings.iter().map(told).collect()
}

/// Puts two lines before the states, so that they begin on the third, and appends `done` and
/// `failed`.
fn with_states(states: &str) -> String {
    let ends = "  done: {type: terminal}\n  failed: {type: terminal, status: failure}\n";
    format!("name: n\nstates:\n{states}\n{ends}")
}

/// Wraps these keys, on line 4, in a state `s` of an otherwise valid workflow.
fn with_state(keys: &str) -> String {
    let failure = if keys.contains("on_failure") { "" } else { ", on_failure: failed" };
    with_states(&format!("  initial: s\n  s: {{{keys}, on_success: done{failure}}}"))
}

/// Removes the mark `§` from the text and replaces `@` in the expectation with its line and column.
fn placed(text: &str, expect: &str) -> (String, String) {
    let Some(at) = text.find('§') else { return (text.to_owned(), expect.to_owned()) };
    let line = text[..at].matches('\n').count() + 1;
    let column = text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
    (text.replace('§', ""), expect.replacen('@', &format!("{line}:{column}"), 1))
}
