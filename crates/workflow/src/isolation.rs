//! Checks whether an agent can be limited to our tools, and which parts of a step would undo that.

mod rules;

pub use rules::ProgramRules;

use super::fault::Report;
use super::plan::{AgentPlaces, AgentState, Demand, Provider};
use super::{Inventory, Template};
use domain::code::Code;

/// Returns the message for an agent that keeps its own tools.
pub fn coexistence(provider: Provider) -> String {
    format!(
        "mcp_proxy on provider={} runs in coexistence mode. Built-in tools cannot be disabled and \
         may bypass the proxy. Use 'claude' or 'openai_compatible' for guaranteed MCP-only \
         isolation.",
        provider.name()
    )
}

pub(super) fn check(
    agent: &AgentState,
    places: &AgentPlaces,
    known: &Inventory,
    report: &mut Report,
) {
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

/// Reports the parts of a step that would undo the isolation it requires.
fn undone(agent: &AgentState, places: &AgentPlaces, report: &mut Report) {
    let code = Code::WorkflowIsolation;
    let rules = ProgramRules::of(agent.provider);
    if !agent.proxy.is_isolating() {
        let message = "isolation requires mcp_proxy with enable: true and intercept_builtins: true";
        report.error(&places.isolation, code, message);
    }
    for (arg, place) in agent.options.args.iter().zip(&places.args) {
        if let Some(flag) = touched_flag(rules, arg) {
            let message = format!("{flag} conflicts with the isolation that the step requires");
            report.error(place, code, message);
        }
    }
    for ((name, _), place) in agent.options.env.iter().zip(&places.env) {
        if rules.owns_variable(name) {
            let message = format!("{name} conflicts with the isolation that the step requires");
            report.error(place, code, message);
        }
    }
}

/// Returns the flag that an argument sets; an argument that begins with a value may become any
/// flag.
fn touched_flag(rules: &ProgramRules, arg: &Template) -> Option<String> {
    let text = arg.as_written();
    if text.starts_with("{{") {
        return Some(format!("{text} can become any flag, which"));
    }
    let name = text.split('=').next().unwrap_or_default();
    let is_touched = |flag: &&str| {
        // A short flag's value may follow without a space: `-sdanger-full-access`.
        let is_short = flag.len() == 2 && !text.starts_with("--") && text.starts_with(*flag);
        name == *flag || is_short
    };
    rules.owned_flags.iter().find(|flag| is_touched(flag)).map(|flag| (*flag).to_owned())
}
