//! `retrieve_tools` and `describe_tool`: find the callable tools and show their parameters.

use std::borrow::Cow;
use std::collections::BTreeSet;

use domain::catalog::{Catalog, Hit, LockedHit, ToolFilter};
use domain::policy::{self, Addressee, Lock, Obstacle};
use domain::tool::{Tool, ToolName};
use domain::trust::UNSEEN;
use domain::{Caller, Code, Refusal, signature};
use mcp::message::Raw;
use mcp::object::{ObjectMembers, quote};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::front::discovery::fit::{Entry, Fit, Fitted};
use crate::front::discovery::notice::{self, EmptySearch};
use crate::front::discovery::parameters::parameters;
use crate::front::reply;
use crate::limits;

const USAGE_INSTRUCTIONS: &str = "Use call_tool_read for read-only operations, call_tool_write for \
    modifications, call_tool_destructive for deletions. Intent must match tool variant.";

/// The longest query that an answer repeats in full.
const QUERY_CHARS_MAX: usize = 500;

/// The longest annotations in a compact result; the five members that exist have some 150.
const ANNOTATIONS_BYTES_MAX: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetrieveParameters {
    query: String,
    #[serde(default)]
    limit: Option<serde_json::Value>,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default)]
    read_only_only: bool,
    #[serde(default)]
    exclude_destructive: bool,
    #[serde(default)]
    exclude_open_world: bool,
    #[serde(default)]
    include_disabled: bool,
}

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

pub(super) fn retrieve(
    catalog: &Catalog,
    caller: &Caller,
    arguments: &RawValue,
    limits: AnswerLimits,
) -> Result<RetrievedTools, Refusal> {
    let retrieve: RetrieveParameters = parameters(arguments)?;
    let asked = check_limit(retrieve.limit.as_ref())?;
    let limit = asked.unwrap_or(limits.tools as usize);
    let detail = check_detail(retrieve.detail.as_deref())?;
    let filter = ToolFilter {
        read_only_only: retrieve.read_only_only,
        exclude_destructive: retrieve.exclude_destructive,
        exclude_open_world: retrieve.exclude_open_world,
    };
    let hits = catalog.search(caller, &retrieve.query, limit, filter);
    let response_max = limits.response as usize;
    let around = answer(&[], &retrieve.query).write_text().chars().count();
    let fit = Fit { detail, asked: asked.is_some(), around, response_max };
    let Fitted { entries, note } = fit.results(hits.iter().map(|hit| entry(hit, detail)).collect());
    let mut answer = answer(&entries, &retrieve.query);
    if retrieve.include_disabled {
        let most = limit.min(limits::LOCKED_SHOWN_MAX);
        let locked = catalog.search_locked(caller, &retrieve.query, most, filter);
        show_locked(&mut answer, &locked, |answer| fit.fits(answer));
    }
    let shows_locked = retrieve.include_disabled;
    let query = retrieve.query.as_str();
    // The locked tools are counted only here, so that a search with hits costs nothing more.
    let nothing = entries
        .is_empty()
        .then(|| EmptySearch { catalog, caller, query, filter, shows_locked }.notice());
    let not_ready = notice::servers_not_ready(catalog, caller);
    let sentences: Vec<String> = [note, nothing, not_ready].into_iter().flatten().collect();
    let notice = sentences.join(" ");
    if !notice.is_empty() {
        answer.set("notice", quote(&notice));
    }
    let document = reply::document(&answer.write_text());
    Ok(RetrievedTools { document, with_locked: retrieve.include_disabled })
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

/// Omits the schema and any text that nobody has approved.
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

fn check_limit(given: Option<&serde_json::Value>) -> Result<Option<usize>, Refusal> {
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return Ok(None);
    };
    match given.as_u64() {
        Some(limit @ 1..=limits::SEARCH_LIMIT_MAX) => Ok(Some(usize::try_from(limit).unwrap_or(1))),
        _ => Err(Refusal::invalid_arguments(format!(
            "limit must be a whole number from 1 to {}, got {given}",
            limits::SEARCH_LIMIT_MAX
        ))
        .with(json!({"provided": given, "min": 1, "max": limits::SEARCH_LIMIT_MAX}))),
    }
}

fn check_detail(given: Option<&str>) -> Result<DetailLevel, Refusal> {
    match given {
        None | Some("compact") => Ok(DetailLevel::Compact),
        Some("full") => Ok(DetailLevel::Full),
        Some(other) => Err(Refusal::invalid_arguments(format!(
            "detail must be compact or full, got '{other}'"
        ))
        .with(json!({"provided": other, "valid_values": ["compact", "full"]}))),
    }
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

/// Returns the full definitions, under the names the gate uses for them.
pub(super) fn describe(
    catalog: &Catalog,
    caller: &Caller,
    arguments: &RawValue,
) -> Result<Raw, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Describe {
        tool_ids: Vec<String>,
    }
    let Describe { tool_ids } = parameters(arguments)?;
    if tool_ids.is_empty() || tool_ids.len() > limits::DESCRIBE_MAX {
        let message = format!(
            "tool_ids must list 1 to {} names, got {}",
            limits::DESCRIBE_MAX,
            tool_ids.len()
        );
        return Err(Refusal::invalid_arguments(message));
    }
    let tools = tool_ids
        .iter()
        .map(|id| describe_one(catalog, caller, id))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(reply::document(&format!(r#"{{"tools":[{}]}}"#, tools.join(","))))
}

fn describe_one(catalog: &Catalog, caller: &Caller, id: &str) -> Result<String, Refusal> {
    let name = ToolName::parse(id)?;
    let seen = |tool: &ToolName| caller.sees_tool(&tool.server, &tool.tool);
    let Some((server, tool)) = catalog.tool(&name).filter(|_| seen(&name)) else {
        let near = catalog.near(caller, &name);
        return Err(Refusal::new(Code::ToolNotFound, format!("tool '{name}' not found"))
            .with(json!({"name": id, "near": near})));
    };
    // A tool that may not be called is not described either: its text may be the untrusted part.
    if let Lock::Locked(status) = server.lock(&tool.name) {
        return Err(policy::blocked(&name, status, Addressee::Discovery));
    }
    let name = full_name(&server.name, tool);
    let definition = ObjectMembers::parse(tool.definition());
    let mut described = ObjectMembers::default();
    described.set("name", name);
    described.set("server", quote(&server.name));
    for (member, value) in definition.iter().flat_map(ObjectMembers::iter) {
        // Members outside the fingerprint were approved by nobody.
        if !matches!(member, "name" | "server" | "call_with") && !UNSEEN.contains(&member) {
            described.set(member, value);
        }
    }
    described.set("call_with", quote(tool.hints.class().variant()));
    Ok(described.write_text())
}

fn full_name(server: &str, tool: &Tool) -> String {
    quote(&format!("{server}:{}", tool.name))
}
