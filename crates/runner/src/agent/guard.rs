//! What `options` may say where the program's own tools are taken away. Only what is known to leave
//! that alone is let through: new versions bring new flags, and a list of the harmful ones would
//! always be late.

use std::path::Path;

use serde_json::Value;

use super::launch::Mode;
use super::{AgentError, Provider, Request};

/// What each program may be told, by kind.
struct Allowed {
    /// Flags that stand alone.
    switches: &'static [&'static str],
    /// Flags with one value behind them.
    valued: &'static [&'static str],
    /// Those among them whose value names files, separated by commas.
    paths: &'static [&'static str],
    /// How the variables begin that steer the program itself.
    governed: &'static [&'static str],
    /// Those among them that steer something else.
    free: &'static [&'static str],
    /// First words of config paths.
    config: &'static [&'static str],
}

/// They put foreign code into the program.
const LOADERS: [&str; 7] = [
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "NODE_OPTIONS",
    "NODE_PATH",
    "BUN_OPTIONS",
];

const CLAUDE: Allowed = Allowed {
    switches: &[
        "--bare",
        "--debug",
        "--disable-slash-commands",
        "--exclude-dynamic-system-prompt-sections",
        "--include-partial-messages",
        "--no-chrome",
        "--no-session-persistence",
        "--restricted",
        "--safe-mode",
        "--verbose",
    ],
    valued: &[
        "--add-dir",
        "--append-system-prompt",
        "--autocompact",
        "--betas",
        "--effort",
        "--fallback-model",
        "--json-schema",
        "--max-budget-usd",
        "--max-turns",
        "--model",
        "--name",
        "--session-id",
        "--system-prompt",
        "--system-prompt-snapshot",
        "-n",
    ],
    paths: &["--add-dir", "--system-prompt-snapshot"],
    governed: &["CLAUDE", "MCP_TOOL_TIMEOUT", "ENABLE_TOOL_SEARCH"],
    free: &[
        "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
        "CLAUDE_CODE_CLIENT_CERT",
        "CLAUDE_CODE_CLIENT_KEY",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH",
        "CLAUDE_CODE_SUBAGENT_MODEL",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_FOUNDRY",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CONFIG_DIR",
    ],
    config: &[],
};

const GEMINI: Allowed = Allowed {
    switches: &["--debug", "--screen-reader", "-d"],
    valued: &["--include-directories", "--model", "--session-id", "-m"],
    paths: &["--include-directories"],
    governed: &["GEMINI_CLI_", "GEMINI_SANDBOX"],
    free: GEMINI_FREE,
    config: &[],
};

