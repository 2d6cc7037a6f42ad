//! `countersign tools list|search|show|approve|enable|disable`.

use std::collections::BTreeMap;

use admin::view::{
    ApprovalRequest, ApprovedItems, ItemChoice, NamedItem, SwitchedTool, ToolEntry, ToolList,
};
use domain::signature::first_sentence;
use domain::tool::ToolName;
use domain::trust::ItemKind;
use gateway::plan::Reach;

use super::review::{self, ToolChange};
use crate::cli::{Format, Locations, Tools};
use crate::control::{Control, encode, get, with_query};
use crate::exit::Failure;
use crate::output::{self, fields, table};

const PATH: &str = "/api/v1/tools";

pub(crate) async fn run(place: &Locations, verb: Tools) -> Result<(), Failure> {
    match verb {
        Tools::List { server, status, output } => {
            let wanted = server.clone().map_or(Reach::All, Reach::Only);
            let path = with_query(PATH, &[("server", server.clone()), ("status", status)]);
            let answer = Control::with(place, wanted, async |control| {
                if let Some(name) = &server {
                    // A missing server is an error, not an empty list.
                    control.get(&format!("/api/v1/servers/{}", encode(name))).await?;
                }
                control.get(&path).await
            });
            output::answer(output, &answer.await?, list).map(|_| ())
        }
        Tools::Search { query, limit, output } => {
            let query = encode(&query.join(" "));
            let path = format!("{PATH}?q={query}&limit={limit}");
            let answer = get(place, Reach::All, &path).await?;
            output::answer(output, &answer, found).map(|_| ())
        }
        Tools::Show { name, diff, output } => show(place, &name, diff, output).await,
        Tools::Approve { server: Some(server), .. } => approve(place, &server, None).await,
        Tools::Approve { names, server: None, .. } => approve_named(place, &names).await,
        Tools::Enable { name } => switch(place, &name, "enable").await,
        Tools::Disable { name } => switch(place, &name, "disable").await,
    }
}

async fn show(place: &Locations, name: &str, diff: bool, output: Format) -> Result<(), Failure> {
    let name = parse(name)?;
    let reach = Reach::Only(name.server.clone());
    if !diff {
        let tool = get(place, reach, &path(&name)).await?;
        return output::answer(output, &tool, whole).map(|_| ());
    }
    let items = format!("/api/v1/servers/{}/items?pending=true", encode(&name.server));
    let (tool, pending) = Control::with(place, reach, async |control| {
        Ok((control.get(&path(&name)).await?, control.get(&items).await?))
    })
    .await?;
    let (tool, pending) = (output::read(&tool)?, output::read(&pending)?);
    output::print(output, &ToolChange::of(&tool, &pending), ToolChange::text)
}

async fn approve_named(place: &Locations, names: &[String]) -> Result<(), Failure> {
    let mut by_server: BTreeMap<String, Vec<ItemChoice>> = BTreeMap::new();
    for name in names {
        let ToolName { server, tool } = parse(name)?;
        let kind = Some(ItemKind::Tool.as_str().to_owned());
        let item = NamedItem { kind, name: tool, fingerprint: None };
        by_server.entry(server).or_default().push(ItemChoice::Named(item));
    }
    for (server, items) in by_server {
        approve(place, &server, Some(items)).await?;
    }
    Ok(())
}

/// Approves some items of a server, or all pending ones, and lists them.
async fn approve(
    place: &Locations,
    server: &str,
    items: Option<Vec<ItemChoice>>,
) -> Result<(), Failure> {
    let path = format!("/api/v1/servers/{}/approve-items", encode(server));
    let body = ApprovalRequest { items };
    let approve = async |control: &Control| control.send_json(&path, &body).await;
    let answer = Control::with(place, Reach::Only(server.to_owned()), approve).await?;
    let answer: ApprovedItems = output::read(&answer)?;
    output::line(&review::approved(server, &answer.approved))
}

async fn switch(place: &Locations, name: &str, verb: &str) -> Result<(), Failure> {
    let name = parse(name)?;
    let path = format!("{}/{verb}", path(&name));
    let switch = async |control: &Control| control.post(&path).await;
    let tool = Control::with(place, Reach::Only(name.server.clone()), switch).await?;
    let status = match output::read(&tool)? {
        SwitchedTool::Listed(tool) => tool.status,
        SwitchedTool::Unlisted { .. } => "not listed".to_owned(),
    };
    output::line(&output::plain(&format!("{verb}d tool '{name}': {status}")))
}

pub(super) fn parse(name: &str) -> Result<ToolName, Failure> {
    ToolName::parse(name).map_err(|_| {
        Failure::input(format!(
            "a tool is named 'server:tool', got '{name}'; see 'countersign tools list'"
        ))
    })
}

fn path(name: &ToolName) -> String {
    format!("{PATH}/{}/{}", encode(&name.server), encode(&name.tool))
}

fn list(answer: &ToolList) -> String {
    if answer.tools.is_empty() {
        return "no tools; 'countersign upstream list' says why".to_owned();
    }
    let row = |tool: &ToolEntry| {
        vec![tool.name.clone(), class(tool), tool.status.clone(), first_sentence(&tool.description)]
    };
    let rows: Vec<Vec<String>> = answer.tools.iter().map(row).collect();
    table(&["tool", "class", "status", "description"], &rows)
}

fn found(answer: &ToolList) -> String {
    if answer.tools.is_empty() {
        return "no tool fits; try other words".to_owned();
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
    lines.push(("description", tool.description.clone()));
    let warnings = review::text_warnings(tool.warnings.as_deref().unwrap_or_default());
    let visible = tool.visible.as_deref().unwrap_or_default();
    format!("{warnings}{}\n\n{visible}", fields(&lines))
}

fn class(tool: &ToolEntry) -> String {
    if tool.unverified { format!("{} (unverified)", tool.class) } else { tool.class.clone() }
}
