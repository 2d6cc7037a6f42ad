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

/// What a search looks at before the filters.
const MATCHES_MAX: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    q: Option<String>,
    server: Option<String>,
    status: Option<String>,
    /// Most results of a search.
    limit: Option<usize>,
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
    let limit = query.limit.unwrap_or(SEARCH_RESULTS_MAX).min(SEARCH_RESULTS_MAX);
    let entries: Vec<String> = matching(&catalog, query.q.as_deref())
        .into_iter()
        .filter(|found| query.server.as_ref().is_none_or(|name| **name == *found.server.name))
        .filter(|found| query.status.as_ref().is_none_or(|status| status == found.lock()))
        .take(if query.q.is_some() { limit } else { usize::MAX })
        .map(|found| found.entry().write_text())
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
    let mut entry = Found { server, tool, score: None }.entry();
    entry.set("definition", tool.definition().get());
    Ok(answer::json(entry.write_text()))
}

/// A tool of the list; a search gives it a score.
struct Found<'a> {
    server: &'a Server,
    tool: &'a Tool,
    score: Option<f32>,
}

/// A search gives what fits in its order; the filters and the limit come after it.
fn matching<'a>(catalog: &'a Catalog, query: Option<&str>) -> Vec<Found<'a>> {
    match query {
        Some(query) => catalog
            .search(&Caller::admin(), query, MATCHES_MAX, Filter::default())
            .into_iter()
            .map(|hit| Found { server: hit.server, tool: hit.tool, score: Some(hit.score) })
            .collect(),
        None => catalog
            .servers()
            .flat_map(|server| server.tools().map(|(tool, _)| Found { server, tool, score: None }))
            .collect(),
    }
}

impl<'a> Found<'a> {
    fn lock(&self) -> &'static str {
        self.server.lock(&self.tool.name).as_str()
    }

    fn entry(&self) -> Members<'a> {
        let Found { server, tool, score } = *self;
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
        entry.set("status", quote(self.lock()));
        if let Some(score) = score {
            entry.set("score", format!("{score:.2}"));
        }
        entry
    }
}