const CODEX: Allowed = Allowed {
    switches: &["--oss", "--strict-config"],
    valued: &["--color", "--image", "--local-provider", "--model", "--output-schema", "-i", "-m"],
    paths: &["--image", "--output-schema", "-i"],
    governed: &["CODEX_"],
    free: &["CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "CODEX_HOME"],
    config: &[
        "analytics",
        "chatgpt_base_url",
        "cli_auth_credentials_store",
        "forced_login_method",
        "hide_agent_reasoning",
        "model",
        "model_auto_compact_token_limit",
        "model_context_window",
        "model_provider",
        "model_providers",
        "model_reasoning_effort",
        "model_reasoning_summary",
        "model_supports_reasoning_summaries",
        "model_verbosity",
        "openai_base_url",
        "oss_provider",
        "personality",
        "preferred_auth_method",
        "service_tier",
        "show_raw_agent_reasoning",
    ],
};

const OPENCODE: Allowed = Allowed {
    switches: &["--print-logs", "--thinking"],
    valued: &["--log-level", "--model", "--title", "--variant", "-m"],
    paths: &[],
    governed: &["OPENCODE_", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"],
    free: OPENCODE_FREE,
    config: &[
        "$schema",
        "autoupdate",
        "compaction",
        "disabled_providers",
        "enabled_providers",
        "logLevel",
        "model",
        "provider",
        "share",
        "small_model",
        "snapshot",
        "username",
    ],
};

/// The person's own variables of Gemini that stay: logins and headers.
pub(super) const GEMINI_FREE: &[&str] =
    &["GEMINI_CLI_CUSTOM_HEADERS", "GEMINI_CLI_SURFACE", "GEMINI_CLI_USE_COMPUTE_ADC"];

/// The person's own variables of OpenCode that stay: logins and logs.
pub(super) const OPENCODE_FREE: &[&str] = &[
    "OPENCODE_API_KEY",
    "OPENCODE_AUTH_CONTENT",
    "OPENCODE_CONSOLE_TOKEN",
    "OPENCODE_LOG_LEVEL",
    "OPENCODE_MODELS_PATH",
    "OPENCODE_MODELS_URL",
    "OPENCODE_PRINT_LOGS",
];

fn allowed(provider: Provider) -> &'static Allowed {
    match provider {
        Provider::Claude => &CLAUDE,
        Provider::Gemini => &GEMINI,
        Provider::Codex => &CODEX,
        Provider::OpenCode => &OPENCODE,
    }
}

/// What holds in every mode.
pub(super) fn check(provider: Provider, request: &Request) -> Result<(), AgentError> {
    for (name, value) in &request.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(AgentError::BadOption(format!("options.env: {name:?} is no variable")));
        }
        if name.starts_with("COUNTERSIGN_") {
            let words = format!("options.env: {name} would reach the agent; none of ours may");
            return Err(AgentError::BadOption(words));
        }
    }
    if request.args.iter().any(|arg| arg.contains('\0')) {
        return Err(AgentError::BadOption("options.args: an argument has a NUL in it".to_owned()));
    }
    match (&request.config, provider) {
        (None, _) | (Some(Value::Object(_)), Provider::Codex | Provider::OpenCode) => Ok(()),
        (Some(_), Provider::Codex | Provider::OpenCode) => {
            Err(AgentError::BadOption("options.config is no object".to_owned()))
        }
        (Some(_), Provider::Claude | Provider::Gemini) => {
            let words =
                format!("options.config is for codex and opencode, not {}", provider.as_str());
            Err(AgentError::BadOption(words))
        }
    }
}

/// What holds where isolation is wanted: every fault at once.
pub(super) fn check_isolated(provider: Provider, request: &Request) -> Result<(), AgentError> {
    let rules = allowed(provider);
    let mut faults = args_faults(rules, &request.args);
    faults.extend(
        request
            .env
            .iter()
            .filter(|(name, _)| is_governed(rules, name))
            .map(|(name, _)| format!("options.env: {name} steers the program's own tools")),
    );
    for key in request.config.iter().filter_map(Value::as_object).flat_map(|config| config.keys()) {
        if !rules.config.contains(&key.as_str()) {
            faults.push(format!("options.config: {key} is not known to leave the tools alone"));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(AgentError::LoosensIsolation { provider, faults }) }
}

/// The request with files in its arguments named from the root: an isolated program starts in
/// another folder.
pub(super) fn rooted(provider: Provider, request: &Request, mode: Mode) -> Request {
    let mut request = request.clone();
    if mode == Mode::Isolated {
        let rules = allowed(provider);
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

fn is_governed(rules: &Allowed, name: &str) -> bool {
    let steers = rules.governed.iter().any(|begin| name.starts_with(begin));
    LOADERS.contains(&name) || (steers && !rules.free.contains(&name))
}

fn args_faults(rules: &Allowed, args: &[String]) -> Vec<String> {
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
                    "options.args: {flag} {key} is not known to leave the tools alone"
                ));
            }
        } else if rules.valued.contains(&flag) {
            if value.is_none() && args.next().is_none_or(|value| value.starts_with('-')) {
                faults.push(format!("options.args: {flag} has no value"));
            }
        } else if value.is_some() || !rules.switches.contains(&flag) {
            faults.push(format!("options.args: {flag} is not known to leave the tools alone"));
        }
    }
    faults
}

/// Codex takes settings on its command line as well; they are held to the same list.
fn is_config_flag(rules: &Allowed, flag: &str) -> bool {
    matches!(flag, "-c" | "--config") && rules.valued.contains(&"--local-provider")
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let found = args_faults(allowed(provider), &words);
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
            assert_eq!(is_governed(allowed(provider), name), refused, "{provider:?} {name}");
        }
    }
}
