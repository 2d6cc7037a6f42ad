//! `retrieve_tools`: find the callable tools and show their parameters.

use std::borrow::Cow;
use std::collections::BTreeSet;

use domain::catalog::{Catalog, Hit, LockedHit, ToolFilter};
use domain::policy::{Addressee, Obstacle};
use domain::tool::Tool;
use domain::{Caller, Refusal, signature};
use embed::Vector;
use mcp::message::Raw;
use mcp::object::{ObjectMembers, quote};
use search::SearchQuery;
use serde_json::value::RawValue;

use crate::front::discovery::fit::{Entry, Fit, Fitted};
use crate::front::discovery::notice::{self, EmptySearch};
use crate::front::discovery::parameters::{OwnTool, Parameters};
use crate::front::reply;
use crate::limits;

const USAGE_INSTRUCTIONS: &str = "Use call_tool_read for read-only operations, call_tool_write for \
    modifications, call_tool_destructive for deletions. Intent must match tool variant.";

/// The longest query that an answer repeats in full.
const QUERY_CHARS_MAX: usize = 500;

/// The longest annotations in a compact result; the five members that exist have some 150.
const ANNOTATIONS_BYTES_MAX: usize = 500;

static RETRIEVE_TOOLS: OwnTool = OwnTool {
    parameters: &[
        "query",
        "limit",
        "detail",
        "read_only_only",
        "exclude_destructive",
        "exclude_open_world",
        "include_disabled",
    ],
    example: r#"{"query":"read a file","limit":5}"#,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DetailLevel {
    Compact,
    Full,
}

/// The limits of an answer, from the settings.
#[derive(Clone, Copy)]
pub(super) struct AnswerLimits {
    /// Results, if the caller names no limit.
    pub(super) tools: u32,
    /// Characters of one response; 0 is no limit.
    pub(super) response: u32,
}

/// The result of `retrieve_tools`, and whether the request included locked tools.
pub(super) struct RetrievedTools {
    pub(super) document: Raw,
    pub(super) with_locked: bool,
}

/// A request to search.
pub(super) struct ToolSearch {
    pub(super) query: String,
    /// The number of results that the caller named.
    asked: Option<usize>,
    detail: DetailLevel,
    filter: ToolFilter,
    with_locked: bool,
}

impl ToolSearch {
    pub(super) fn parse(arguments: &RawValue) -> Result<ToolSearch, Refusal> {
        let parameters = Parameters::parse(arguments, &RETRIEVE_TOOLS)?;
        let query = parameters.required_text("query", "a string that says what you want to do")?;
        let asked = parameters.number("limit", 1..=limits::SEARCH_LIMIT_MAX)?;
        let detail = match parameters.choice("detail", &["compact", "full"])? {
            Some("full") => DetailLevel::Full,
            _ => DetailLevel::Compact,
        };
        Ok(ToolSearch {
            query,
            asked: asked.map(|limit| usize::try_from(limit).unwrap_or(1)),
            detail,
            filter: ToolFilter {
                read_only_only: parameters.flag("read_only_only")?,
                exclude_destructive: parameters.flag("exclude_destructive")?,
                exclude_open_world: parameters.flag("exclude_open_world")?,
            },
            with_locked: parameters.flag("include_disabled")?,
        })
    }

    /// Finds the tools; with the vector of the query, also by meaning.
    pub(super) fn answer(
        &self,
        catalog: &Catalog,
        caller: &Caller,
        vector: Option<&Vector>,
        limits: AnswerLimits,
    ) -> RetrievedTools {
        let ToolSearch { query: text, asked, detail, filter, with_locked } = self;
        let query = SearchQuery { text, vector };
        let limit = asked.unwrap_or(limits.tools as usize);
        let hits = catalog.search(caller, query, limit, *filter);
        let response_max = limits.response as usize;
        let around = answer(&[], text).write_text().chars().count();
        let fit = Fit { detail: *detail, asked: asked.is_some(), around, response_max };
        let entries = hits.iter().map(|hit| entry(hit, *detail)).collect();
        let Fitted { entries, note } = fit.results(entries);
        let mut answer = answer(&entries, text);
        if *with_locked {
            let most = limit.min(limits::LOCKED_SHOWN_MAX);
            let locked = catalog.search_locked(caller, query, most, *filter);
            show_locked(&mut answer, &locked, |answer| fit.fits(answer));
        }
        // The locked tools are counted only here, so that a search with hits costs nothing more.
        let nothing = entries.is_empty().then(|| {
            let (filter, shows_locked) = (*filter, *with_locked);
            EmptySearch { catalog, caller, query, filter, shows_locked }.notice()
        });
        let not_ready = notice::servers_not_ready(catalog, caller);
        let sentences: Vec<String> = [note, nothing, not_ready].into_iter().flatten().collect();
        let notice = sentences.join(" ");
        if !notice.is_empty() {
            answer.set("notice", quote(&notice));
        }
        let document = reply::document(&answer.write_text());
        RetrievedTools { document, with_locked: *with_locked }
    }
}

