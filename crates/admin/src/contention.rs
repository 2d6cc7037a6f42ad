//! `GET /contention`: agents that touched the same thing.

pub(crate) mod openapi;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use domain::ledger::contention::{Graph, Kind};
use domain::{Code, Refusal};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::json;
use store::read::contention::{ContentionFilter, WINDOW};

use crate::Admin;
use crate::answer::{Query, Refused};
use crate::ledger::{one_of, time};

/// How far back is looked where no time is given: who meets now matters, and a week holds both ends
/// of what people still remember.
const RECENT: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentionQuery {
    window: Option<String>,
    system: Option<String>,
    kind: Option<String>,
    start_time: Option<String>,
    end_time: Option<String>,
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Query(query): Query<ContentionQuery>,
) -> Result<Json<Graph<String>>, Refused> {
    let start = time("start_time", query.start_time.as_deref())?;
    let end = time("end_time", query.end_time.as_deref())?;
    let recent = || Timestamp::now().checked_sub(RECENT).ok();
    let wanted = ContentionFilter {
        window: window(query.window.as_deref())?,
        system: query.system,
        kind: one_of("kind", query.kind.as_deref(), &Kind::ALL, Kind::as_str)?,
        start: if end.is_none() { start.or_else(recent) } else { start },
        end,
    };
    Ok(Json(admin.ask(move |reader| reader.contention(&wanted)).await?))
}

fn window(given: Option<&str>) -> Result<Duration, Refused> {
    let Some(given) = given else {
        return Ok(WINDOW);
    };
    match domain::config::duration(given) {
        Some(window) if !window.is_zero() => Ok(window),
        _ => {
            let message =
                format!("window must be a duration such as 30s, 10m or 1h, got '{given}'");
            let details = json!({"field": "window", "provided": given});
            Err(Refusal::new(Code::InvalidRequest, message).with(details).into())
        }
    }
}
