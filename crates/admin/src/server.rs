//! `GET /servers`: the entries that agents see in `upstream_servers`, and for the operator who
//! brought a server in, how it is reached and what of it waits.

pub(crate) mod change;
mod entry;
pub(crate) mod openapi;

use axum::Json;
use axum::extract::State;
use domain::{Caller, Code, Refusal};
use gateway::front::discovery;
use serde::Deserialize;
use serde_json::{Value, json};
use store::state::Item;

use crate::answer::{Path, Query, Refused};
use crate::ledger::limit;
use crate::{Admin, review};

pub(crate) async fn list(State(admin): State<Admin>) -> Json<Value> {
    let mut answer = discovery::servers(&admin.gateway.catalog(), &Caller::admin());
    for server in answer["servers"].as_array_mut().into_iter().flatten() {
        entry::complete(&admin, server).await;
    }
    Json(answer)
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refused> {
    Ok(Json(entry(&admin, &name).await?))
}

/// One server, as the operator sees it.
async fn entry(admin: &Admin, name: &str) -> Result<Value, Refusal> {
    let mut entry = discovery::server_entry(&admin.gateway.catalog(), &Caller::admin(), name)?;
    entry::complete(admin, &mut entry).await;
    Ok(entry)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemsQuery {
    /// Only those that wait, or only those that do not.
    pending: Option<bool>,
}

/// What a server lists, for a review.
pub(crate) async fn items(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(query): Query<ItemsQuery>,
) -> Result<Json<Value>, Refused> {
    discovery::server_entry(&admin.gateway.catalog(), &Caller::admin(), &name)?;
    let fits = |item: &Item| query.pending.is_none_or(|pending| pending == item.pending.is_some());
    let items = listed(&admin, &name, fits).await?;
    Ok(Json(json!({"name": name, "items": items})))
}

async fn listed(
    admin: &Admin,
    server: &str,
    fits: impl Fn(&Item) -> bool,
) -> Result<Vec<Value>, Refusal> {
    let items = admin.gateway.items(server).await?;
    let known = review::known_names(&admin.gateway.catalog());
    let listed = items.iter().filter(|item| item.listed && fits(item));
    Ok(listed.filter_map(|item| review::entry(server, item, &known)).collect())
}

/// Lines that a query gives unless it asks for fewer; no more are kept.
const LINES_MAX: usize = mcp::limits::STDERR_LINES_MAX;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogsQuery {
    limit: Option<usize>,
}

/// The last lines of the server's stderr, oldest first.
pub(crate) async fn logs(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(query): Query<LogsQuery>,
) -> Result<Json<Value>, Refused> {
    discovery::server_entry(&admin.gateway.catalog(), &Caller::admin(), &name)?;
    let limit = limit(query.limit, LINES_MAX, LINES_MAX)?;
    let mut lines = admin.gateway.stderr(&name);
    let surplus = lines.len().saturating_sub(limit);
    lines.drain(..surplus);
    Ok(Json(json!({"name": name, "lines": lines})))
}

pub(crate) async fn restart(
    State(admin): State<Admin>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refused> {
    let server = discovery::server_entry(&admin.gateway.catalog(), &Caller::admin(), &name)?;
    if server["state"] == "disabled" {
        let message = format!("server '{name}' is switched off: nothing to restart");
        return Err(Refusal::new(Code::Conflict, message).into());
    }
    admin.gateway.restart(&name).await;
    Ok(Json(json!({"name": name, "restarting": true})))
}
