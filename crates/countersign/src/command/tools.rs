//! `countersign tools list|show`.

use domain::signature::first_sentence;
use domain::tool::ToolName;
use serde_json::Value;

use crate::cli::{Place, Tools};
use crate::control::{Control, encode, get};
use crate::exit::Failure;
use crate::output::{self, fields, table, text};
use gateway::plan::Reach;

pub(crate) async fn run(place: &Place, verb: Tools) -> Result<(), Failure> {
    match verb {
        Tools::List { server, output } => {
            let wanted = server.clone().map_or(Reach::All, Reach::Only);
            let answer = Control::with(place, wanted, async |control| match &server {
                Some(name) => {
                    // A server that is not there is an error, not an empty list.
                    control.get(&format!("/api/v1/servers/{}", encode(name))).await?;
                    control.get(&format!("/api/v1/tools?server={}", encode(name))).await
                }
                None => control.get("/api/v1/tools").await,
            });
            output::print(output, &answer.await?, list)
        }
        Tools::Search { query, limit, output } => {
            let query = encode(&query.join(" "));
            let path = format!("/api/v1/tools?q={query}&limit={limit}");
            output::print(output, &get(place, Reach::All, &path).await?, found)
        }
        Tools::Show { name, output } => {
            let name = ToolName::parse(&name).map_err(|refusal| Failure::input(refusal.message))?;
            let path = format!("/api/v1/tools/{}/{}", encode(&name.server), encode(&name.tool));
            output::print(output, &get(place, Reach::Only(name.server.clone()), &path).await?, show)
        }
    }
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
        let score = tool["score"].as_f64().unwrap_or_default();
        vec![format!("{score:.2}"), text(tool, "name"), text(tool, "call_with"), sentence(tool)]
    };
    match rows(answer, row) {
        rows if rows.is_empty() => "no tool fits; try other words".to_owned(),
        rows => table(&["score", "tool", "call with", "description"], &rows),
    }
}

fn rows(answer: &Value, row: impl Fn(&Value) -> Vec<String>) -> Vec<Vec<String>> {
    answer["tools"].as_array().map(|tools| tools.iter().map(row).collect()).unwrap_or_default()
}

fn sentence(tool: &Value) -> String {
    first_sentence(&text(tool, "description"))
}

fn show(tool: &Value) -> String {
    let head = fields(&[
        ("tool", text(tool, "name")),
        ("source", text(tool, "source")),
        ("class", class(tool)),
        ("call with", text(tool, "call_with")),
        ("status", text(tool, "status")),
        ("description", text(tool, "description")),
    ]);
    let definition = serde_json::to_string_pretty(&tool["definition"]).unwrap_or_default();
    format!("{head}\n\n{definition}")
}

fn class(tool: &Value) -> String {
    match tool["unverified"].as_bool() {
        Some(true) => format!("{} (unverified)", text(tool, "class")),
        _ => text(tool, "class"),
    }
}
