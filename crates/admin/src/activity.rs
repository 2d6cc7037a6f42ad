//! `GET /activity`: a list of records (newest first), one record, a summary, or an export.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use domain::tool::Class;
use domain::{Code, Refusal};
use serde::Deserialize;
use store::read::{Period, RecordDetail, RecordFilter};
use store::{RecordKind, RecordStatus};
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
    /// Records of this session.
    session_id: Option<String>,
    /// Records of this request.
    request_id: Option<String>,
    /// Records that touched this system.
    target_system: Option<String>,
    /// Records that touched this resource.
    target_resource: Option<String>,
    /// Records with this text in tool, server, reason, error or target.
    q: Option<String>,
}

impl FilterQuery {
    fn filter(self, span: &SpanQuery) -> Result<RecordFilter, Refused> {
        let intent =
            one_of("intent_type", self.intent_type.as_deref(), &Class::ALL, Class::as_str)?;
        let class = self.effective_class.as_deref();
        Ok(RecordFilter {
            kind: one_of("type", self.kind.as_deref(), &RecordKind::ALL, RecordKind::as_str)?,
            server: self.server,
            tool: self.tool,
            status: one_of(
                "status",
                self.status.as_deref(),
                &RecordStatus::ALL,
                RecordStatus::as_str,
            )?,
            intent_type: intent.map(|class| class.as_str().to_owned()),
            effective_class: one_of("effective_class", class, &Class::ALL, Class::as_str)?,
            agent: self.agent,
            session_id: self.session_id,
            request_id: self.request_id,
            target_system: self.target_system,
            target_resource: self.target_resource,
            start: span.start()?,
            end: span.end()?,
            text: self.q,
        })
    }
}

pub(crate) async fn list(
    State(admin): State<Admin>,
    Query(query): Query<FilterQuery>,
    Query(span): Query<SpanQuery>,
    Query(page): Query<PageQuery>,
) -> Result<Json<ActivityPage>, Refused> {
    let (filter, page) = (query.filter(&span)?, page.page()?);
    let found = admin.ask(move |reader| reader.activity(&filter, &page)).await?;
    Ok(Json(found.into()))
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<ActivityRecord>, Refused> {
    let asked = id.clone();
    match admin.ask(move |reader| reader.record(&asked)).await? {
        Some(found) => Ok(Json(ActivityRecord::whole(&found))),
        None => Err(Refusal::new(Code::NotFound, format!("record '{id}' not found")).into()),
    }
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
    let filter = query.filter(&span)?;
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
