//! `countersign tools list|search|show|approve|enable|disable`.

use std::collections::BTreeMap;

use domain::signature::first_sentence;
use domain::tool::ToolName;
use gateway::plan::Reach;
use serde_json::{Value, json};

use super::review;
use crate::cli::{Format, Place, Tools};
use crate::control::{Control, encode, get, with_query};
use crate::exit::Failure;
use crate::output::{self, entries, fields, table, text};

const PATH: &str = "/api/v1/tools";

pub(crate) async fn run(place: &Place, verb: Tools) -> Result<(), Failure> {
    match verb {
        Tools::List { server, status, output } => {
            let wanted = server.clone().map_or(Reach::All, Reach::Only);
            let path = with_query(PATH, &[("server", server.clone()), ("status", status)]);
            let answer = Control::with(place, wanted, async |control| {
                if let Some(name) = &server {
                    // A server that is not there is an error, not an empty list.
                    control.get(&format!("/api/v1/servers/{}", encode(name))).await?;
                }
                control.get(&path).await
            });
            output::print(output, &answer.await?, list)
        }
        Tools::Search { query, limit, output } => {
            let query = encode(&query.join(" "));
            let path = format!("{PATH}?q={query}&limit={limit}");
            output::print(output, &get(place, Reach::All, &path).await?, found)
        }
        Tools::Show { name, diff, output } => show(place, &name, diff, output).await,
        Tools::Approve { server: Some(server), .. } => approve(place, &server, None).await,
        Tools::Approve { names, server: None, .. } => approve_named(place, &names).await,
        Tools::Enable { name } => switch(place, &name, "enable").await,
        Tools::Disable { name } => switch(place, &name, "disable").await,
    }
}

async fn show(place: &Place, name: &str, diff: bool, output: Format) -> Result<(), Failure> {
    let name = parse(name)?;
    let tool = get(place, Reach::Only(name.server.clone()), &path(&name)).await?;
    if diff {
        output::print(
            output,
            &json!({"name": tool["name"], "status": tool["status"],
            "change": tool["change"], "warnings": tool["warnings"], "diff": tool["diff"]}),
            review::changes,
        )
    } else {
        output::print(output, &tool, whole)
    }
}

async fn approve_named(place: &Place, names: &[String]) -> Result<(), Failure> {
    let mut by_server: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for name in names {
        let ToolName { server, tool } = parse(name)?;
        by_server.entry(server).or_default().push(json!({"kind": "tool", "name": tool}));
    }
    for (server, items) in by_server {
        approve(place, &server, Some(items)).await?;
    }
    Ok(())
}

/// Approves some items of a server, or all that wait, and says which.
async fn approve(place: &Place, server: &str, items: Option<Vec<Value>>) -> Result<(), Failure> {
    let path = format!("/api/v1/servers/{}/approve-items", encode(server));
    let body = items.map_or_else(|| json!({}), |items| json!({"items": items}));
    let approve = async |control: &Control| control.send_json(&path, &body).await;
    let answer = Control::with(place, Reach::Only(server.to_owned()), approve).await?;
    output::line(&review::approved(server, &answer))
}

async fn switch(place: &Place, name: &str, verb: &str) -> Result<(), Failure> {
    let name = parse(name)?;
    let path = format!("{}/{verb}", path(&name));
    let switch = async |control: &Control| control.post(&path).await;
    let tool = Control::with(place, Reach::Only(name.server.clone()), switch).await?;
    let status = match text(&tool, "status") {
        status if status.is_empty() => "not listed".to_owned(),
        status => status,
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

fn list(answer: &Value) -> String {
    let row =
        |tool: &Value| vec![text(tool, "name"), class(tool), text(tool, "status"), sentence(tool)];
    match rows(answer, row) {
        rows if rows.is_empty() => "no tools; 'countersign upstream list' says why".to_owned(),
        rows => table(&["tool", "class", "status", "description"], &rows),
    }
}

fn found(answer: &Value) -> String {
    let row = |tool: &Value| {
        let score = tool["score"].as_f64().map_or("-".to_owned(), |score| format!("{score:.2}"));
        let (name, call_with) = (text(tool, "name"), text(tool, "call_with"));
        vec![score, name, call_with, text(tool, "status"), sentence(tool)]
    };
    match rows(answer, row) {
        rows if rows.is_empty() => "no tool fits; try other words".to_owned(),
        rows => table(&["score", "tool", "call with", "status", "description"], &rows),
    }
}

fn rows(answer: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    entries(answer, "tools").iter().map(row).collect()
}

fn sentence(tool: &Value) -> String {
    first_sentence(&text(tool, "description"))
}

fn whole(tool: &Value) -> String {
    let mut lines = vec![
        ("tool", text(tool, "name")),
        ("source", text(tool, "source")),
        ("class", class(tool)),
        ("call with", text(tool, "call_with")),
        ("status", text(tool, "status")),
    ];
    for (name, member) in [
        ("remedy", "remediation"),
        ("change", "change"),
        ("fingerprint", "fingerprint"),
        ("approved", "approved_fingerprint"),
        ("description", "description"),
    ] {
        if tool[member].is_string() {
            lines.push((name, text(tool, member)));
        }
    }
    format!("{}{}\n\n{}", review::warnings(tool), fields(&lines), text(tool, "visible"))
}

fn class(tool: &Value) -> String {
    match tool["unverified"].as_bool() {
        Some(true) => format!("{} (unverified)", text(tool, "class")),
        _ => text(tool, "class"),
    }
}
