//! `GET /healthz` and `/readyz`: for whatever starts the gate and sends it calls. They need no token
//! and tell nothing that one would protect.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::Admin;
use crate::view::{Liveness, Readiness};

/// The process lives, which to answer is to show.
pub(crate) async fn lives() -> Json<Liveness> {
    Json(Liveness { status: "ok".to_owned() })
}

/// Whether calls are taken now. Servers that are not connected are no reason: the rest works.
pub(crate) async fn is_ready(State(admin): State<Admin>) -> Response {
    let reason = if admin.gateway.draining().is_cancelled() {
        "the gate is shutting down and takes no new calls"
    } else if admin.gateway.store().ledger().fault.is_some() {
        "the ledger cannot be written"
    } else {
        return Json(Readiness { status: "ready".to_owned(), reason: None }).into_response();
    };
    let answer = Readiness { status: "unready".to_owned(), reason: Some(reason.to_owned()) };
    (StatusCode::SERVICE_UNAVAILABLE, Json(answer)).into_response()
}
