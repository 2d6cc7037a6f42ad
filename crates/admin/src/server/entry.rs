//! What only the operator sees of a server. Values of variables and headers may be secret: their
//! names are all that is shown.

use domain::catalog::{Misnamed, Server};
use domain::config::{Origin, Template};
use domain::trust::ItemKind;
use gateway::spec::{Endpoint, ServerSpec};
use serde_json::{Value, json};

use crate::Admin;

pub(super) async fn complete(admin: &Admin, entry: &mut Value) {
    let name = entry["name"].as_str().unwrap_or_default().to_owned();
    let catalog = admin.gateway.catalog();
    let Some(server) = catalog.server(&name) else { return };
    entry["quarantined"] = server.rules.quarantined.into();
    entry["disabled"] = server.rules.disabled.into();
    // A store that cannot be read must not hide the servers.
    entry["pending"] = Value::Null;
    if let Ok(items) = admin.gateway.items(&name).await {
        let waiting = || items.iter().filter(|item| item.listed && item.pending.is_some());
        entry["pending"] = waiting().count().into();
        if waiting().any(|item| item.kind == ItemKind::Instructions.as_str()) {
            entry["instructions_pending"] = true.into();
        }
    }
    if let Some(spec) = admin.gateway.server_spec(&name) {
        reach(&spec, entry);
    }
    let warnings = warnings(server);
    if !warnings.is_empty() {
        entry["warnings"] = warnings.into();
    }
}

fn reach(spec: &ServerSpec, entry: &mut Value) {
    entry["origin"] = match spec.trust.origin {
        Origin::Own => "own",
        Origin::Found => "found",
        Origin::Added => "added",
    }
    .into();
    match &spec.endpoint {
        Endpoint::Stdio(command) => {
            entry["command"] = command.command.as_str().into();
            entry["args"] = command.args.iter().map(Template::text).collect();
            entry["env"] = names(&command.env);
            if let Some(cwd) = &command.cwd {
                entry["cwd"] = json!(cwd);
            }
        }
        Endpoint::Http { url, headers } => {
            entry["url"] = shown_url(url.text()).into();
            entry["headers"] = names(headers);
        }
        Endpoint::Plugin(plugin) => entry["command"] = json!(plugin.program),
        Endpoint::Sse | Endpoint::Embedded(_) => {}
    }
}

fn names(values: &[(String, Template)]) -> Value {
    values.iter().map(|(name, _)| name.as_str()).collect()
}

/// Without what people put keys into: a user's part and the query.
fn shown_url(url: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, _)) => (url, "?…"),
        None => (url, ""),
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        return format!("{url}{query}");
    };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://…{}{query}", &rest[at..]),
        None => format!("{scheme}://{rest}{query}"),
    }
}

fn warnings(server: &Server) -> Vec<Value> {
    let warning = |misnamed: Misnamed| {
        let text = misnamed.to_string();
        json!({"kind": "unknown_tool", "text": text, "tool": misnamed.name, "near": misnamed.near})
    };
    server.misnamed().into_iter().map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_their_keys() {
        for (url, shown) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://a.example/mcp?key=1", "https://a.example/mcp?…"),
            ("https://me:pw@a.example/x@y", "https://…@a.example/x@y"),
            ("${env:URL}", "${env:URL}"),
        ] {
            assert_eq!(shown_url(url), shown);
        }
    }
}
