//! `GET /tools`: every tool of every server, and why it cannot be called where it cannot.

pub(crate) mod change;
pub(crate) mod openapi;

use std::borrow::Cow;

use axum::extract::State;
use axum::response::Response;
use domain::catalog::{Catalog, Filter, Server};
use domain::policy::Lock;
use domain::tool::{Tool, ToolName};
use domain::trust::{ItemKind, visible};
use domain::{Caller, Code, Refusal, near};
use gateway::front::discovery;
use mcp::object::{Members, quote};
use serde::Deserialize;
use serde_json::json;
use store::state::Item;

use crate::Admin;
use crate::answer::{self, Path, Query, Refused};
use crate::ledger::limit;
use crate::review::{self, Review};
use crate::server::change::kind;

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
    let limit = limit(query.limit, SEARCH_RESULTS_MAX, SEARCH_RESULTS_MAX)?;
    admin.gateway.first_settled().await;
    let catalog = admin.gateway.catalog();
    let entries: Vec<String> = matching(&catalog, query.q.as_deref())
        .into_iter()
        .filter(|found| query.server.as_ref().is_none_or(|name| **name == *found.server.name))
        .filter(|found| query.status.as_ref().is_none_or(|status| status == found.lock().as_str()))
        .take(if query.q.is_some() { limit } else { usize::MAX })
        .map(|found| found.entry().write_text())
        .collect();
    let total = entries.len();
    Ok(answer::json(format!(r#"{{"tools":[{}],"total":{total}}}"#, entries.join(","))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowQuery {
    kind: Option<String>,
}

/// One tool, or with `kind` another thing that its server lists, as a reviewer sees it.
pub(crate) async fn show(
    State(admin): State<Admin>,
    Path((server, tool)): Path<(String, String)>,
    Query(query): Query<ShowQuery>,
) -> Result<Response, Refused> {
    admin.gateway.first_settled().await;
    let catalog = admin.gateway.catalog();
    let name = ToolName { server, tool };
    let kind = kind(query.kind)?;
    if kind != ItemKind::Tool {
        return show_item(&admin, kind, &name).await;
    }
    let Some((server, tool)) = catalog.tool(&name) else {
        let near = catalog.near(&Caller::admin(), &name);
        return Err(not_found(kind, &name, &near).into());
    };
    let items = admin.gateway.items(&server.name).await?;
    let item = items.iter().find(|item| is(item, kind, &name.tool));
    let review = item.and_then(Review::of);
    let review = review.unwrap_or_else(|| Review::unknown(tool.definition().get()));
    let mut entry = Found { server, tool, score: None }.entry();
    if let Lock::Locked(status) = server.lock(&tool.name) {
        entry.set("remediation", quote(status.remediation()));
    }
    entry.set("fingerprint", quote(&review.fingerprint));
    if let Some(approved) = review.approved {
        entry.set("approved_fingerprint", quote(&approved.fingerprint));
    }
    if let (Some(change), Some(difference)) = (review.change, review.difference()) {
        entry.set("change", quote(change.as_str()));
        entry.set("diff", difference.to_string());
    }
    let known = review::known_names(&catalog);
    entry.set("warnings", review.warnings(&server.name, &known).to_string());
    entry.set("definition", review.text);
    entry.set("visible", quote(&review.visible()));
    Ok(answer::json(entry.write_text()))
}

async fn show_item(admin: &Admin, kind: ItemKind, name: &ToolName) -> Result<Response, Refused> {
    let catalog = admin.gateway.catalog();
    discovery::server_entry(&catalog, &Caller::admin(), &name.server)?;
    let items = admin.gateway.items(&name.server).await?;
    let known = review::known_names(&catalog);
    let item = items.iter().find(|item| is(item, kind, &name.tool));
    let entry = item.and_then(|item| review::entry(&name.server, item, &known));
    match entry {
        Some(entry) => Ok(answer::json(entry.to_string())),
        None => Err(not_found(kind, name, &[]).into()),
    }
}

fn is(item: &Item, kind: ItemKind, name: &str) -> bool {
    item.kind == kind.as_str() && item.name == name
}

fn not_found(kind: ItemKind, name: &ToolName, near: &[String]) -> Refusal {
    let (kind, hint) = (kind.as_str(), near::hint(near));
    Refusal::new(Code::NotFound, format!("{kind} '{name}' not found{hint}"))
        .with(json!({"near": near}))
}

/// A tool after somebody has switched it; one that is no longer listed has only its name.
fn switched(admin: &Admin, name: &ToolName) -> Response {
    let catalog = admin.gateway.catalog();
    match catalog.tool(name) {
        Some((server, tool)) => {
            answer::json(Found { server, tool, score: None }.entry().write_text())
        }
        None => answer::json(json!({"name": name.to_string(), "server": name.server}).to_string()),
    }
}

/// A tool of the list; a search gives it a score.
struct Found<'a> {
    server: &'a Server,
    tool: &'a Tool,
    score: Option<f32>,
}

/// A search gives what fits in its order, callable tools first; the filters and the limit come
/// after it.
fn matching<'a>(catalog: &'a Catalog, query: Option<&str>) -> Vec<Found<'a>> {
    let admin = Caller::admin();
    let Some(query) = query else {
        let every = catalog
            .servers()
            .flat_map(|server| server.tools().map(|(tool, _)| Found { server, tool, score: None }));
        return every.collect();
    };
    let callable = catalog.search(&admin, query, MATCHES_MAX, Filter::default()).into_iter();
    let locked = catalog.search_locked(&admin, query, MATCHES_MAX, Filter::default()).into_iter();
    callable
        .map(|hit| Found { server: hit.server, tool: hit.tool, score: Some(hit.score) })
        .chain(locked.map(|hit| Found { server: hit.server, tool: hit.tool, score: None }))
        .collect()
}

impl<'a> Found<'a> {
    fn lock(&self) -> Lock {
        self.server.lock(&self.tool.name)
    }

    /// Text that nobody has approved is shown with all that it hides.
    fn description(&self) -> Cow<'a, str> {
        match self.lock() {
            Lock::Locked(status) if status.distrusts_text() => {
                quote(&visible(&self.tool.description())).into()
            }
            Lock::Locked(_) | Lock::Callable => {
                self.tool.description_json().unwrap_or("\"\"").into()
            }
        }
    }

    fn entry(&self) -> Members<'a> {
        let Found { server, tool, score } = *self;
        let mut entry = Members::default();
        entry.set("name", quote(&format!("{}:{}", server.name, tool.name)));
        entry.set("server", quote(&server.name));
        entry.set("source", quote(&tool.source.to_string()));
        entry.set("description", self.description());
        if let Some(annotations) = tool.annotations_json() {
            entry.set("annotations", annotations);
        }
        entry.set("class", quote(tool.hints.class().as_str()));
        entry.set("unverified", tool.hints.unverified().to_string());
        entry.set("call_with", quote(tool.hints.class().variant()));
        entry.set("status", quote(self.lock().as_str()));
        if let Some(score) = score {
            entry.set("score", format!("{score:.2}"));
        }
        entry
    }
}
