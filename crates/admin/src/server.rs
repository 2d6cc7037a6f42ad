//! `GET /servers`: the entries that agents see in `upstream_servers`, and for the operator also a
//! server's origin, its transport and its pending items.

pub(crate) mod change;
mod entry;
pub mod login;
pub(crate) mod review;
pub(crate) mod warned;

use axum::Json;
use axum::extract::State;
use domain::{Caller, Code, Refusal};
use gateway::front::discovery;
use serde::Deserialize;
use store::state::ServerItem;
use utoipa::IntoParams;

use crate::Admin;
use crate::answer::{Path, Query, Refused};
use crate::form::form;
use crate::ledger::limit;
use crate::review::{entry as review_entry, known_names};
use crate::view::{
    RestartingServer, ReviewItem, ServerEntry, ServerItems, ServerList, ServerLog, words,
};

pub(crate) async fn list(State(admin): State<Admin>) -> Json<ServerList> {
    let catalog = admin.gateway.catalog();
    let mut servers = Vec::new();
    for outline in discovery::servers(&catalog, &Caller::admin()) {
        servers.push(entry::whole(&admin, &catalog, outline).await);
    }
    Json(ServerList { servers })
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(name): Path<String>,
) -> Result<Json<ServerEntry>, Refused> {
    Ok(Json(entry(&admin, &name).await?))
}

/// Returns one server, as the operator sees it.
async fn entry(admin: &Admin, name: &str) -> Result<ServerEntry, Refusal> {
    let catalog = admin.gateway.catalog();
    let outline = discovery::server(&catalog, &Caller::admin(), name)?;
    Ok(entry::whole(admin, &catalog, outline).await)
}

#[derive(Deserialize, IntoParams)]
pub(crate) struct ItemsQuery {
    /// Only pending items, or only others.
    pending: Option<bool>,
}

/// Lists a server's items for review.
pub(crate) async fn items(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(query): Query<ItemsQuery>,
) -> Result<Json<ServerItems>, Refused> {
    discovery::server(&admin.gateway.catalog(), &Caller::admin(), &name)?;
    let fits =
        |item: &ServerItem| query.pending.is_none_or(|pending| pending == item.pending.is_some());
    let items = listed(&admin, &name, fits).await?;
    Ok(Json(ServerItems { name, items }))
}

async fn listed(
    admin: &Admin,
    server: &str,
    fits: impl Fn(&ServerItem) -> bool,
) -> Result<Vec<ReviewItem>, Refusal> {
    let items = admin.gateway.items(server).await?;
    let known = known_names(&admin.gateway.catalog());
    let listed = items.iter().filter(|item| item.listed && fits(item));
    Ok(listed.filter_map(|item| review_entry(server, item, &known)).collect())
}

/// The default and maximum number of lines; no more are kept.
const LINES_MAX: usize = mcp::limits::STDERR_LINES_MAX;

#[derive(Deserialize, IntoParams)]
pub(crate) struct LogsQuery {
    /// The maximum number of lines.
    #[param(inline, value_type = Option<LinesLimit>)]
    limit: Option<usize>,
}

form!(LinesLimit = { words::count_between(1, LINES_MAX).default(Some(LINES_MAX.into())) });

/// Returns the last lines of the server's stderr, oldest first.
pub(crate) async fn logs(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(query): Query<LogsQuery>,
) -> Result<Json<ServerLog>, Refused> {
    discovery::server(&admin.gateway.catalog(), &Caller::admin(), &name)?;
    let limit = limit(query.limit, LINES_MAX, LINES_MAX)?;
    let mut lines = admin.gateway.stderr(&name);
    let surplus = lines.len().saturating_sub(limit);
    lines.drain(..surplus);
    Ok(Json(ServerLog { name, lines }))
}

pub(crate) async fn restart(
    State(admin): State<Admin>,
    Path(name): Path<String>,
) -> Result<Json<RestartingServer>, Refused> {
    let server = discovery::server(&admin.gateway.catalog(), &Caller::admin(), &name)?;
    if server.state == "disabled" {
        let message = format!("server '{name}' is disabled: nothing to restart");
        return Err(Refusal::new(Code::Conflict, message).into());
    }
    admin.gateway.restart(&name).await;
    Ok(Json(RestartingServer { name, restarting: true }))
}
