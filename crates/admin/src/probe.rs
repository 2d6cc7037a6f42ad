//! `GET /healthz` and `/readyz`: probes for process supervisors and load balancers. They need no
//! token and reveal nothing that one would protect.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::Admin;
use crate::view::{Liveness, Readiness};

/// Responds, which shows that the process is alive.
pub(crate) async fn lives() -> Json<Liveness> {
    Json(Liveness { status: "ok".to_owned() })
}

/// Reports whether calls are accepted now. Disconnected servers do not matter: the rest works.
pub(crate) async fn is_ready(State(admin): State<Admin>) -> Response {
    let reason = if admin.gateway.draining().is_cancelled() {
        "the gate is shutting down and accepts no new calls"
    } else if admin.gateway.store().ledger().fault.is_some() {
        "the ledger cannot be written"
    } else {
        return Json(Readiness { status: "ready".to_owned(), reason: None }).into_response();
    };
    let answer = Readiness { status: "unready".to_owned(), reason: Some(reason.to_owned()) };
    (StatusCode::SERVICE_UNAVAILABLE, Json(answer)).into_response()
}
