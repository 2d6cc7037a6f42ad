//! `countersign upstream list|get`.

use serde_json::Value;

use crate::cli::{Place, Upstream};
use crate::control::{Control, encode, get};
use crate::exit::Failure;
use crate::output::{self, fields, plain, table, text};
use gateway::plan::Reach;

pub(crate) async fn run(place: &Place, verb: Upstream) -> Result<(), Failure> {
    match verb {
        Upstream::List { output } => {
            output::print(output, &get(place, Reach::All, "/api/v1/servers").await?, list)
        }
        Upstream::Logs { name, lines, output } => {
            let path = format!("/api/v1/servers/{}/logs?limit={lines}", encode(&name));
            output::print(output, &get(place, Reach::Only(name.clone()), &path).await?, logs)
        }
        Upstream::Restart { name } => {
            let path = format!("/api/v1/servers/{}/restart", encode(&name));
            let restart = async |control: &Control| match control.is_running() {
                true => control.post(&path).await,
                false => Err(Failure::input("no 'serve' runs in this home: nothing to restart")),
            };
            Control::with(place, Reach::Only(name.clone()), restart).await?;
            output::line(&format!("restarting '{name}'"))
        }
        Upstream::Get { name, output } => {
            let path = format!("/api/v1/servers/{}", encode(&name));
            output::print(output, &get(place, Reach::Only(name.clone()), &path).await?, show)
        }
    }
}

fn list(answer: &Value) -> String {
    let servers = answer["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<Vec<String>> = servers
        .iter()
        .map(|server| {
            vec![
                text(server, "name"),
                text(server, "state"),
                text(server, "transport"),
                counts(server),
                text(server, "error"),
            ]
        })
        .collect();
    table(&["server", "state", "transport", "tools", "error"], &rows)
}

fn show(server: &Value) -> String {
    fields(&[
        ("server", text(server, "name")),
        ("state", text(server, "state")),
        ("transport", text(server, "transport")),
        ("tools", counts(server)),
        ("error", text(server, "error")),
    ])
}

fn logs(answer: &Value) -> String {
    let lines = answer["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    lines.iter().filter_map(Value::as_str).map(plain).collect::<Vec<_>>().join("\n")
}

/// `12`, or `12 (9 callable, 3 disabled_by_config)` where some are locked.
fn counts(server: &Value) -> String {
    let total = server["tool_count"].to_string();
    match server["tools"].as_object() {
        Some(counts) => {
            let parts: Vec<String> =
                counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
            format!("{total} ({})", parts.join(", "))
        }
        None => total,
    }
}
