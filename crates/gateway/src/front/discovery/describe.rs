//! `describe_tool`: the full definitions of tools, under the names the gate uses for them. Each id
//! gets its own entry, so that one wrong name does not cost the others.

use domain::caller::TokenSurface;
use domain::catalog::Catalog;
use domain::policy::{self, Addressee, Obstacle};
use domain::tool::ToolName;
use domain::{Caller, Code, Refusal};
use mcp::message::Raw;
use mcp::object::{ObjectMembers, quote};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use suspect::UNSEEN;

use crate::front::discovery::parameters::{OwnTool, Parameters};
use crate::front::discovery::with_way_to_names;
use crate::front::reply::{self, RefusedAnswer};
use crate::limits;

static DESCRIBE_TOOL: OwnTool =
    OwnTool { parameters: &["tool_ids"], example: r#"{"tool_ids":["server:tool"]}"# };

/// Returns an entry for each id. If every id fails, the result is an error.
pub(super) fn describe(
    catalog: &Catalog,
    caller: &Caller,
    arguments: &RawValue,
) -> Result<Raw, RefusedAnswer> {
    let ids = ids(arguments)?;
    let mut entries = Vec::with_capacity(ids.len());
    let mut refusals = Vec::new();
    for id in &ids {
        match describe_one(catalog, caller, id) {
            Ok(definition) => entries.push(definition),
            Err(refusal) => {
                entries.push(failed(id, &refusal));
                refusals.push(refusal);
            }
        }
    }
    let result = reply::document(&format!(r#"{{"tools":[{}]}}"#, entries.join(",")));
    let all_failed = refusals.len() == ids.len();
    match refusals.into_iter().next().filter(|_| all_failed) {
        Some(refusal) => Err(RefusedAnswer::with_result(refusal, &result)),
        None => Ok(result),
    }
}

fn ids(arguments: &RawValue) -> Result<Vec<String>, Refusal> {
    const EXPECTED: &str = "a list of names from retrieve_tools, each as server:tool";
    let parameters = Parameters::parse(arguments, &DESCRIBE_TOOL)?;
    let ids = parameters.list("tool_ids", EXPECTED)?;
    let ids = ids.ok_or_else(|| parameters.missing("tool_ids", EXPECTED))?;
    if (1..=limits::DESCRIBE_MAX).contains(&ids.len()) {
        return Ok(ids);
    }
    let (max, count) = (limits::DESCRIBE_MAX, ids.len());
    let refusal = parameters.wrong("tool_ids", EXPECTED, &json!(count));
    let message = format!("tool_ids must list 1 to {max} names, got {count}");
    Err(Refusal { message, ..refusal }.with_member("min", 1.into()).with_member("max", max.into()))
}

fn describe_one(catalog: &Catalog, caller: &Caller, id: &str) -> Result<String, Refusal> {
    let name = ToolName::parse(id).map_err(with_way_to_names)?;
    let seen = |tool: &ToolName| caller.sees_tool(&tool.server, &tool.tool);
    let Some((server, tool)) = catalog.tool(&name).filter(|_| seen(&name)) else {
        return Err(policy::not_found(&name, &catalog.near(caller, &name), Addressee::Discovery));
    };
    // A tool that may not be called is not described either: its text may be the untrusted part.
    let lock = server.lock(&tool.name);
    match Obstacle::of(caller, TokenSurface::Discovery, lock, tool.hints) {
        None => {}
        Some(Obstacle::Locked(status)) => {
            return Err(policy::blocked(&name, status, Addressee::Discovery));
        }
        Some(obstacle @ Obstacle::NotPermitted) => {
            let advice = obstacle.remediation(Addressee::Discovery);
            let message = format!("Tool '{name}' is not permitted. {advice}");
            return Err(Refusal::new(Code::NotPermitted, message));
        }
    }
    if tool.is_for_apps {
        return Err(policy::not_for_models(&name));
    }
    let definition = ObjectMembers::parse(tool.definition());
    let mut described = ObjectMembers::default();
    described.set("name", quote(&format!("{}:{}", server.name, tool.name)));
    described.set("server", quote(&server.name));
    for (member, value) in definition.iter().flat_map(ObjectMembers::iter) {
        // Members outside the fingerprint were never approved.
        if !matches!(member, "name" | "server" | "call_with") && !UNSEEN.contains(&member) {
            described.set(member, value);
        }
    }
    described.set("call_with", quote(tool.hints.class().variant()));
    Ok(described.write_text())
}

/// Returns the entry of an id that has no definition to show.
fn failed(id: &str, refusal: &Refusal) -> String {
    let Value::Object(mut error) = refusal.to_json() else { return "{}".to_owned() };
    let mut entry = ObjectMembers::default();
    entry.set("name", quote(&id.chars().take(limits::SHOWN_ID_CHARS_MAX).collect::<String>()));
    entry.set("error", error.remove("error").unwrap_or_default().to_string());
    entry.write_text()
}
