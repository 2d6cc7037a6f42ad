//! `countersign tools list|show`.

use domain::signature::first_sentence;
use domain::tool::ToolName;
use serde_json::Value;

use crate::app::Servers;
use crate::cli::{Place, Tools};
use crate::control::Control;
use crate::exit::Failure;
use crate::output::{self, fields, table};

pub(crate) async fn run(place: &Place, verb: Tools) -> Result<(), Failure> {
    match verb {
        Tools::List { server, output } => {
            let wanted = server.as_deref().map_or(Servers::All, Servers::Only);
            let control = Control::open(place, wanted).await?;
            let path = match &server {
                Some(name) => {
                    // A server that is not there is an error, not an empty list.
                    control.get(&format!("/api/v1/servers/{}", encode(name))).await?;
                    format!("/api/v1/tools?server={}", encode(name))
                }
                None => "/api/v1/tools".to_owned(),
            };
            output::print(output, &control.get(&path).await?, list)
        }
        Tools::Show { name, output } => {
            let name = ToolName::parse(&name).map_err(|refusal| Failure::input(refusal.message))?;
            let control = Control::open(place, Servers::Only(&name.server)).await?;
            let path = format!("/api/v1/tools/{}/{}", encode(&name.server), encode(&name.tool));
            output::print(output, &control.get(&path).await?, show)
        }
    }
}

fn list(answer: &Value) -> String {
    let tools = answer["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| {
            vec![
                text(tool, "name"),
                class(tool),
                text(tool, "status"),
                first_sentence(&text(tool, "description")),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "no tools; 'countersign upstream list' says why".to_owned();
    }
    table(&["tool", "class", "status", "description"], &rows)
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

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// One segment of a path, or a value of a query.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
                encoded.push(byte as char)
            }
            // A dot alone would be read as a folder.
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
