//! `retrieve_tools`: finds the callable tools and shows how to call them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use domain::catalog::{Catalog, Hit, LockedHit, ToolFilter};
use domain::policy::LockStatus;
use domain::tool::Tool;
use domain::{Caller, Refusal, signature};
use mcp::message::Raw;
use mcp::object::{ObjectMembers, quote};
use serde_json::value::RawValue;

use crate::front::discovery::parameters::{OwnTool, Parameters};
use crate::front::reply;
use crate::limits;

const USAGE_INSTRUCTIONS: &str = "Use call_tool_read for read-only operations, call_tool_write for \
    modifications, call_tool_destructive for deletions. Intent must match tool variant.";

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
enum DetailLevel {
    Full,
    Compact,
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
    limit_default: u32,
) -> Result<RetrievedTools, Refusal> {
    let parameters = Parameters::parse(arguments, &RETRIEVE_TOOLS)?;
    let query = parameters.required_text("query", "a string that says what you want to do")?;
    let limit = parameters.number("limit", 1..=limits::SEARCH_LIMIT_MAX)?;
    let limit = limit.map_or(limit_default as usize, |limit| usize::try_from(limit).unwrap_or(1));
    let detail = match parameters.choice("detail", &["full", "compact"])? {
        Some("compact") => DetailLevel::Compact,
        _ => DetailLevel::Full,
    };
    let filter = ToolFilter {
        read_only_only: parameters.flag("read_only_only")?,
        exclude_destructive: parameters.flag("exclude_destructive")?,
        exclude_open_world: parameters.flag("exclude_open_world")?,
    };
    let with_locked = parameters.flag("include_disabled")?;
    let hits = catalog.search(caller, &query, limit, filter);
    let tools: Vec<String> = hits.iter().map(|hit| entry(hit, detail)).collect();
    let mut answer = ObjectMembers::default();
    answer.set("tools", format!("[{}]", tools.join(",")));
    answer.set("query", quote(&query));
    answer.set("total", tools.len().to_string());
    answer.set("usage_instructions", quote(USAGE_INSTRUCTIONS));
    let locked = |most| catalog.search_locked(caller, &query, most, filter);
    if with_locked {
        show_locked(&mut answer, &locked(limit.min(limits::LOCKED_SHOWN_MAX)));
    } else if tools.is_empty() {
        // Counted only here, so that a search with hits costs nothing more.
        let count = locked(usize::MAX).len();
        if count > 0 {
            answer.set("notice", quote(&notice(count)));
        }
    }
    let document = reply::document(&answer.write_text());
    Ok(RetrievedTools { document, with_locked })
}

/// Adds the matching locked tools and, once for each reason, who can lift the lock.
fn show_locked(answer: &mut ObjectMembers<'_>, locked: &[LockedHit<'_>]) {
    let entries: Vec<String> = locked.iter().map(locked_entry).collect();
    answer.set("disabled", format!("[{}]", entries.join(",")));
    let present: BTreeSet<LockStatus> = locked.iter().map(|hit| hit.status).collect();
    if !present.is_empty() {
        let mut remediation = ObjectMembers::default();
        for status in present {
            remediation.set(status.as_str(), quote(status.remediation()));
        }
        answer.set("remediation", remediation.write_text());
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
    entry.set("status", quote(hit.status.as_str()));
    entry.write_text()
}

fn notice(count: usize) -> String {
    format!(
        "{count} relevant tools exist but are locked; retry with include_disabled:true for details \
         and remediation."
    )
}

/// Formats one result; the server's own text is copied, not parsed and written again.
fn entry(hit: &Hit<'_>, detail: DetailLevel) -> String {
    let tool = hit.tool;
    let mut entry = ObjectMembers::default();
    entry.set("name", full_name(&hit.server.name, tool));
    match detail {
        DetailLevel::Full => {
            entry.set("description", tool.description_json().unwrap_or("\"\""));
            entry.set("inputSchema", tool.input_schema_json().unwrap_or("{}"));
        }
        DetailLevel::Compact => {
            entry.set("description", quote(&signature::first_sentence(&tool.description())));
            entry.set("signature", quote(&signature::of(tool.input_schema_json())));
        }
    }
    entry.set("score", format!("{:.2}", hit.score));
    if detail == DetailLevel::Full {
        // A compact result omits what the name already says.
        entry.set("server", quote(&hit.server.name));
    }
    if let Some(annotations) = tool.annotations_json() {
        entry.set("annotations", annotations);
    }
    entry.set("call_with", quote(tool.hints.class().variant()));
    entry.write_text()
}

fn full_name(server: &str, tool: &Tool) -> String {
    quote(&format!("{server}:{}", tool.name))
}
