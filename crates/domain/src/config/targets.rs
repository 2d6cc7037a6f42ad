//! `targets` of a server: the operator's mapping of arguments to resources.

use super::keys::TARGET_RULE;
use super::members::Section;
use super::report::Report;
use text::document::{Content, Node, ScalarKind, shown};
use touch::targets::{
    MAPPING_RULES_MAX, RULE_TEMPLATES_MAX, RuleResource, TargetMapping, TargetRule, TargetTemplate,
    ToolPattern, system_fault,
};

pub(super) fn read(members: &Section<'_>, report: &mut Report) -> Option<TargetMapping> {
    let section = members.section("targets", report)?;
    let system = section.read("system", report, |node, report| {
        let text = report.take(node.text())?;
        match system_fault(text) {
            Some(fault) => {
                report.fault(&node.location, format!("{fault}, found {}", shown(text)));
                None
            }
            None => Some(text.to_owned()),
        }
    });
    let rules = section.read("rules", report, rules).unwrap_or_default();
    if section.get("system").is_none() && section.get("rules").is_none() {
        report.note(&section.location, "has no effect: set 'system' or 'rules'");
    }
    Some(TargetMapping { system, rules })
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
    let members = Section::open(node, &TARGET_RULE, report)?;
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
