//! `GET /activity`: what was done, newest first, one record, counted, or all of it.

pub(crate) mod openapi;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use domain::tool::Class;
use domain::{Code, Refusal};
use serde::Deserialize;
use serde_json::{Value, json};
use store::read::summary::{Bucket, Counts, Tally};
use store::read::{Detail, Filter, Period, Summary};
use store::{Kind, Status};

use crate::Admin;
use crate::answer::{Path, Query, Refused};
use crate::ledger::{one_of, page, piece, streamed, time, total};
use crate::record;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    r#type: Option<String>,
    server: Option<String>,
    tool: Option<String>,
    status: Option<String>,
    intent_type: Option<String>,
    effective_class: Option<String>,
    agent: Option<String>,
    session_id: Option<String>,
    request_id: Option<String>,
    target_system: Option<String>,
    target_resource: Option<String>,
    start_time: Option<String>,
    end_time: Option<String>,
    q: Option<String>,
    /// Only of the list.
    limit: Option<usize>,
    cursor: Option<String>,
    /// Only of an export.
    format: Option<String>,
}

impl ListQuery {
    fn filter(&self) -> Result<Filter, Refused> {
        let intent =
            one_of("intent_type", self.intent_type.as_deref(), &Class::ALL, Class::as_str)?;
        let class = self.effective_class.as_deref();
        Ok(Filter {
            kind: one_of("type", self.r#type.as_deref(), &Kind::ALL, Kind::as_str)?,
            server: self.server.clone(),
            tool: self.tool.clone(),
            status: one_of("status", self.status.as_deref(), &Status::ALL, Status::as_str)?,
            intent_type: intent.map(|class| class.as_str().to_owned()),
            effective_class: one_of("effective_class", class, &Class::ALL, Class::as_str)?,
            agent: self.agent.clone(),
            session_id: self.session_id.clone(),
            request_id: self.request_id.clone(),
            target_system: self.target_system.clone(),
            target_resource: self.target_resource.clone(),
            start: time("start_time", self.start_time.as_deref())?,
            end: time("end_time", self.end_time.as_deref())?,
            text: self.q.clone(),
        })
    }
}

pub(crate) async fn list(
    State(admin): State<Admin>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, Refused> {
    let (filter, page) = (query.filter()?, page(query.limit, query.cursor)?);
    let found = admin.ask(move |reader| reader.activity(&filter, &page)).await?;
    let (total, total_is_exact) = total(found.total);
    Ok(Json(json!({
        "activities": found.records.iter().map(record::brief).collect::<Vec<_>>(),
        "next_cursor": found.next_cursor,
        "total": total,
        "total_is_exact": total_is_exact,
    })))
}

pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refused> {
    let asked = id.clone();
    match admin.ask(move |reader| reader.record(&asked)).await? {
        Some(found) => Ok(Json(record::whole(&found))),
        None => Err(Refusal::new(Code::NotFound, format!("there is no record '{id}'")).into()),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SummaryQuery {
    period: Option<String>,
}

pub(crate) async fn summary(
    State(admin): State<Admin>,
    Query(query): Query<SummaryQuery>,
) -> Result<Json<Value>, Refused> {
    let period = one_of("period", query.period.as_deref(), &Period::ALL, Period::as_str)?;
    let period = period.unwrap_or(Period::Day);
    let summary = admin.ask(move |reader| reader.summary(period, jiff::Timestamp::now())).await?;
    Ok(Json(counted(period, &summary)))
}

fn counted(period: Period, summary: &Summary) -> Value {
    let statuses = summary
        .by_status
        .iter()
        .map(|(status, count)| (status.as_str().to_owned(), (*count).into()));
    let named = |name: &str, tallies: &[Tally<String>]| -> Vec<Value> {
        tallies.iter().map(|tally| with_counts(json!({name: tally.of}), tally.counts)).collect()
    };
    let tools = summary.by_tool.iter().map(|tally| {
        with_counts(json!({"server": tally.of.server, "tool": tally.of.tool}), tally.counts)
    });
    let buckets = summary.buckets.iter();
    let milliseconds = |duration: Option<std::time::Duration>| duration.map(record::milliseconds);
    json!({
        "period": period.as_str(),
        "start": record::moment(summary.start),
        "end": record::moment(summary.end),
        "calls": summary.calls,
        "by_status": statuses.collect::<serde_json::Map<String, Value>>(),
        "by_server": named("server", &summary.by_server),
        "by_tool": tools.collect::<Vec<_>>(),
        "by_intent": named("intent_type", &summary.by_intent),
        "by_agent": named("agent", &summary.by_agent),
        "buckets": buckets
            .map(|bucket| with_counts(by_class(bucket), bucket.counts))
            .collect::<Vec<_>>(),
        "bucket_seconds": summary.bucket_width.as_secs(),
        "duration_ms": {
            "p50": milliseconds(summary.duration_p50),
            "p95": milliseconds(summary.duration_p95),
        },
    })
}

fn by_class(bucket: &Bucket) -> Value {
    json!({
        "start": record::moment(bucket.start),
        "reads": bucket.reads,
        "writes": bucket.writes,
        "destructive": bucket.destructive,
    })
}

fn with_counts(mut entry: Value, counts: Counts) -> Value {
    entry["calls"] = counts.calls.into();
    entry["errors"] = counts.errors.into();
    entry["blocked"] = counts.blocked.into();
    entry
}

#[derive(Clone, Copy)]
enum Format {
    Jsonl,
    Csv,
}

impl Format {
    fn as_str(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Format::Jsonl => "application/jsonl",
            Format::Csv => "text/csv; charset=utf-8",
        }
    }
}

pub(crate) async fn export(
    State(admin): State<Admin>,
    Query(query): Query<ListQuery>,
) -> Result<Response, Refused> {
    let given = query.format.as_deref();
    let format = one_of("format", given, &[Format::Jsonl, Format::Csv], Format::as_str)?;
    let format = format.unwrap_or(Format::Jsonl);
    let filter = query.filter()?;
    admin.gateway.store().settled().await;
    let records = admin.gateway.store().read().records(filter, Detail::Whole);
    let head = matches!(format, Format::Csv).then(record::csv_head);
    let body = streamed((head, records), move |(head, records)| {
        if let Some(head) = head.take() {
            return Ok(Some(head));
        }
        piece(records, |out, found| match format {
            Format::Jsonl => {
                out.push_str(&record::whole(&found).to_string());
                out.push('\n');
            }
            Format::Csv => record::csv_line(out, &found),
        })
    });
    Ok(([(header::CONTENT_TYPE, format.content_type())], body).into_response())
}
