//! `GET /openapi.json`: the machine-readable description of the API.

use axum::extract::State;
use axum::response::Response;

use crate::{Admin, answer};

pub(crate) async fn show(State(admin): State<Admin>) -> Response {
    answer::json(admin.document.as_str())
}
