//! `GET /contention`: agents that touched the same resource.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use domain::ledger::contention::ContentionKind;
use domain::{Code, Refusal};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::json;
use store::read::contention::{ContentionFilter, WINDOW};
use utoipa::IntoParams;

use crate::Admin;
use crate::answer::{Query, Refused};
use crate::form;
use crate::ledger::{SpanQuery, one_of};
use crate::view::ContentionGraph;

/// The period to search where no time is given. Current contention matters most, and people still
/// remember a week.
const RECENT: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Deserialize, IntoParams)]
pub(crate) struct ContentionQuery {
    /// The longest time between two touches.
    #[param(inline, value_type = Option<form::Duration>)]
    window: Option<String>,
    /// Resources in this system.
    system: Option<String>,
    /// Edges of this kind.
    #[param(inline, value_type = Option<form::ContentionKind>)]
    kind: Option<String>,
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Query(query): Query<ContentionQuery>,
    Query(span): Query<SpanQuery>,
) -> Result<Json<ContentionGraph>, Refused> {
    let (start, end) = (span.start()?, span.end()?);
    let recent = || Timestamp::now().checked_sub(RECENT).ok();
    let wanted = ContentionFilter {
        window: window(query.window.as_deref())?,
        system: query.system,
        kind: one_of("kind", query.kind.as_deref(), &ContentionKind::ALL, ContentionKind::as_str)?,
        start: if end.is_none() { start.or_else(recent) } else { start },
        end,
    };
    let graph = admin.ask(move |reader| reader.contention(&wanted)).await?;
    Ok(Json(graph.into()))
}

fn window(given: Option<&str>) -> Result<Duration, Refused> {
    let Some(given) = given else {
        return Ok(WINDOW);
    };
    match domain::duration::parse(given) {
        Some(window) if !window.is_zero() => Ok(window),
        _ => {
            let message =
                format!("window must be a duration such as 30s, 10m or 1h, got '{given}'");
            let details = json!({"field": "window", "provided": given});
            Err(Refusal::new(Code::InvalidRequest, message).with(details).into())
        }
    }
}
