//! The details of a server that only the operator sees. Values of variables and headers may be
//! secret, so only their names are shown.

use std::sync::Arc;

use domain::Catalog;
use domain::catalog::{Server, UnknownToolName};
use domain::config::{self, ConfigTemplate, ServerOrigin, shown_args};
use domain::trust::ItemKind;
use gateway::front::discovery::ServerOutline;
use gateway::spec::{ServerEndpoint, ServerSpec};
use touch::targets::UnfitTargetRule;

use crate::Admin;
use crate::view::{ServerEntry, ServerWarning, TokenLoginEntry};

/// Returns the whole entry of a server: the part that agents see, and the operator's part.
pub(super) async fn whole(
    admin: &Admin,
    catalog: &Arc<Catalog>,
    outline: ServerOutline,
) -> ServerEntry {
    let mut entry = outlined(outline);
    let Some(server) = catalog.server(&entry.name) else { return entry };
    entry.error = entry.error.and_then(|_| server.unavailable_in_full());
    entry.quarantined = server.rules.quarantined;
    entry.disabled = server.rules.disabled;
    // A store that cannot be read must not hide the servers.
    if let Ok(items) = admin.gateway.items(&entry.name).await {
        let waiting = || items.iter().filter(|item| item.listed && item.pending.is_some());
        entry.pending = Some(waiting().count());
        let has_instructions = waiting().any(|item| item.kind == ItemKind::Instructions.as_str());
        entry.instructions_pending = has_instructions.then_some(true);
        entry.warned = Some(admin.warned.count(catalog, &entry.name, items).await);
    }
    if let Some(spec) = admin.gateway.server_spec(&entry.name) {
        reach(&spec, &mut entry);
    }
    let logins = admin.gateway.token_logins(&entry.name).await;
    entry.logins = logins.map(|logins| logins.into_iter().map(TokenLoginEntry::from).collect());
    entry.warnings = warnings(server);
    entry
}

fn outlined(outline: ServerOutline) -> ServerEntry {
    let tools = outline
        .tools
        .map(|tools| tools.into_iter().map(|(status, count)| (status.to_owned(), count)).collect());
    ServerEntry {
        name: outline.name,
        state: outline.state.to_owned(),
        transport: outline.transport.to_owned(),
        tool_count: outline.tool_count,
        error: outline.error,
        tools,
        ..ServerEntry::default()
    }
}

fn reach(spec: &ServerSpec, entry: &mut ServerEntry) {
    let origin = match spec.trust.origin {
        ServerOrigin::Own => "own",
        ServerOrigin::Found => "found",
        ServerOrigin::Added => "added",
    };
    entry.origin = Some(origin.to_owned());
    match &spec.endpoint {
        ServerEndpoint::Stdio(command) => {
            entry.command = Some(command.command.clone());
            entry.args = Some(shown_args(&command.args));
            entry.env = Some(names(&command.env));
            entry.inherit_env = command.inherit_env.then_some(true);
            entry.cwd = command.cwd.as_ref().map(|cwd| cwd.display().to_string());
        }
        ServerEndpoint::Remote(remote) => {
            entry.url = Some(shown_url(remote.url.text()));
            entry.headers = Some(names(&remote.headers));
        }
        ServerEndpoint::Plugin(plugin) => {
            entry.command = Some(plugin.program.display().to_string())
        }
        ServerEndpoint::WithoutSecrets(_) | ServerEndpoint::Embedded(_) => {}
    }
}

fn names(values: &[(String, ConfigTemplate)]) -> Vec<String> {
    values.iter().map(|(name, _)| name.clone()).collect()
}

/// Removes the parts of a URL that people put keys into: the user, the query, and tokens in the
/// path.
fn shown_url(url: &str) -> String {
    let url = &*config::shown_url(url);
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

fn warnings(server: &Server) -> Vec<ServerWarning> {
    let warning = |misnamed: UnknownToolName| ServerWarning {
        kind: "unknown_tool".to_owned(),
        text: misnamed.to_string(),
        tool: misnamed.name,
        near: misnamed.near,
    };
    let unfit = |rule: &UnfitTargetRule| ServerWarning {
        kind: "unfit_target_rule".to_owned(),
        text: rule.to_string(),
        tool: rule.tools.clone(),
        near: rule.near.clone(),
    };
    let misnamed = server.misnamed().into_iter().map(warning);
    misnamed.chain(server.unfit_targets().iter().map(unfit)).collect()
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
