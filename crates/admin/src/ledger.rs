//! Queries of the ledger. They run off the async threads, once all appended entries can be read.

use axum::body::{Body, Bytes};
use domain::{Code, Refusal};
use futures_util::stream;
use jiff::Timestamp;
use mcp::task;
use serde::Deserialize;
use serde_json::json;
use store::StoreError;
use store::read::{IdKind, PAGE_MAX, Page, Reader};
use utoipa::IntoParams;

use crate::Admin;
use crate::answer::Refused;
use crate::form::{self, form};
use crate::view::words;

/// The default number of rows of a page.
const PAGE_DEFAULT: usize = 50;

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Refusal::new(error.code(), error.to_string()).into()
    }
}

impl Admin {
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refused> {
        let store = self.gateway.store();
        store.settled().await;
        let reader = store.read().clone();
        Ok(off_thread(move || question(&reader)).await?)
    }

    /// Returns the id that a parameter means, by itself or by its beginning or end. `None`: nothing
    /// has such an id.
    pub(crate) async fn id(
        &self,
        kind: IdKind,
        (field, given): (&str, &str),
    ) -> Result<Option<String>, Refused> {
        let asked = given.to_owned();
        let mut ids = self.ask(move |reader| reader.ids(kind, &asked)).await?;
        if ids.len() < 2 {
            return Ok(ids.pop());
        }
        let message = format!("'{given}' matches several {}: give more of the id", kind.plural());
        let details = json!({"field": field, "provided": given, "near": ids});
        Err(Refusal::new(Code::InvalidRequest, message).with(details).into())
    }
}

pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    task::spawn_blocking(work).await.expect("questions do not panic")
}

/// Streams a body as it is produced: `next` returns a chunk, or none at the end.
pub(crate) fn streamed<S: Send + 'static>(
    state: S,
    next: impl Fn(&mut S) -> Result<Option<String>, StoreError> + Clone + Send + 'static,
) -> Body {
    Body::from_stream(stream::try_unfold(state, move |mut state| {
        let next = next.clone();
        off_thread(move || {
            let piece = next(&mut state)?;
            Ok::<_, StoreError>(piece.map(|piece| (Bytes::from(piece), state)))
        })
    }))
}

/// Joins the items of an iterator into chunks of bounded size.
pub(crate) fn piece<T>(
    items: &mut impl Iterator<Item = Result<T, StoreError>>,
    write: impl Fn(&mut String, T),
) -> Result<Option<String>, StoreError> {
    /// The size of a chunk: large enough to be worth a turn of a thread, small enough to bound
    /// memory.
    const PIECE_BYTES: usize = 64 * 1024;
    let mut piece = String::new();
    while piece.len() < PIECE_BYTES {
        match items.next() {
            Some(item) => write(&mut piece, item?),
            None => break,
        }
    }
    Ok((!piece.is_empty()).then_some(piece))
}

/// The page of a list that a request asks for.
#[derive(Deserialize, IntoParams)]
pub(crate) struct PageQuery {
    /// The maximum number of entries.
    #[param(inline, value_type = Option<PageLimit>)]
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
}

form!(PageLimit = { words::count_between(1, PAGE_MAX).default(Some(PAGE_DEFAULT.into())) });

impl PageQuery {
    pub(crate) fn page(self) -> Result<Page, Refused> {
        Ok(Page { limit: limit(self.limit, PAGE_DEFAULT, PAGE_MAX)?, cursor: self.cursor })
    }
}

/// A span of time.
#[derive(Deserialize, IntoParams)]
pub(crate) struct SpanQuery {
    /// The start of the span, inclusive.
    #[param(inline, value_type = Option<form::Moment>)]
    start_time: Option<String>,
    /// The end of the span, exclusive.
    #[param(inline, value_type = Option<form::Moment>)]
    end_time: Option<String>,
}

impl SpanQuery {
    pub(crate) fn start(&self) -> Result<Option<Timestamp>, Refused> {
        time("start_time", self.start_time.as_deref())
    }

    pub(crate) fn end(&self) -> Result<Option<Timestamp>, Refused> {
        time("end_time", self.end_time.as_deref())
    }
}

/// Returns the number of entries that a request asks for.
pub(crate) fn limit(given: Option<usize>, default: usize, max: usize) -> Result<usize, Refused> {
    let limit = given.unwrap_or(default);
    if (1..=max).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("limit must be between 1 and {max}, got {limit}");
    let details = json!({"field": "limit", "provided": limit, "min": 1, "max": max});
    Err(Refusal::new(Code::InvalidRequest, message).with(details).into())
}

/// Parses a value from a closed list; the refusal lists the valid ones.
pub(crate) fn one_of<T: Copy>(
    field: &str,
    given: Option<&str>,
    all: &[T],
    word: impl Fn(T) -> &'static str,
) -> Result<Option<T>, Refusal> {
    let Some(given) = given else {
        return Ok(None);
    };
    match all.iter().find(|known| word(**known) == given) {
        Some(known) => Ok(Some(*known)),
        None => {
            let valid: Vec<&str> = all.iter().map(|known| word(*known)).collect();
            let message = format!("{field} must be one of {}, got '{given}'", valid.join(", "));
            let details = json!({"field": field, "provided": given, "valid_values": valid});
            Err(Refusal::new(Code::InvalidRequest, message).with(details))
        }
    }
}

fn time(field: &str, given: Option<&str>) -> Result<Option<Timestamp>, Refused> {
    let Some(given) = given else {
        return Ok(None);
    };
    match given.parse() {
        Ok(time) => Ok(Some(time)),
        Err(_) => {
            let message =
                format!("{field} must be a time such as 2026-01-31T12:00:00Z, got '{given}'");
            let details = json!({"field": field, "provided": given});
            Err(Refusal::new(Code::InvalidRequest, message).with(details).into())
        }
    }
}
