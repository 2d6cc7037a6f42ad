//! `GET /tools`: every tool of every server, and why it cannot be called where it cannot.

use axum::extract::State;
use axum::response::Response;
use domain::catalog::{Catalog, Filter, Server};
use domain::policy::Lock;
use domain::tool::{Tool, ToolName};
use domain::{Caller, Code, Refusal, near};
use mcp::object::{Members, quote};
use serde::Deserialize;
use serde_json::json;

use crate::Admin;
use crate::answer::{self, Path, Query, Refused};

/// Results of a search; a list without a query holds every tool.
const SEARCH_RESULTS_MAX: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    q: Option<String>,
    server: Option<String>,
    status: Option<String>,
}

pub(crate) async fn list(
    State(admin): State<Admin>,
    Query(query): Query<ListQuery>,
) -> Result<Response, Refused> {
    let statuses = Lock::words();
    if let Some(status) = &query.status
        && !statuses.contains(&status.as_str())
    {
        let message = format!("status must be one of {}, got '{status}'", statuses.join(", "));
        let details = json!({"field": "status", "provided": status, "valid_values": statuses});
        return Err(Refusal::new(Code::InvalidRequest, message).with(details).into());
    }
    admin.gateway.first_settled().await;
    let catalog = admin.gateway.catalog();
    let entries: Vec<String> = matching(&catalog, query.q.as_deref())
        .into_iter()
        .filter(|(server, _)| query.server.as_ref().is_none_or(|name| **name == *server.name))
        .filter(|(server, tool)| {
            query.status.as_ref().is_none_or(|s| s == server.lock(&tool.name).as_str())
        })
        .map(|(server, tool)| entry(server, tool).write().get().to_owned())
        .collect();
    let total = entries.len();
    Ok(answer::json(format!(r#"{{"tools":[{}],"total":{total}}}"#, entries.join(","))))
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Path((server, tool)): Path<(String, String)>,
) -> Result<Response, Refused> {
    admin.gateway.first_settled().await;
    let catalog = admin.gateway.catalog();
    let name = ToolName { server, tool };
    let Some((server, tool)) = catalog.tool(&name) else {
        let near = catalog.near(&Caller::admin(), &name);
        let hint = near::hint(&near);
        let refusal = Refusal::new(Code::NotFound, format!("tool '{name}' not found{hint}"));
        return Err(refusal.with(json!({"near": near})).into());
    };
    let mut entry = entry(server, tool);
    entry.set("definition", tool.definition().get());
    Ok(answer::json(entry.write().get().to_owned()))
}

fn matching<'a>(catalog: &'a Catalog, query: Option<&str>) -> Vec<(&'a Server, &'a Tool)> {
    match query {
        Some(query) => catalog
            .search(&Caller::admin(), query, SEARCH_RESULTS_MAX, Filter::default())
            .into_iter()
            .map(|hit| (hit.server, hit.tool))
            .collect(),
        None => catalog
            .servers()
            .flat_map(|server| server.listing.tools.iter().map(|tool| (&**server, &**tool)))
            .collect(),
    }
}

fn entry<'a>(server: &Server, tool: &'a Tool) -> Members<'a> {
    let mut entry = Members::default();
    entry.set("name", quote(&format!("{}:{}", server.name, tool.name)));
    entry.set("server", quote(&server.name));
    entry.set("source", quote(&tool.source.to_string()));
    entry.set("description", tool.description_json().unwrap_or("\"\""));
    if let Some(annotations) = tool.annotations_json() {
        entry.set("annotations", annotations);
    }
    entry.set("class", quote(tool.hints.class().as_str()));
    entry.set("unverified", tool.hints.unverified().to_string());
    entry.set("call_with", quote(tool.hints.class().variant()));
    entry.set("status", quote(server.lock(&tool.name).as_str()));
    entry
}
