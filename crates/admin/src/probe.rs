//! `GET /healthz` and `/readyz`: for whatever starts the gate and sends it calls. They need no token
//! and tell nothing that one would protect.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::Admin;

/// The process lives, which to answer is to show.
pub(crate) async fn lives() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Whether calls are taken now. Servers that are not connected are no reason: the rest works.
pub(crate) async fn is_ready(State(admin): State<Admin>) -> Response {
    let reason = if admin.gateway.draining().is_cancelled() {
        "the gate is shutting down and takes no new calls"
    } else if admin.gateway.store().ledger().fault.is_some() {
        "the ledger cannot be written"
    } else {
        return Json(json!({"status": "ready"})).into_response();
    };
    let answer = json!({"status": "unready", "reason": reason});
    (StatusCode::SERVICE_UNAVAILABLE, Json(answer)).into_response()
}
