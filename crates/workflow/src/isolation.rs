//! Checks whether an agent can be limited to our tools, and which parts of a step would undo that.

mod options;
mod rules;
mod settings;

pub use options::{OptionFault, OptionPart, ProgramOptions};
pub use rules::ProgramRules;

use super::fault::Report;
use super::plan::{AgentState, Demand, Provider};
use super::{AgentSupport, Inventory};
use domain::code::Code;

/// Returns the message for an agent that keeps its own tools, for this reason.
pub fn coexistence(provider: Provider, reason: &str) -> String {
    let others = [Provider::Claude, Provider::OpenAiCompatible].map(Provider::name);
    let others = others.into_iter().filter(|other| *other != provider.name());
    let others: Vec<String> = others.map(|other| format!("'{other}'")).collect();
    format!(
        "mcp_proxy on provider={} runs in coexistence mode. Built-in tools cannot be disabled and \
         may bypass the proxy. Use {} for guaranteed MCP-only isolation. Reason: {reason}.",
        provider.name(),
        others.join(" or ")
    )
}

pub(super) fn check(agent: &AgentState, known: &Inventory, report: &mut Report) {
    let places = &agent.places;
    let command = agent.options.command.as_deref();
    if let Some(AgentSupport::Unusable(reason)) = known.agent(agent.provider, command) {
        let place = places.options.get("command").unwrap_or(&places.provider);
        report.error(place, Code::WorkflowNoAgent, reason.as_str());
    }
    let coexists = known.coexistence(agent.provider, command);
    let coexists = coexists.filter(|_| agent.proxy.is_isolating());
    match (agent.isolation, coexists) {
        (Demand::Preferred, None) => {}
        (Demand::Preferred, Some(reason)) => {
            let message = coexistence(agent.provider, reason);
            report.warn(&places.provider, Code::ProxyUnsupportedProvider, message);
        }
        (Demand::Required, Some(reason)) => {
            let message = coexistence(agent.provider, reason);
            report.error(&places.provider, Code::ProxyUnsupportedProvider, message);
        }
        (Demand::Required, None) if !agent.proxy.is_isolating() => {
            let message =
                "isolation requires mcp_proxy with enable: true and intercept_builtins: true";
            report.error(&places.isolation, Code::WorkflowIsolation, message);
        }
        (Demand::Required, None) => {}
    }
    let options = ProgramOptions::written(agent.provider, &agent.options);
    for fault in options.unusable() {
        let code = match fault.part {
            OptionPart::Variable(_) => Code::WorkflowBadName,
            OptionPart::Model | OptionPart::Arg(_) | OptionPart::Env(_) | OptionPart::Config(_) => {
                Code::WorkflowBadValue
            }
        };
        report.error(places.of(fault.part), code, fault.message);
    }
    // A program that keeps its own tools can be given any option.
    let is_isolated = agent.isolation == Demand::Required || coexists.is_none();
    if is_isolated && agent.proxy.is_isolating() {
        for fault in options.loosening() {
            report.error(places.of(fault.part), Code::WorkflowIsolation, fault.message);
        }
    }
}
