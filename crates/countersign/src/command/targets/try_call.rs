//! `countersign targets try`: the resources that a call would touch, and the rule that names them.

use admin::view::{TargetPlanRule, TriedTarget, TriedTargets};
use gateway::plan::Reach;
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::{call, tools};
use crate::cli::Format;
use crate::control::{Control, encode};
use crate::exit::Failure;
use crate::output::{self, fields, table};
use crate::site::Site;

/// The request, with the arguments as they were given.
#[derive(Serialize)]
struct TriedText {
    arguments: Box<RawValue>,
}

pub(super) async fn run(
    site: &Site,
    tool: &str,
    arguments: &str,
    output: Format,
) -> Result<(), Failure> {
    let name = tools::parse(tool)?;
    let arguments = RawValue::from_string(call::object(arguments)?)
        .map_err(|error| Failure::input(format!("the arguments are not valid JSON: {error}")))?;
    let body = TriedText { arguments };
    let path = format!("/api/v1/tools/{}/{}/targets", encode(&name.server), encode(&name.tool));
    let answer = Control::with(site, Reach::Only(name.server), async |control| {
        control.send_json(&path, &body).await
    });
    output::answer(output, &answer.await?, shown).map(|_| ())
}

fn shown(tried: &TriedTargets) -> String {
    let mut lines = vec![("tool", tried.name.clone()), ("named by", tried.basis.clone())];
    if let Some(rule) = &tried.rule {
        lines.extend(templates(rule));
    }
    if tried.targets.is_empty() {
        lines[1].0 = "no target";
        return fields(&lines);
    }
    let row = |target: &TriedTarget| {
        vec![target.system.clone(), target.resource.clone(), target.access.clone()]
    };
    let rows: Vec<Vec<String>> = tried.targets.iter().map(row).collect();
    format!("{}\n\n{}", fields(&lines), table(&["system", "resource", "access"], &rows))
}

/// Formats the templates of a rule, each on its own line.
pub(in crate::command) fn templates(
    rule: &TargetPlanRule,
) -> impl Iterator<Item = (&'static str, String)> {
    let named = rule.resource.iter().map(|text| ("template", text.clone()));
    named.chain(rule.reads.iter().map(|text| ("template", format!("{text} (read)"))))
}
