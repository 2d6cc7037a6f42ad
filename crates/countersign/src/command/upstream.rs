//! `countersign upstream list|get`.

use serde_json::Value;

use crate::app::Servers;
use crate::cli::{Place, Upstream};
use crate::control::{encode, get};
use crate::exit::Failure;
use crate::output::{self, fields, table, text};

pub(crate) async fn run(place: &Place, verb: Upstream) -> Result<(), Failure> {
    match verb {
        Upstream::List { output } => {
            output::print(output, &get(place, Servers::All, "/api/v1/servers").await?, list)
        }
        Upstream::Get { name, output } => {
            let path = format!("/api/v1/servers/{}", encode(&name));
            output::print(output, &get(place, Servers::Only(&name), &path).await?, show)
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
