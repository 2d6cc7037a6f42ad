//! The tools that a program offers its model, from its own announcement or from a request to the
//! model. Under isolation they are the gate's and no others.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::error::AgentError;
use crate::agent::launch::Launch;
use crate::agent::program::{Provider, SERVER_NAME};
use crate::agent::report::text;

/// Tools that cannot be removed and reach nothing: a placeholder of Claude's, the shape of its
/// answer, and readers of Codex's that query our own server.
const INERT: [&str; 5] = [
    "DeferredToolPlaceholder",
    "StructuredOutput",
    "list_mcp_resource_templates",
    "list_mcp_resources",
    "read_mcp_resource",
];

/// Compares the tools that an isolated program announces with ours, and ends the program if there
/// are others. Claude Code announces them just before its first request, which may be on its way by
/// then; the other programs announce none. The probe has compared them before, in a home that is not
/// the person's.
pub struct ToolCheck {
    provider: Provider,
    is_due: bool,
    stop: CancellationToken,
    foreign: Vec<String>,
}

impl ToolCheck {
    /// Starts a check of one run, which also ends when `cancel` is.
    pub fn new(provider: Provider, launch: &Launch, cancel: &CancellationToken) -> ToolCheck {
        let is_due = launch.isolated && provider == Provider::Claude;
        ToolCheck { provider, is_due, stop: cancel.child_token(), foreign: Vec::new() }
    }

    /// The token that ends the program.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Checks a line of the program's output.
    pub fn line(&mut self, line: &str) {
        if !self.is_due || !line.contains("\"init\"") {
            return;
        }
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        if event["type"] == "system" && event["subtype"] == "init" {
            self.is_due = false;
            self.foreign = announced(self.provider, &event);
            if !self.foreign.is_empty() {
                self.stop.cancel();
            }
        }
    }

    /// Returns the error of a program that announced other tools.
    pub fn end(self) -> Result<(), AgentError> {
        match self.foreign {
            none if none.is_empty() => Ok(()),
            tools => Err(AgentError::NotIsolated { provider: self.provider, tools }),
        }
    }
}

/// Returns the tools and servers in Claude Code's first event that are not ours.
fn announced(provider: Provider, event: &Value) -> Vec<String> {
    let tools = items(&event["tools"]).map(|tool| text(tool).to_owned());
    let mut found = foreign(provider, tools);
    let servers = items(&event["mcp_servers"]).map(|server| text(&server["name"]));
    let others = servers.filter(|name| *name != SERVER_NAME);
    found.extend(others.map(|name| format!("server {name}")));
    found
}

/// Returns the tools that are neither ours nor inert.
pub(super) fn foreign(provider: Provider, tools: impl Iterator<Item = String>) -> Vec<String> {
    let is_ours = |tool: &str| match provider {
        Provider::Codex => {
            ["mcp__awf_proxy.", "mcp__awf_proxy__"].iter().any(|it| tool.starts_with(it))
        }
        Provider::Claude | Provider::Gemini | Provider::OpenCode => provider.names_ours(tool),
    };
    let is_inert = |tool: &str| INERT.contains(&tool.trim_start_matches("functions."));
    tools.filter(|tool| !is_ours(tool) && !is_inert(tool)).collect()
}

/// Returns the tools in a request to a model; `None` if it is no request for an answer. One in a
/// namespace is `namespace.name`; one that the model's server runs itself is named by its type.
pub(super) fn in_request(path: &str, body: &Value) -> Option<Vec<String>> {
    let path = path.split('?').next().unwrap_or_default();
    let tools: Vec<String> = if path.ends_with("/messages") {
        items(&body["tools"]).map(|tool| name(tool, &tool["name"])).collect()
    } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
        items(&body["tools"]).flat_map(gemini_tools).collect()
    } else if path.ends_with("/responses") {
        let added = items(&body["input"]).filter(|item| item["type"] == "additional_tools");
        let added = added.flat_map(|item| items(&item["tools"]));
        items(&body["tools"]).chain(added).flat_map(response_tools).collect()
    } else if path.ends_with("/chat/completions") {
        items(&body["tools"]).map(|tool| name(tool, &tool["function"]["name"])).collect()
    } else {
        return None;
    };
    Some(tools)
}

