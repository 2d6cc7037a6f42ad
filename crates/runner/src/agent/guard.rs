//! Checks a step's options as it starts, by the rules that a workflow is checked by when it is read
//! (`workflow::ProgramOptions`).

use std::path::Path;

use serde_json::Value;
use workflow::{OptionFault, OptionPart, ProgramOptions, ProgramRules};

use crate::agent::error::AgentError;
use crate::agent::launch::LaunchMode;
use crate::agent::program::Provider;
use crate::agent::request::AgentRequest;

/// Checks the rules of every mode.
pub(super) fn check(provider: Provider, request: &AgentRequest) -> Result<(), AgentError> {
    if let Some(fault) = options(provider, request).unusable().first() {
        return Err(AgentError::BadOption(told(request, fault)));
    }
    match (&request.config, provider) {
        (None, _) | (Some(Value::Object(_)), Provider::Codex | Provider::OpenCode) => Ok(()),
        (Some(_), Provider::Codex | Provider::OpenCode) => {
            Err(AgentError::BadOption("options.config must be an object".to_owned()))
        }
        (Some(_), Provider::Claude | Provider::Gemini) => {
            let words = format!(
                "options.config is supported by codex and opencode, not by {}",
                provider.as_str()
            );
            Err(AgentError::BadOption(words))
        }
    }
}

/// Checks the rules of isolation, and reports every fault at once.
pub(super) fn check_isolated(provider: Provider, request: &AgentRequest) -> Result<(), AgentError> {
    let faults = options(provider, request).loosening();
    if faults.is_empty() {
        return Ok(());
    }
    let faults = faults.iter().map(|fault| told(request, fault)).collect();
    Err(AgentError::LoosensIsolation { provider, faults })
}

fn options(provider: Provider, request: &AgentRequest) -> ProgramOptions<'_> {
    let config = request.config.as_ref().and_then(Value::as_object);
    let model = request.model.as_deref();
    ProgramOptions::filled(provider.into(), model, &request.args, &request.env, config)
}

fn told(request: &AgentRequest, fault: &OptionFault) -> String {
    let option = match fault.part {
        OptionPart::Model => "model".to_owned(),
        OptionPart::Arg(_) => "args".to_owned(),
        OptionPart::Variable(index) | OptionPart::Env(index) => {
            format!("env.{}", request.env[index].0)
        }
        OptionPart::Config(_) => "config".to_owned(),
    };
    format!("options.{option}: {}", fault.message)
}

/// Returns the request with the files in its arguments resolved against the root: an isolated
/// program starts in another folder.
pub(super) fn rooted(provider: Provider, request: &AgentRequest, mode: LaunchMode) -> AgentRequest {
    let mut request = request.clone();
    if mode == LaunchMode::Isolated {
        let rules = ProgramRules::of(provider.into());
        let takes_paths = |flag: &str| rules.paths.contains(&flag);
        let mut is_path = false;
        for arg in &mut request.args {
            match arg.split_once('=') {
                _ if is_path => *arg = absolute(&request.dir, arg),
                Some((flag, files)) if takes_paths(flag) => {
                    *arg = format!("{flag}={}", absolute(&request.dir, files));
                }
                Some(_) | None => {}
            }
            is_path = !is_path && takes_paths(arg);
        }
    }
    request
}

fn absolute(root: &Path, files: &str) -> String {
    let files = files.split(',').map(|file| root.join(file.trim()).display().to_string());
    files.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{claude, codex, gemini, opencode};

    #[test]
    fn flags_that_isolation_sets_cannot_be_passed_by_users() {
        for (provider, isolating) in [
            (Provider::Claude, claude::ISOLATING),
            (Provider::Gemini, gemini::ISOLATING),
            (Provider::Codex, codex::ISOLATING),
            (Provider::OpenCode, opencode::ISOLATING),
        ] {
            let rules = ProgramRules::of(provider.into());
            for flag in isolating {
                assert!(!rules.switches.contains(flag), "{provider:?} {flag}");
                assert!(!rules.valued.contains(flag), "{provider:?} {flag}");
            }
        }
    }
}
