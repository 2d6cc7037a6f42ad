//! `GET /openapi.json`: what the API takes and answers, for programs.

use axum::extract::State;
use axum::response::Response;

use crate::{Admin, answer};

pub(crate) async fn show(State(admin): State<Admin>) -> Response {
    answer::json(admin.document.as_str())
}