fn gemini_tools(tool: &Value) -> Vec<String> {
    let members = tool.as_object().into_iter().flatten();
    let of = |(kind, value): (&String, &Value)| match kind.as_str() {
        "functionDeclarations" => items(value).map(|tool| text(&tool["name"]).to_owned()).collect(),
        // A tool of the model's server, such as a search.
        other => vec![other.to_owned()],
    };
    members.flat_map(of).collect()
}

fn response_tools(tool: &Value) -> Vec<String> {
    if tool["type"] != "namespace" {
        return vec![name(tool, &tool["name"])];
    }
    let namespace = text(&tool["name"]);
    items(&tool["tools"]).map(|tool| format!("{namespace}.{}", text(&tool["name"]))).collect()
}

fn name(tool: &Value, name: &Value) -> String {
    name.as_str().unwrap_or_else(|| text(&tool["type"])).to_owned()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_found_in_the_requests_of_each_api() {
        let namespace = json!({"type": "namespace", "name": "mcp__awf_proxy",
            "tools": [{"name": "Read"}, {"name": "Bash"}]});
        for (path, body, tools) in [
            (
                "/v1/messages?beta=true",
                json!({"tools": [{"name": "a"}, {"type": "web_search"}]}),
                Some(vec!["a", "web_search"]),
            ),
            ("/v1/messages", json!({"max_tokens": 1}), Some(vec![])),
            ("/v1/messages/count_tokens", json!({"tools": [{"name": "a"}]}), None),
            (
                "/v1beta/models/m:streamGenerateContent",
                json!({"tools": [{"functionDeclarations": [{"name": "a"}]}, {"googleSearch": {}}]}),
                Some(vec!["a", "googleSearch"]),
            ),
            (
                "/v1/responses",
                json!({"tools": [namespace, {"type": "web_search"}],
                    "input": [{"type": "additional_tools", "tools": [{"name": "exec"}]}]}),
                Some(vec!["mcp__awf_proxy.Read", "mcp__awf_proxy.Bash", "web_search", "exec"]),
            ),
            (
                "/v1/chat/completions",
                json!({"tools": [{"function": {"name": "a"}}]}),
                Some(vec!["a"]),
            ),
            ("/api/hello", json!(null), None),
        ] {
            let found = in_request(path, &body);
            let tools = tools.map(|tools| tools.into_iter().map(str::to_owned).collect());
            assert_eq!(found, tools, "{path}");
        }
    }

    #[test]
    fn only_our_tools_and_inert_ones_are_not_foreign() {
        for (provider, tool, is_foreign) in [
            (Provider::Claude, "mcp__awf-proxy__Read", false),
            (Provider::Claude, "mcp__awf-proxy-2__Read", true),
            (Provider::Claude, "DeferredToolPlaceholder", false),
            (Provider::Claude, "Bash", true),
            (Provider::Gemini, "mcp_awf-proxy_Read", false),
            (Provider::Gemini, "Read", false),
            (Provider::Gemini, "read_file", true),
            (Provider::Gemini, "googleSearch", true),
            (Provider::Codex, "mcp__awf_proxy.Read", false),
            (Provider::Codex, "functions.list_mcp_resources", false),
            (Provider::Codex, "apply_patch", true),
            (Provider::OpenCode, "awf-proxy_Read", false),
            (Provider::OpenCode, "bash", true),
            (Provider::OpenCode, "", true),
        ] {
            let found = foreign(provider, std::iter::once(tool.to_owned()));
            assert_eq!(!found.is_empty(), is_foreign, "{provider:?} {tool}");
        }
    }

    #[test]
    fn an_announcement_names_every_foreign_tool_and_server() {
        let event = json!({"type": "system", "subtype": "init",
            "tools": ["mcp__awf-proxy__Read", "Bash", "mcp__evil__Run"],
            "mcp_servers": [{"name": "awf-proxy", "status": "connected"}, {"name": "evil"}]});
        assert_eq!(announced(Provider::Claude, &event), ["Bash", "mcp__evil__Run", "server evil"]);
        let plain = json!({"type": "system", "subtype": "init", "model": "m"});
        assert!(announced(Provider::Claude, &plain).is_empty());
    }
}
