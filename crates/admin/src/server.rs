//! `GET /servers`: the same entries that agents see in `upstream_servers`.

use axum::Json;
use axum::extract::State;
use domain::{Caller, Code, Refusal};
use gateway::front::discovery;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Admin;
use crate::answer::{Path, Query, Refused};

pub(crate) async fn list(State(admin): State<Admin>) -> Json<Value> {
    Json(discovery::servers(&admin.gateway.catalog(), &Caller::admin()))
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refused> {
    let catalog = admin.gateway.catalog();
    Ok(Json(discovery::server_entry(&catalog, &Caller::admin(), &name)?))
}

/// Lines that a query gives unless it asks for fewer; no more are kept.
const LINES_DEFAULT: usize = mcp::limits::STDERR_LINES_MAX;

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
    let mut lines = admin.gateway.stderr(&name);
    let surplus = lines.len().saturating_sub(query.limit.unwrap_or(LINES_DEFAULT));
    lines.drain(..surplus);
    Ok(Json(json!({"name": name, "lines": lines})))
}

pub(crate) async fn restart(
    State(admin): State<Admin>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Refused> {
    let server = discovery::server_entry(&admin.gateway.catalog(), &Caller::admin(), &name)?;
    if server["state"] == "disabled" {
        let message = format!("server '{name}' is switched off in the config: nothing to restart");
        return Err(Refusal::new(Code::InvalidRequest, message).into());
    }
    admin.gateway.restart(&name).await;
    Ok(Json(json!({"name": name, "restarting": true})))
}
