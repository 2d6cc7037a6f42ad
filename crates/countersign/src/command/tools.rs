//! `countersign tools list|search|show|approve|enable|disable`.

use std::collections::BTreeMap;

use admin::view::{
    ExplainedWord, ItemChoice, NamedItem, SwitchedTool, TargetPlanRule, ToolEntry, ToolList,
};
use domain::signature::first_sentence;
use domain::tool::ToolName;
use domain::trust::ItemKind;
use gateway::plan::Reach;

use super::review::{self, ToolChange};
use crate::cli::{Format, Tools};
use crate::control::{Control, encode, get, with_query};
use crate::exit::Failure;
use crate::output::{self, fields, table};
use crate::site::Site;

const PATH: &str = "/api/v1/tools";
const TOOL: &str = ItemKind::Tool.as_str();

pub(crate) async fn run(site: &Site, verb: Tools) -> Result<(), Failure> {
    match verb {
        Tools::List { server, status, output } => {
            let wanted = server.clone().map_or(Reach::All, Reach::Only);
            let path = with_query(PATH, &[("server", server.clone()), ("status", status.clone())]);
            let answer = Control::with(site, wanted, async |control| {
                if let Some(name) = &server {
                    // A missing server is an error, not an empty list.
                    control.get(&format!("/api/v1/servers/{}", encode(name))).await?;
                }
                control.get(&path).await
            });
            let none = || none_listed(server.as_deref(), status.as_deref());
            output::answer(output, &answer.await?, |tools| list(tools, none)).map(|_| ())
        }
        Tools::Search { query, limit, explain, output } => {
            let query = encode(&query.join(" "));
            let path = format!("{PATH}?q={query}&limit={limit}&explain={explain}");
            let answer = get(site, Reach::All, &path).await?;
            output::answer(output, &answer, if explain { explained } else { found }).map(|_| ())
        }
        Tools::Show { name, diff, output } => show(site, &name, diff, output).await,
        Tools::Approve { server: Some(server), yes, .. } => approve(site, &server, None, yes).await,
        Tools::Approve { names, server: None, yes, .. } => approve_named(site, &names, yes).await,
        Tools::Enable { name } => switch(site, &name, "enable").await,
        Tools::Disable { name } => switch(site, &name, "disable").await,
    }
}

async fn show(site: &Site, name: &str, diff: bool, output: Format) -> Result<(), Failure> {
    let name = parse(name)?;
    let reach = Reach::Only(name.server.clone());
    if !diff {
        let tool = get(site, reach, &path(&name)).await?;
        return output::answer(output, &tool, whole).map(|_| ());
    }
    let items = format!("/api/v1/servers/{}/items?pending=true", encode(&name.server));
    let (tool, pending) = Control::with(site, reach, async |control| {
        Ok((control.get(&path(&name)).await?, control.get(&items).await?))
    })
    .await?;
    let (tool, pending) = (output::read(&tool)?, output::read(&pending)?);
    output::print(output, &ToolChange::of(&tool, &pending), ToolChange::text)
}

async fn approve_named(site: &Site, names: &[String], yes: bool) -> Result<(), Failure> {
    let mut by_server: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names {
        let ToolName { server, tool } = parse(name)?;
        by_server.entry(server).or_default().push(tool);
    }
    for (server, tools) in by_server {
        approve(site, &server, Some(tools), yes).await?;
    }
    Ok(())
}

/// Shows and approves pending tools of a server, or everything of it that waits.
async fn approve(
    site: &Site,
    server: &str,
    tools: Option<Vec<String>>,
    yes: bool,
) -> Result<(), Failure> {
    let approve = async |control: &Control| {
        let mut review = review::read(control, server).await?;
        if let Some(tools) = tools {
            review.items.retain(|item| item.kind == TOOL && tools.contains(&item.name));
            let waits = |tool: &String| review.items.iter().any(|item| item.name == *tool);
            if let Some(other) = tools.into_iter().find(|tool| !waits(tool)) {
                return refuse_other(control, server, other).await;
            }
        } else if review.items.is_empty() {
            return Err(Failure::input(format!("nothing of server '{server}' waits for approval")));
        }
        if !yes {
            review.quarantined = false;
            output::line(&review::whole(&review))?;
            let count = review.items.len();
            let what = if count == 1 { "it".to_owned() } else { format!("all {count}") };
            review::confirm(&what).await?;
        }
        let items = review.items.iter().map(ItemChoice::from).collect();
        review::approve_items(control, server, items).await
    };
    Control::with(site, Reach::Only(server.to_owned()), approve).await
}

/// Lets the gate say why a tool that does not wait cannot be approved: no text was shown, so no
/// fingerprint fits.
async fn refuse_other(control: &Control, server: &str, name: String) -> Result<(), Failure> {
    let kind = Some(TOOL.to_owned());
    let item = NamedItem { kind, name, fingerprint: String::new() };
    review::approve_items(control, server, vec![ItemChoice::Named(item)]).await
}

