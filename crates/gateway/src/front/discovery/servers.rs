//! `upstream_servers`: what stands behind the gate, and whether it can be used now. REST and CLI
//! show the same entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::catalog::{Catalog, Server};
use domain::policy::Lock;
use domain::tool::Tool;
use domain::{Caller, Code, Refusal, near};
use mcp::message::Raw;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::front::discovery::parameters::parameters;
use crate::front::reply;

pub(super) fn answer(
    catalog: &Catalog,
    caller: &Caller,
    arguments: &RawValue,
) -> Result<Raw, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Parameters {
        #[serde(default)]
        operation: Option<String>,
        #[serde(default)]
        name: Option<String>,
    }
    let Parameters { operation, name } = parameters(arguments)?;
    let found = match (operation.as_deref(), name) {
        (Some("list") | None, None) => servers(catalog, caller),
        (Some("get") | None, Some(name)) => {
            json!({"servers": [server_entry(catalog, caller, &name)?]})
        }
        (Some("list"), Some(_)) => servers(catalog, caller),
        (Some("get"), None) => {
            return Err(Refusal::invalid_arguments("name is required for operation 'get'"));
        }
        (Some(other), _) => {
            return Err(Refusal::invalid_arguments(format!(
                "operation must be list or get, got '{other}'; servers are changed by a person, \
                 through the CLI or the REST API"
            ))
            .with(json!({"provided": other, "valid_values": ["list", "get"]})));
        }
    };
    Ok(reply::document(&found.to_string()))
}

/// `{"servers": […]}` with every server that the caller may see.
pub fn servers(catalog: &Catalog, caller: &Caller) -> Value {
    let visible = catalog.servers().filter(|server| caller.sees(&server.name));
    json!({"servers": visible.map(|server| entry(server, caller)).collect::<Vec<_>>()})
}

pub fn server_entry(catalog: &Catalog, caller: &Caller, name: &str) -> Result<Value, Refusal> {
    let found = catalog.server(name).filter(|server| caller.sees(&server.name));
    found.map(|server| entry(server, caller)).ok_or_else(|| no_such_server(catalog, caller, name))
}

pub(crate) fn no_such_server(catalog: &Catalog, caller: &Caller, name: &str) -> Refusal {
    let near = catalog.near_servers(caller, name);
    let hint = near::hint(&near);
    Refusal::new(Code::NotFound, format!("server '{name}' not found{hint}"))
        .with(json!({"name": name, "near": near}))
}

fn entry(server: &Server, caller: &Caller) -> Value {
    let mut entry = json!({
        "name": &*server.name,
        "state": server.state_word(),
        "transport": server.transport,
        "tool_count": seen(server, caller).count(),
    });
    if server.state_word() == "error" {
        entry["error"] = server.unavailable().into();
    }
    // A server whose tools can all be called gains no member.
    let counts = counts(server, caller);
    if counts.len() > 1 {
        entry["tools"] = json!(counts);
    }
    entry
}

/// How many tools can be called, and how many cannot for each reason.
fn counts(server: &Server, caller: &Caller) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::from([(Lock::Callable.as_str(), 0)]);
    for (_, lock) in seen(server, caller) {
        *counts.entry(lock.as_str()).or_insert(0) += 1;
    }
    counts
}

fn seen<'a>(server: &'a Server, caller: &'a Caller) -> impl Iterator<Item = (&'a Arc<Tool>, Lock)> {
    server.tools().filter(|(tool, _)| caller.sees_tool(&server.name, &tool.name))
}
