//! `GET /contention`: agents that touched the same resource, and the story of two of them.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use domain::{Code, Refusal};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::json;
use store::read::contention::{ContentionFilter, WINDOW};
use store::read::{CoverageFilter, Reader, Record, RecordedTouch};
use touch::contention::{ContainerMeetings, ContentionKind, Edge, EdgeId, StoryTouch};
use utoipa::IntoParams;

use crate::Admin;
use crate::answer::{Path, Query, Refused};
use crate::form;
use crate::ledger::{SpanQuery, one_of};
use crate::view::{ActivityRecord, ContentionGraph, ContentionStory};

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
    /// Also agents of which one touched a container, such as a folder, and the other its contents.
    containers: Option<bool>,
}

impl ContentionQuery {
    fn filter(self, span: &SpanQuery) -> Result<ContentionFilter, Refused> {
        let (start, end) = (span.start()?, span.end()?);
        let recent = || Timestamp::now().checked_sub(RECENT).ok();
        let kind = self.kind.as_deref();
        Ok(ContentionFilter {
            window: window(self.window.as_deref())?,
            system: self.system,
            kind: one_of("kind", kind, &ContentionKind::ALL, ContentionKind::as_str)?,
            start: if end.is_none() { start.or_else(recent) } else { start },
            end,
            edge: None,
            containers: if self.containers == Some(true) {
                ContainerMeetings::Included
            } else {
                ContainerMeetings::Ignored
            },
        })
    }
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Query(query): Query<ContentionQuery>,
    Query(span): Query<SpanQuery>,
) -> Result<Json<ContentionGraph>, Refused> {
    let wanted = query.filter(&span)?;
    let period = CoverageFilter { server: None, start: wanted.start, end: wanted.end };
    let question =
        move |reader: &Reader| Ok((reader.contention(&wanted)?, reader.target_losses(&period)?));
    let (graph, losses) = admin.ask(question).await?;
    Ok(Json(ContentionGraph::new(graph, losses)))
}

pub(crate) async fn explain(
    State(admin): State<Admin>,
    Path(id): Path<String>,
    Query(query): Query<ContentionQuery>,
    Query(span): Query<SpanQuery>,
) -> Result<Json<ContentionStory>, Refused> {
    let mut wanted = query.filter(&span)?;
    let not_found = || {
        let message = format!(
            "edge '{id}' not found: ids are those of the list with the same window, period and \
             containers"
        );
        Refused::from(Refusal::new(Code::NotFound, message))
    };
    let edge = EdgeId::parse(&id).ok_or_else(not_found)?;
    wanted.edge = Some(edge);
    // The list hides edges between readers by default, but their ids are valid.
    let kinds = [wanted.kind, Some(ContentionKind::ReadRead)];
    let window = wanted.window;
    let found = admin
        .ask(move |reader| {
            for kind in kinds {
                let graph = reader.contention(&ContentionFilter { kind, ..wanted.clone() })?;
                if let Some(edge) = graph.edges.into_iter().next() {
                    let records: Result<Vec<_>, _> =
                        edge.records.iter().map(|id| reader.record(id)).collect();
                    return Ok(Some((edge, records?.into_iter().flatten().collect::<Vec<_>>())));
                }
            }
            Ok(None)
        })
        .await?;
    let (edge, records) = found.ok_or_else(not_found)?;
    let window = SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX);
    Ok(Json(story(edge, &records, window)))
}

/// Tells the story of the closest meeting of an edge.
fn story(edge: Edge<String>, records: &[Record], window: SignedDuration) -> ContentionStory {
    let closest = &records[..records.len().min(edge.records_per_meeting())];
    let touches: Vec<StoryTouch> =
        closest.iter().map(|record| story_touch(&edge, record)).collect();
    let story = edge.story(&touches, window);
    let records = closest.iter().map(ActivityRecord::brief).collect();
    ContentionStory { edge: edge.into(), story, records }
}

/// Returns a call as a part of the story: its touch of the first resource of the edge, or of the
/// container of it.
fn story_touch(edge: &Edge<String>, record: &Record) -> StoryTouch {
    let names = [edge.resources.first(), edge.containers.first()];
    let is_it = |touch: &&RecordedTouch| {
        touch.system == edge.system && names.iter().flatten().any(|name| *touch.resource == ***name)
    };
    let touch = record.targets.iter().find(is_it);
    StoryTouch {
        agent: record.agent.name.clone(),
        access: touch.map(|touch| touch.access).unwrap_or_default(),
        at: record.timestamp,
        tool: format!("{}:{}", record.server, record.tool),
        resource: touch.map(|touch| touch.resource.clone()).unwrap_or_default(),
    }
}

fn window(given: Option<&str>) -> Result<Duration, Refused> {
    let Some(given) = given else {
        return Ok(WINDOW);
    };
    match text::duration::parse(given) {
        Some(window) if !window.is_zero() => Ok(window),
        _ => {
            let message =
                format!("window must be a duration such as 30s, 10m or 1h, got '{given}'");
            let details = json!({"field": "window", "provided": given});
            Err(Refusal::new(Code::InvalidRequest, message).with(details).into())
        }
    }
}