fn answer(entries: &[String], query: &str) -> ObjectMembers<'static> {
    let mut answer = ObjectMembers::default();
    answer.set("tools", format!("[{}]", entries.join(",")));
    answer.set("query", quote(&signature::cut(query, QUERY_CHARS_MAX)));
    answer.set("total", entries.len().to_string());
    answer.set("usage_instructions", quote(USAGE_INSTRUCTIONS));
    answer
}

/// Adds as many of the matching locked tools as fit and, once for each reason, who can lift the
/// lock.
fn show_locked(
    answer: &mut ObjectMembers<'_>,
    locked: &[LockedHit<'_>],
    fits: impl Fn(&str) -> bool,
) {
    for shown in (0..=locked.len()).rev().map(|count| &locked[..count]) {
        let entries: Vec<String> = shown.iter().map(locked_entry).collect();
        answer.set("disabled", format!("[{}]", entries.join(",")));
        answer.remove("remediation");
        let present: BTreeSet<Obstacle> = shown.iter().map(|hit| hit.obstacle).collect();
        if !present.is_empty() {
            let mut remediation = ObjectMembers::default();
            for obstacle in present {
                remediation
                    .set(obstacle.as_str(), quote(obstacle.remediation(Addressee::Discovery)));
            }
            answer.set("remediation", remediation.write_text());
        }
        if fits(&answer.write_text()) {
            break;
        }
    }
}

/// Omits the schema and any unapproved text.
fn locked_entry(hit: &LockedHit<'_>) -> String {
    let mut entry = ObjectMembers::default();
    let name = if hit.shows_text { Cow::Borrowed(&*hit.tool.name) } else { hit.tool.safe_name() };
    entry.set("name", quote(&format!("{}:{name}", hit.server.name)));
    entry.set("server", quote(&hit.server.name));
    if hit.shows_text {
        let description = signature::first_sentence(&hit.tool.description());
        entry.set("description", quote(&description));
    }
    entry.set("status", quote(hit.obstacle.as_str()));
    entry.write_text()
}

fn entry(hit: &Hit<'_>, detail: DetailLevel) -> Entry {
    let full = (detail == DetailLevel::Full).then(|| full_entry(hit));
    Entry { compact: compact_entry(hit), full }
}

/// Formats one result with its schema; the server's own text is copied, not parsed and written
/// again.
fn full_entry(hit: &Hit<'_>) -> String {
    let tool = hit.tool;
    let mut entry = ObjectMembers::default();
    entry.set("name", full_name(&hit.server.name, tool));
    entry.set("description", tool.description_json().unwrap_or("\"\""));
    entry.set("inputSchema", tool.input_schema_json().unwrap_or("{}"));
    entry.set("score", format!("{:.2}", hit.score));
    entry.set("server", quote(&hit.server.name));
    if let Some(annotations) = tool.annotations_json() {
        entry.set("annotations", annotations);
    }
    entry.set("call_with", quote(tool.hints.class().variant()));
    entry.write_text()
}

/// Formats one result in few characters; the name already says the server.
fn compact_entry(hit: &Hit<'_>) -> String {
    let tool = hit.tool;
    let mut entry = ObjectMembers::default();
    entry.set("name", full_name(&hit.server.name, tool));
    entry.set("description", quote(&signature::first_sentence(&tool.description())));
    entry.set("signature", quote(&signature::of(tool.input_schema_json())));
    entry.set("score", format!("{:.2}", hit.score));
    let annotations = tool.annotations_json();
    if let Some(annotations) = annotations.filter(|text| text.len() <= ANNOTATIONS_BYTES_MAX) {
        entry.set("annotations", annotations);
    }
    entry.set("call_with", quote(tool.hints.class().variant()));
    entry.write_text()
}

fn full_name(server: &str, tool: &Tool) -> String {
    quote(&format!("{server}:{}", tool.name))
}
