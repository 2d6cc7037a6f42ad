//! `GET /servers`: the same entries that agents see in `upstream_servers`.

use axum::Json;
use axum::extract::State;
use domain::Caller;
use gateway::front::discovery;
use serde_json::Value;

use crate::Admin;
use crate::answer::{Path, Refused};

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
