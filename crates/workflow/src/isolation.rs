//! Whether an agent can be left with no tools but ours, and what in a step would undo that.

use super::fault::Report;
use super::plan::{Agent, AgentPlaces, Demand, Provider};
use super::{Known, Template};
use domain::code::Code;

/// What is said where the agent keeps its own tools.
pub fn coexistence(provider: Provider) -> String {
    format!(
        "mcp_proxy on provider={} runs in coexistence mode. Built-in tools cannot be disabled and \
         may bypass the proxy. Use 'claude' or 'openai_compatible' for guaranteed MCP-only \
         isolation.",
        provider.name()
    )
}

/// Arguments that take tools away, allow them, or say where settings come from.
fn flags(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Claude => &[
            "--add-dir",
            "--agents",
            "--allow-dangerously-skip-permissions",
            "--allowed-tools",
            "--allowedTools",
            "--chrome",
            "--dangerously-skip-permissions",
            "--disallowed-tools",
            "--disallowedTools",
            "--ide",
            "--mcp-config",
            "--permission-mode",
            "--permission-prompt-tool",
            "--plugin-dir",
            "--setting-sources",
            "--settings",
            "--strict-mcp-config",
            "--tools",
        ],
        Provider::Gemini => &[
            "--admin-policy",
            "--allowed-mcp-server-names",
            "--allowed-tools",
            "--approval-mode",
            "--extensions",
            "--policy",
            "--skip-trust",
            "--yolo",
            "-e",
            "-y",
        ],
        Provider::Codex => &[
            "--ask-for-approval",
            "--config",
            "--dangerously-bypass-approvals-and-sandbox",
            "--disable",
            "--enable",
            "--ephemeral",
            "--full-auto",
            "--ignore-rules",
            "--ignore-user-config",
            "--profile",
            "--sandbox",
            "--search",
            "--yolo",
            "-a",
            "-c",
            "-p",
            "-s",
        ],
        Provider::OpenCode => &["--agent", "--attach", "--dangerously-skip-permissions", "--pure"],
        Provider::OpenAiCompatible => &[],
    }
}

/// Variables that do the same; one that ends with `*` is the beginning of several.
fn variables(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Claude => &["CLAUDE_CONFIG_DIR", "CLAUDE_CODE_*"],
        Provider::Gemini => &["GEMINI_CLI_*", "GEMINI_SANDBOX"],
        Provider::Codex => &["CODEX_*"],
        Provider::OpenCode => &["OPENCODE_*", "XDG_CONFIG_HOME"],
        Provider::OpenAiCompatible => &[],
    }
}

/// What also changes which program runs, or what runs inside of it.
const LOADERS: [&str; 7] =
    ["HOME", "PATH", "NODE_OPTIONS", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_*", "BUN_*"];

pub(super) fn check(agent: &Agent, places: &AgentPlaces, known: &Known, report: &mut Report) {
    let command = agent.options.command.as_deref();
    let coexists = known.coexistence(agent.provider, command);
    let coexists = coexists.filter(|_| agent.proxy.is_isolating());
    match (agent.isolation, coexists) {
        (Demand::Preferred, None) => {}
        (Demand::Preferred, Some(_)) => {
            let message = coexistence(agent.provider);
            report.warn(&places.provider, Code::ProxyUnsupportedProvider, message);
        }
        (Demand::Required, Some(reason)) => {
            let message = format!("{} ({reason})", coexistence(agent.provider));
            report.error(&places.provider, Code::ProxyUnsupportedProvider, message);
            undone(agent, places, report);
        }
        (Demand::Required, None) => undone(agent, places, report),
    }
}

/// What in a step that requires isolation would undo it.
fn undone(agent: &Agent, places: &AgentPlaces, report: &mut Report) {
    let code = Code::WorkflowIsolation;
    if !agent.proxy.is_isolating() {
        let message = "isolation needs mcp_proxy with enable: true and intercept_builtins: true";
        report.error(&places.isolation, code, message);
    }
    for (arg, place) in agent.options.args.iter().zip(&places.args) {
        if let Some(flag) = touched_flag(agent.provider, arg) {
            let message = format!("{flag} is set by the isolation that the step requires");
            report.error(place, code, message);
        }
    }
    for ((name, _), place) in agent.options.env.iter().zip(&places.env) {
        if is_touched_variable(agent.provider, name) {
            let message = format!("{name} belongs to the isolation that the step requires");
            report.error(place, code, message);
        }
    }
}

/// The flag that an argument is; one that begins with a value may become any.
fn touched_flag(provider: Provider, arg: &Template) -> Option<String> {
    let text = arg.as_written();
    if text.starts_with("{{") {
        return Some(format!("{text} can become a flag, and flags are what"));
    }
    let name = text.split('=').next().unwrap_or_default();
    let is_touched = |flag: &&str| {
        // A short one may have its value behind it without a space: `-sdanger-full-access`.
        let is_short = flag.len() == 2 && !text.starts_with("--") && text.starts_with(*flag);
        name == *flag || is_short
    };
    flags(provider).iter().find(|flag| is_touched(flag)).map(|flag| (*flag).to_owned())
}

fn is_touched_variable(provider: Provider, name: &str) -> bool {
    variables(provider).iter().chain(&LOADERS).any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    })
}
