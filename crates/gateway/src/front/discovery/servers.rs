//! `upstream_servers`: the servers behind the gate, and whether each can be used now. REST and CLI
//! show the same entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::caller::TokenSurface;
use domain::catalog::{Catalog, Server};
use domain::policy::{Lock, Obstacle};
use domain::tool::Tool;
use domain::{Caller, Code, Refusal};
use mcp::message::Raw;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use text::near;

use crate::front::discovery::parameters::{OwnTool, Parameters};
use crate::front::reply;

static UPSTREAM_SERVERS: OwnTool = OwnTool {
    parameters: &["operation", "name"],
    example: r#"{"operation":"get","name":"server"}"#,
};

pub(super) fn answer(
    catalog: &Catalog,
    caller: &Caller,
    arguments: &RawValue,
) -> Result<Raw, Refusal> {
    const NAME: &str = "the name of a server, as a string";
    let parameters = Parameters::parse(arguments, &UPSTREAM_SERVERS)?;
    let operation = parameters.choice("operation", &["list", "get"]).map_err(only_persons)?;
    let name = parameters.text("name", NAME)?;
    let found = match (operation, name) {
        (Some("get") | None, Some(name)) => vec![server(catalog, caller, &name)?],
        (Some("get"), None) => {
            let message = "name is required for operation 'get'".to_owned();
            return Err(Refusal { message, ..parameters.missing("name", NAME) });
        }
        (_, _) => servers(catalog, caller),
    };
    Ok(reply::document(&json!({"servers": found}).to_string()))
}

/// Adds that agents cannot change servers, which is what another operation would do.
fn only_persons(refusal: Refusal) -> Refusal {
    let message = format!(
        "{}; only a person can change servers, on the page, with the CLI or the REST API",
        refusal.message
    );
    Refusal { message, ..refusal }
}

/// A server as shown to callers that may see it.
#[derive(Serialize)]
pub struct ServerOutline {
    pub name: String,
    pub state: &'static str,
    pub transport: &'static str,
    pub tool_count: usize,
    /// The reason the server cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Counts by status; absent if all tools can be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<BTreeMap<&'static str, usize>>,
}

/// Returns every server that the caller may see.
pub fn servers(catalog: &Catalog, caller: &Caller) -> Vec<ServerOutline> {
    let visible = catalog.servers().filter(|server| caller.sees(&server.name));
    visible.map(|server| outline(server, caller)).collect()
}

/// Returns one server, if the caller may see it.
pub fn server(catalog: &Catalog, caller: &Caller, name: &str) -> Result<ServerOutline, Refusal> {
    let found = catalog.server(name).filter(|server| caller.sees(&server.name));
    found.map(|server| outline(server, caller)).ok_or_else(|| no_such_server(catalog, caller, name))
}

pub(crate) fn no_such_server(catalog: &Catalog, caller: &Caller, name: &str) -> Refusal {
    let near = catalog.near_servers(caller, name);
    let hint = near::hint(&near);
    Refusal::new(Code::NotFound, format!("server '{name}' not found{hint}"))
        .with(json!({"name": name, "near": near}))
}

fn outline(server: &Server, caller: &Caller) -> ServerOutline {
    let state = server.state_word();
    let counts = counts(server, caller);
    ServerOutline {
        name: server.name.to_string(),
        state,
        transport: server.transport,
        tool_count: seen(server, caller).count(),
        error: server.unavailable().filter(|_| is_out(state)).map(str::to_owned),
        tools: (counts.len() > 1).then_some(counts),
    }
}

/// Reports whether a state is one that a person must do something about.
fn is_out(state: &str) -> bool {
    matches!(state, "error" | "needs_login")
}

/// Counts the callable tools, and the others by reason.
fn counts(server: &Server, caller: &Caller) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::from([(Lock::Callable.as_str(), 0)]);
    for (tool, lock) in seen(server, caller) {
        let obstacle = Obstacle::of(caller, TokenSurface::Discovery, lock, tool.hints);
        let word = obstacle.map_or(Lock::Callable.as_str(), Obstacle::as_str);
        *counts.entry(word).or_insert(0) += 1;
    }
    counts
}

fn seen<'a>(server: &'a Server, caller: &'a Caller) -> impl Iterator<Item = (&'a Arc<Tool>, Lock)> {
    server.tools().filter(|(tool, _)| caller.sees_tool(&server.name, &tool.name))
}
