//! `GET /activity`: a list of records (newest first), one record, a summary, or an export.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use domain::tool::Class;
use domain::{Code, Refusal};
use serde::Deserialize;
use serde_json::json;
use store::read::{IdKind, Period, RecordDetail, RecordFilter, Total, TouchAccess};
use store::{RecordKind, RecordStatus};
use touch::container::container_name;
use utoipa::IntoParams;

use crate::answer::{Path, Query, Refused};
use crate::form::{self, form};
use crate::ledger::{PageQuery, SpanQuery, one_of, piece, streamed};
use crate::view::{ActivityPage, ActivityRecord, ActivitySummary, words};
use crate::{Admin, csv};

/// Filters on records; a record must match all that are given.
#[derive(Deserialize, IntoParams)]
pub(crate) struct FilterQuery {
    /// Records of this type.
    #[serde(rename = "type")]
    #[param(inline, value_type = Option<form::RecordKind>)]
    kind: Option<String>,
    /// Records with this outcome.
    #[param(inline, value_type = Option<form::RecordStatus>)]
    status: Option<String>,
    /// Records with this declared class.
    #[param(inline, value_type = Option<form::Class>)]
    intent_type: Option<String>,
    /// Records with this effective class.
    #[param(inline, value_type = Option<form::Class>)]
    effective_class: Option<String>,
    /// Records of this server.
    server: Option<String>,
    /// Records of the tool with this name.
    tool: Option<String>,
    /// Records of this agent: its name with or without the session, or the name of its token.
    agent: Option<String>,
    /// Records of this session: its id, or an unambiguous beginning or end of it.
    session_id: Option<String>,
    /// Records of this request.
    request_id: Option<String>,
    /// Records that touched this system.
    target_system: Option<String>,
    /// Records that touched this resource; `*` in it is any text.
    target_resource: Option<String>,
    /// Records that touched this resource or anything in it: a folder and its files, a repository
    /// and its issues.
    #[param(inline, value_type = Option<form::Filled>)]
    under: Option<String>,
    /// Also records that touched a container of `target_resource`, or else of `under`.
    containers: Option<bool>,
    /// Records that touched the resource in this way; `delete` is a write by a destructive call.
    #[param(inline, value_type = Option<form::TouchAccess>)]
    access: Option<String>,
    /// Records with this text in tool, server, reason, error or target.
    q: Option<String>,
}

impl FilterQuery {
    async fn filter(self, admin: &Admin, span: &SpanQuery) -> Result<RecordFilter, Refused> {
        let intent =
            one_of("intent_type", self.intent_type.as_deref(), &Class::ALL, Class::as_str)?;
        let class = self.effective_class.as_deref();
        let status = self.status.as_deref();
        let access = self.access.as_deref();
        let filter = RecordFilter {
            kind: one_of("type", self.kind.as_deref(), &RecordKind::ALL, RecordKind::as_str)?,
            server: self.server,
            tool: self.tool,
            status: one_of("status", status, &RecordStatus::ALL, RecordStatus::as_str)?,
            intent_type: intent.map(|class| class.as_str().to_owned()),
            effective_class: one_of("effective_class", class, &Class::ALL, Class::as_str)?,
            agent: self.agent,
            session_id: None,
            request_id: self.request_id,
            target_system: self.target_system,
            target_resource: self.target_resource,
            under: self.under.as_deref().map(container).transpose()?,
            containers: self.containers == Some(true),
            access: one_of("access", access, &TouchAccess::ALL, TouchAccess::as_str)?,
            start: span.start()?,
            end: span.end()?,
            text: self.q,
        };
        let session_id = match self.session_id {
            None => None,
            Some(id) => Some(admin.id(IdKind::Session, ("session_id", &id)).await?.unwrap_or(id)),
        };
        Ok(RecordFilter { session_id, ..filter })
    }
}

/// Returns the name of a container.
fn container(given: &str) -> Result<String, Refusal> {
    if given.is_empty() {
        let message = "under must name a resource, such as a folder";
        return Err(Refusal::new(Code::InvalidRequest, message).with(json!({"field": "under"})));
    }
    Ok(container_name(given).to_owned())
}

