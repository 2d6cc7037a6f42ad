//! `targets` of a server: the operator's mapping of arguments to resources.

use std::sync::Arc;

use serde_json::Value;

use super::declare::keys;
use super::keys::Table;
use super::kind::{Described, Kind};
use super::members::Members;
use super::report::Report;
use text::document::{Content, Node, ScalarKind, shown};
use touch::targets::{
    MAPPING_RULES_MAX, RULE_TEMPLATES_MAX, RuleResource, TargetMapping, TargetRule, TargetTemplate,
    ToolPattern, system_fault,
};

static TARGETS: Table = Table {
    path: "mcpServers.<name>.targets",
    groups: &[keys! {
        Hot system, "string",
            "Replaces the server's name as the system of its resources, such as `github.com`.";
        Hot rules, Described::listed(&RULE), "Tried in their order, before the built-in ones.";
    }],
    foreign: &[],
};

static RULE: Table = Table {
    path: "mcpServers.<name>.targets.rules[]",
    groups: &[keys! {
        Hot tools, "string, such as `get_*`",
            "The tools that the rule is for: `*` stands for any text, a bar separates names. Required.";
        Hot resource, "template, list of templates, or `null`",
            "Names what a call touches; `null` for calls that touch nothing. Required.";
        Hot reads, "template or list of templates",
            "Names what a call only reads, such as the source of a copy.";
    }],
    foreign: &[],
};

pub(super) struct Targets;

impl Kind<Arc<TargetMapping>> for Targets {
    fn words(&self) -> String {
        format!("object, see `{}`", TARGETS.path)
    }

    fn read(&self, node: &Node<'_>, report: &mut Report) -> Option<Arc<TargetMapping>> {
        let members = Members::open(node, &TARGETS, report)?;
        let system = members.read("system", report, system);
        let rules = members.read("rules", report, rules).unwrap_or_default();
        if members.get("system").is_none() && members.get("rules").is_none() {
            report.note(&members.location, "has no effect: set 'system' or 'rules'");
        }
        Some(Arc::new(TargetMapping { system, rules }))
    }

    fn show(&self, value: &Arc<TargetMapping>) -> Option<Value> {
        Some(value.to_json())
    }

    fn table(&self) -> Option<&'static Table> {
        Some(&TARGETS)
    }
}

fn system(node: &Node<'_>, report: &mut Report) -> Option<String> {
    let text = report.take(node.text())?;
    match system_fault(text) {
        Some(fault) => {
            report.fault(&node.location, format!("{fault}, found {}", shown(text)));
            None
        }
        None => Some(text.to_owned()),
    }
}

fn rules(node: &Node<'_>, report: &mut Report) -> Option<Vec<TargetRule>> {
    let items = report.take(node.items("a list of rules"))?;
    if items.len() > MAPPING_RULES_MAX {
        let fault = format!("too many rules: at most {MAPPING_RULES_MAX} are allowed");
        report.fault(&node.location, fault);
        return None;
    }
    Some(items.filter_map(|item| rule(&item, report)).collect())
}

fn rule(node: &Node<'_>, report: &mut Report) -> Option<TargetRule> {
    let members = Members::open(node, &RULE, report)?;
    for name in ["tools", "resource"] {
        if members.get(name).is_none() {
            report.fault(&members.location, format!("a rule needs '{name}'"));
        }
    }
    let tools = members.read("tools", report, pattern);
    let resource = members.read("resource", report, resource);
    let reads = members.read("reads", report, templates).unwrap_or_default();
    if let (Some(RuleResource::Nothing), Some(entry)) = (&resource, members.get("reads")) {
        report.fault(&entry.key, "has no effect with 'resource': null; remove one of them");
    }
    Some(TargetRule { tools: tools?, resource: resource?, reads })
}

fn pattern(node: &Node<'_>, report: &mut Report) -> Option<ToolPattern> {
    let text = report.take(node.text())?;
    match ToolPattern::parse(text) {
        Ok(pattern) => Some(pattern),
        Err(fault) => {
            report.fault(&node.location, format!("{fault}, found {}", shown(text)));
            None
        }
    }
}

fn resource(node: &Node<'_>, report: &mut Report) -> Option<RuleResource> {
    if node.tree.scalar().is_some_and(|scalar| scalar.kind == ScalarKind::Null) {
        return Some(RuleResource::Nothing);
    }
    templates(node, report).map(RuleResource::Named)
}

/// Reads one template or a list of them.
fn templates(node: &Node<'_>, report: &mut Report) -> Option<Vec<TargetTemplate>> {
    if node.is_text() {
        return template(node, report).map(|template| vec![template]);
    }
    let Content::List(list) = &node.tree.content else {
        return report.take(Err(node.mismatch("a template or a list of templates")));
    };
    if list.is_empty() || list.len() > RULE_TEMPLATES_MAX {
        let fault = format!("expected 1 to {RULE_TEMPLATES_MAX} templates, found {}", list.len());
        report.fault(&node.location, fault);
        return None;
    }
    let items = report.take(node.items("a list of templates"))?;
    let read: Vec<Option<TargetTemplate>> = items.map(|item| template(&item, report)).collect();
    read.into_iter().collect()
}

fn template(node: &Node<'_>, report: &mut Report) -> Option<TargetTemplate> {
    let text = report.take(node.text())?;
    match TargetTemplate::parse(text) {
        Ok(template) => Some(template),
        Err(fault) => {
            report.fault(&node.location, fault.to_string());
            None
        }
    }
}
