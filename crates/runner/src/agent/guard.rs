//! Checks `options` when the program's own tools are disabled. Only options known not to re-enable
//! them are allowed: new versions bring new flags, and a list of harmful ones would always be
//! outdated.

use std::path::Path;

use serde_json::Value;
use workflow::ProgramRules;

use crate::agent::error::AgentError;
use crate::agent::launch::LaunchMode;
use crate::agent::program::Provider;
use crate::agent::request::AgentRequest;

/// Checks the rules of every mode.
pub(super) fn check(provider: Provider, request: &AgentRequest) -> Result<(), AgentError> {
    for (name, value) in &request.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(AgentError::BadOption(format!(
                "options.env: {name:?} is not a valid environment variable"
            )));
        }
        if name.starts_with("COUNTERSIGN_") {
            let words =
                format!("options.env: {name} is reserved: agents get no COUNTERSIGN_ variables");
            return Err(AgentError::BadOption(words));
        }
    }
    if request.args.iter().any(|arg| arg.contains('\0')) {
        return Err(AgentError::BadOption(
            "options.args: an argument contains a NUL character".to_owned(),
        ));
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
    let rules = ProgramRules::of(provider.into());
    let mut faults = args_faults(rules, &request.args);
    faults.extend(
        request
            .env
            .iter()
            .filter(|(name, _)| rules.governs(name))
            .map(|(name, _)| format!("options.env: {name} affects the program's own tools")),
    );
    for key in request.config.iter().filter_map(Value::as_object).flat_map(|config| config.keys()) {
        if !rules.config.contains(&key.as_str()) {
            faults.push(format!("options.config: {key} is not known to be safe under isolation"));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(AgentError::LoosensIsolation { provider, faults }) }
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

fn args_faults(rules: &ProgramRules, args: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let (flag, value) = match arg.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag, Some(value)),
            Some(_) | None => (arg.as_str(), None),
        };
        if is_config_flag(rules, flag) {
            let setting = value.or_else(|| args.next().map(String::as_str)).unwrap_or_default();
            let key = setting.split(['.', '=']).next().unwrap_or_default().trim();
            if !rules.config.contains(&key) {
                faults.push(format!(
                    "options.args: {flag} {key} is not known to be safe under isolation"
                ));
            }
        } else if rules.valued.contains(&flag) {
            if value.is_none() && args.next().is_none_or(|value| value.starts_with('-')) {
                faults.push(format!("options.args: {flag} has no value"));
            }
        } else if value.is_some() || !rules.switches.contains(&flag) {
            faults.push(format!("options.args: {flag} is not known to be safe under isolation"));
        }
    }
    faults
}

/// Codex also takes settings on its command line; the same list applies to them.
fn is_config_flag(rules: &ProgramRules, flag: &str) -> bool {
    matches!(flag, "-c" | "--config") && rules.valued.contains(&"--local-provider")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{claude, codex, gemini, opencode};

    #[test]
    fn only_flags_that_are_known_to_be_harmless_pass() {
        for (provider, args, faults) in [
            (Provider::Claude, "--model opus --max-turns=3 --verbose", 0),
            (Provider::Claude, "--tools default", 2),
            (Provider::Claude, "--tools=default", 1),
            (Provider::Claude, "--allowed-tools Bash", 2),
            (Provider::Claude, "--dangerously-skip-permissions", 1),
            (Provider::Claude, "--settings {}", 2),
            (Provider::Claude, "--plugin-dir=x --mcp-config=y", 2),
            (Provider::Claude, "--verbose=true", 1),
            (Provider::Claude, "--model --tools", 1),
            (Provider::Claude, "--model", 1),
            (Provider::Claude, "do this", 2),
            (Provider::Gemini, "-m flash --debug", 0),
            (Provider::Gemini, "--yolo", 1),
            (Provider::Gemini, "-y", 1),
            (Provider::Gemini, "-dy", 1),
            (Provider::Gemini, "--allowedMcpServerNames=evil", 1),
            (Provider::Gemini, "--policy=x --admin-policy=y -e", 3),
            (Provider::Codex, "-m gpt -c model_reasoning_effort=high", 0),
            (Provider::Codex, "--config=model_provider=x", 0),
            (Provider::Codex, "-c features.shell_tool=true", 1),
            (Provider::Codex, "-c mcp_servers.evil.command=sh", 1),
            (Provider::Codex, "-c", 1),
            (Provider::Codex, "-cfeatures.shell_tool=true", 1),
            (Provider::Codex, "--enable=shell_tool", 1),
            (Provider::Codex, "-s", 1),
            (Provider::Codex, "--dangerously-bypass-approvals-and-sandbox", 1),
            (Provider::OpenCode, "-m a/b --variant high", 0),
            (Provider::OpenCode, "-c model", 2),
            (Provider::OpenCode, "--agent=build", 1),
            (Provider::OpenCode, "--auto", 1),
            (Provider::OpenCode, "--no-pure", 1),
        ] {
            let words: Vec<String> = args.split(' ').map(str::to_owned).collect();
            let found = args_faults(ProgramRules::of(provider.into()), &words);
            assert_eq!(found.len(), faults, "{provider:?} {args}: {found:?}");
        }
    }

    #[test]
    fn variables_that_steer_the_program_are_refused() {
        for (provider, name, refused) in [
            (Provider::Claude, "ANTHROPIC_BASE_URL", false),
            (Provider::Claude, "CLAUDE_CODE_USE_BEDROCK", false),
            (Provider::Claude, "CLAUDE_CODE_SIMPLE", true),
            (Provider::Claude, "CLAUDE_CODE_DISABLE_ATTACHMENTS", true),
            (Provider::Claude, "NODE_OPTIONS", true),
            (Provider::Gemini, "GEMINI_API_KEY", false),
            (Provider::Gemini, "GEMINI_CLI_HOME", true),
            (Provider::Gemini, "GEMINI_CLI_SYSTEM_SETTINGS_PATH", true),
            (Provider::Codex, "OPENAI_API_KEY", false),
            (Provider::Codex, "CODEX_HOME", false),
            (Provider::Codex, "CODEX_SANDBOX", true),
            (Provider::OpenCode, "OPENCODE_API_KEY", false),
            (Provider::OpenCode, "OPENCODE_PERMISSION", true),
            (Provider::OpenCode, "OPENCODE_CONFIG_CONTENT", true),
            (Provider::OpenCode, "XDG_CONFIG_HOME", true),
            (Provider::OpenCode, "LD_PRELOAD", true),
        ] {
            let rules = ProgramRules::of(provider.into());
            assert_eq!(rules.governs(name), refused, "{provider:?} {name}");
        }
    }

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
                assert!(rules.owned_flags.contains(flag), "{provider:?} {flag}");
                assert!(!rules.switches.contains(flag), "{provider:?} {flag}");
                assert!(!rules.valued.contains(flag), "{provider:?} {flag}");
            }
        }
    }
}