pub(crate) async fn list(
    State(admin): State<Admin>,
    Query(query): Query<FilterQuery>,
    Query(span): Query<SpanQuery>,
    Query(page): Query<PageQuery>,
) -> Result<Json<ActivityPage>, Refused> {
    let (filter, page) = (query.filter(&admin, &span).await?, page.page()?);
    let found = admin.ask(move |reader| {
        let found = reader.activity(&filter, &page)?;
        let is_empty = found.total == Total::Exact(0);
        let near = if is_empty { reader.near_targets(&filter)? } else { None };
        Ok(ActivityPage::new(found, near))
    });
    Ok(Json(found.await?))
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<ActivityRecord>, Refused> {
    let not_found = || Refusal::new(Code::NotFound, format!("record '{id}' not found"));
    let asked = admin.id(IdKind::Record, ("id", &id)).await?.ok_or_else(not_found)?;
    let found = admin.ask(move |reader| reader.record(&asked)).await?;
    Ok(Json(ActivityRecord::whole(&found.ok_or_else(not_found)?)))
}

#[derive(Deserialize, IntoParams)]
pub(crate) struct SummaryQuery {
    /// The period to summarize, ending now.
    #[param(inline, value_type = Option<form::PeriodOrDay>)]
    period: Option<String>,
}

pub(crate) async fn summary(
    State(admin): State<Admin>,
    Query(query): Query<SummaryQuery>,
) -> Result<Json<ActivitySummary>, Refused> {
    let period = one_of("period", query.period.as_deref(), &Period::ALL, Period::as_str)?;
    let period = period.unwrap_or(Period::Day);
    let summary = admin.ask(move |reader| reader.summary(period, jiff::Timestamp::now())).await?;
    Ok(Json(ActivitySummary::new(period, &summary)))
}

#[derive(Clone, Copy)]
enum Format {
    Jsonl,
    Csv,
}

impl Format {
    const ALL: [Format; 2] = [Format::Jsonl, Format::Csv];

    fn as_str(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Format::Jsonl => "application/jsonl",
            Format::Csv => "text/csv; charset=utf-8",
        }
    }
}

/// The media types of an export.
pub(crate) const EXPORT_KINDS: &[&str] =
    &[Format::Jsonl.content_type(), Format::Csv.content_type()];

#[derive(Deserialize, IntoParams)]
pub(crate) struct FormatQuery {
    /// The format: JSON lines of complete records, or a table for spreadsheets.
    #[param(inline, value_type = Option<ExportFormat>)]
    format: Option<String>,
}

form!(
    ExportFormat = {
        let default = Format::Jsonl.as_str().into();
        words::one_of(Format::ALL.map(Format::as_str)).default(Some(default))
    }
);

pub(crate) async fn export(
    State(admin): State<Admin>,
    Query(query): Query<FilterQuery>,
    Query(span): Query<SpanQuery>,
    Query(chosen): Query<FormatQuery>,
) -> Result<Response, Refused> {
    let format = one_of("format", chosen.format.as_deref(), &Format::ALL, Format::as_str)?;
    let format = format.unwrap_or(Format::Jsonl);
    let filter = query.filter(&admin, &span).await?;
    admin.gateway.store().settled().await;
    let records = admin.gateway.store().read().records(filter, RecordDetail::Whole);
    let head = matches!(format, Format::Csv).then(csv::head);
    let body = streamed((head, records), move |(head, records)| {
        if let Some(head) = head.take() {
            return Ok(Some(head));
        }
        piece(records, |out, found| match format {
            Format::Jsonl => {
                let record = ActivityRecord::whole(&found);
                out.push_str(&serde_json::to_string(&record).unwrap_or_default());
                out.push('\n');
            }
            Format::Csv => csv::line(out, &found),
        })
    });
    Ok(([(header::CONTENT_TYPE, format.content_type())], body).into_response())
}