async fn switch(site: &Site, name: &str, verb: &str) -> Result<(), Failure> {
    let name = parse(name)?;
    let path = format!("{}/{verb}", path(&name));
    let switch = async |control: &Control| control.post(&path).await;
    let tool = Control::with(site, Reach::Only(name.server.clone()), switch).await?;
    let status = match output::read(&tool)? {
        SwitchedTool::Listed(tool) => tool.status,
        SwitchedTool::Unlisted { .. } => "not listed".to_owned(),
    };
    output::line(&output::plain(&format!("{verb}d tool '{name}': {status}")))
}

pub(super) fn parse(name: &str) -> Result<ToolName, Failure> {
    ToolName::parse(name).map_err(|_| {
        Failure::input(format!(
            "'{name}' is not a tool name: expected 'server:tool', see 'countersign tools list'"
        ))
    })
}

fn path(name: &ToolName) -> String {
    format!("{PATH}/{}/{}", encode(&name.server), encode(&name.tool))
}

fn list(answer: &ToolList, none: impl FnOnce() -> String) -> String {
    if answer.tools.is_empty() {
        return none();
    }
    let row = |tool: &ToolEntry| {
        vec![tool.name.clone(), class(tool), tool.status.clone(), first_sentence(&tool.description)]
    };
    let rows: Vec<Vec<String>> = answer.tools.iter().map(row).collect();
    table(&["tool", "class", "status", "description"], &rows)
}

/// Says why a list is empty. A server that lists nothing may have a fault; a status that no tool
/// has is in order.
fn none_listed(server: Option<&str>, status: Option<&str>) -> String {
    let text = match (server, status) {
        (None, None) => {
            "no tools; see 'countersign upstream list' for the state of the servers".to_owned()
        }
        (Some(server), None) => {
            format!("no tools of server '{server}'; see 'countersign upstream get {server}'")
        }
        (None, Some(status)) => format!("no tool matches --status {status}"),
        (Some(server), Some(status)) => {
            format!("no tool of server '{server}' matches --status {status}")
        }
    };
    output::plain(&text)
}

fn found(answer: &ToolList) -> String {
    if answer.tools.is_empty() {
        return "no matching tools; try other words".to_owned();
    }
    let row = |tool: &ToolEntry| {
        vec![
            tool.score.map_or("-".to_owned(), |score| format!("{score:.2}")),
            tool.name.clone(),
            tool.call_with.clone(),
            tool.status.clone(),
            first_sentence(&tool.description),
        ]
    };
    let rows: Vec<Vec<String>> = answer.tools.iter().map(row).collect();
    table(&["score", "tool", "call with", "status", "description"], &rows)
}

fn explained(answer: &ToolList) -> String {
    if answer.tools.is_empty() {
        return found(answer);
    }
    let row = |tool: &ToolEntry| {
        let explanation = tool.explanation.as_ref();
        let of = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let words = explanation.map(|it| it.words.iter().map(matched).collect::<Vec<_>>());
        vec![
            of(explanation.map(|it| it.place.to_string())),
            of(tool.score.map(|score| format!("{score:.2}"))),
            tool.name.clone(),
            of(explanation.and_then(|it| it.similarity).map(|share| format!("{share:.2}"))),
            of(words.map(|words| words.join(", ")).filter(|words| !words.is_empty())),
        ]
    };
    let rows: Vec<Vec<String>> = answer.tools.iter().map(row).collect();
    table(&["place", "score", "tool", "similarity", "words"], &rows)
}

/// Formats a word that matched, with the form in the tool if it is another.
fn matched(word: &ExplainedWord) -> String {
    let ExplainedWord { word, found, score } = word;
    if word == found { format!("{word} {score:.1}") } else { format!("{word}~{found} {score:.1}") }
}

fn whole(tool: &ToolEntry) -> String {
    let mut lines = vec![
        ("tool", tool.name.clone()),
        ("source", tool.source.clone()),
        ("class", class(tool)),
        ("call with", tool.call_with.clone()),
        ("status", tool.status.clone()),
    ];
    for (name, member) in [
        ("remedy", &tool.remediation),
        ("change", &tool.change),
        ("fingerprint", &tool.fingerprint),
        ("approved", &tool.approved_fingerprint),
    ] {
        lines.extend(member.clone().map(|text| (name, text)));
    }
    for rule in tool.targets.iter().flatten() {
        lines.push(("targets", targets(rule)));
    }
    lines.push(("description", tool.description.clone()));
    let warnings = review::text_warnings(tool.warnings.as_deref().unwrap_or_default());
    let visible = tool.visible.as_deref().unwrap_or_default();
    format!("{warnings}{}\n\n{visible}", fields(&lines))
}

/// Formats a rule that names the resources of calls, with its origin.
fn targets(rule: &TargetPlanRule) -> String {
    let TargetPlanRule { origin, system, resource, reads } = rule;
    let reads = reads.iter().map(|text| format!("{text} (read)"));
    let texts: Vec<String> = resource.iter().cloned().chain(reads).collect();
    if texts.is_empty() {
        return format!("none ({origin})");
    }
    format!("{} in {system} ({origin})", texts.join(", "))
}

fn class(tool: &ToolEntry) -> String {
    if tool.unverified { format!("{} (unverified)", tool.class) } else { tool.class.clone() }
}
