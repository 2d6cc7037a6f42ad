//! The flags, variables and settings of each agent program that do not affect its isolation. This
//! is the only such list: `options` checks a workflow against it when it is read, and a step again
//! when it starts.

use crate::plan::Provider;

/// The parts of a program's interface that are known not to affect its isolation.
pub struct ProgramRules {
    /// Harmless flags without a value.
    pub switches: &'static [&'static str],
    /// Harmless flags that take one value.
    pub valued: &'static [&'static str],
    /// The flags in `valued` whose value is a comma-separated list of files.
    pub paths: &'static [&'static str],
    /// Prefixes of the variables that configure the program itself.
    pub governed: &'static [&'static str],
    /// Variables with such a prefix that configure something else, such as logins, and are kept.
    pub free: &'static [&'static str],
    /// First segments of harmless config paths.
    pub config: &'static [&'static str],
}

impl ProgramRules {
    pub fn of(provider: Provider) -> &'static ProgramRules {
        match provider {
            Provider::Claude => &CLAUDE,
            Provider::Gemini => &GEMINI,
            Provider::Codex => &CODEX,
            Provider::OpenCode => &OPENCODE,
            Provider::OpenAiCompatible => &NO_PROGRAM,
        }
    }

    /// Reports whether a variable controls the program's own tools or loads code into it. An isolated
    /// program does not inherit such a variable.
    pub fn governs(&self, variable: &str) -> bool {
        let steers = self.governed.iter().any(|begin| variable.starts_with(begin));
        let loads = LOADERS.iter().any(|begin| variable.starts_with(begin));
        loads || (steers && !self.free.contains(&variable))
    }

    /// Reports whether a step may set a variable for an isolated program: not one that governs it, nor
    /// one that decides which programs and settings are found.
    pub fn may_set(&self, variable: &str) -> bool {
        !self.governs(variable) && !SEARCHED.contains(&variable)
    }
}

/// Prefixes of the variables that load foreign code into a program.
const LOADERS: [&str; 18] = [
    "LD_",
    "DYLD_",
    "GCONV_PATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "NODE_CHANNEL_FD",
    "NODE_INSPECTOR_IPC",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "NODE_V8_COVERAGE",
    "BUN_",
    "BASH_ENV",
    "BASH_FUNC_",
    "BASHOPTS",
    "SHELLOPTS",
    "PS4",
];

/// Variables that decide which interpreter and which settings a program finds, load code into the
/// programs that it starts, or name a login whose file may name a command. The person's own are kept:
/// a login may need them.
const SEARCHED: [&str; 21] = [
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES",
    "HOME",
    "PATH",
    "SHELL",
    "ENV",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYLIB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
];

const CLAUDE: ProgramRules = ProgramRules {
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
    governed: &[
        "CLAUDE",
        "MCP_",
        "ENABLE_",
        "AGENT_PROXY_",
        "ALLOW_ANT_",
        "ANT_",
        "AUTOMODE_DECISION_LOG",
        "BUGHUNTER_",
        "CCR_",
        "COMPUTER_USE_",
        "DS_CHROMIUM_PATH",
        "EMBEDDED_SEARCH_TOOLS",
        "ENVIRONMENT_SERVICE_KEY",
        "FORCE_AUTOUPDATE_PLUGINS",
        "FORCE_VCR",
        "IS_SANDBOX",
        "LOCAL_BRIDGE",
        "SDK_NATIVE_BIN",
        "SELF_HOSTED_RUNNER_",
        "SESSION_INGRESS_URL",
        "SYSTEM_REMINDER_",
        "TEST_ENABLE_",
        "ULTRAPLAN_",
        "USE_LOCAL_OAUTH",
        "USE_STAGING_OAUTH",
        "VCR_RECORD",
        "VITALS_EMITTER_BIN",
    ],
    free: &[
        "CLAUDE_CODE_API_KEY_HELPER_TTL_MS",
        "CLAUDE_CODE_CLIENT_CERT",
        "CLAUDE_CODE_CLIENT_KEY",
        "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
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
        "ENABLE_PROMPT_CACHING_1H",
        "ENABLE_PROMPT_CACHING_1H_BEDROCK",
    ],
    config: &[],
};

const GEMINI: ProgramRules = ProgramRules {
    switches: &["--debug", "--screen-reader", "-d"],
    valued: &["--model", "--session-id", "-m"],
    paths: &[],
    governed: &[
        "GEMINI_",
        "SANDBOX",
        "SEATBELT_PROFILE",
        "BUILD_SANDBOX",
        "ANTIGRAVITY_CLI_ALIAS",
        "DOTENV_KEY",
    ],
    free: &[
        "GEMINI_API_KEY",
        "GEMINI_API_KEY_AUTH_MECHANISM",
        "GEMINI_CLI_CUSTOM_HEADERS",
        "GEMINI_CLI_SURFACE",
        "GEMINI_CLI_USE_COMPUTE_ADC",
        "GEMINI_DEFAULT_AUTH_TYPE",
        "GEMINI_MODEL",
    ],
    config: &[],
};

const CODEX: ProgramRules = ProgramRules {
    switches: &["--oss", "--strict-config"],
    valued: &["--color", "--image", "--local-provider", "--model", "--output-schema", "-i", "-m"],
    paths: &["--image", "--output-schema", "-i"],
    governed: &["CODEX_"],
    free: &["CODEX_ACCESS_TOKEN", "CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "CODEX_HOME"],
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

const OPENCODE: ProgramRules = ProgramRules {
    switches: &["--print-logs", "--thinking"],
    valued: &["--log-level", "--model", "--title", "--variant", "-m"],
    paths: &[],
    governed: &[
        "OPENCODE_",
        "XDG_CONFIG_HOME",
        "XDG_CONFIG_DIRS",
        "BABEL_",
        "BROWSERSLIST",
        "CLAUDE_CODE_SSE_PORT",
        "OTUI_",
    ],
    free: &[
        "OPENCODE_API_KEY",
        "OPENCODE_AUTH_CONTENT",
        "OPENCODE_CONSOLE_TOKEN",
        "OPENCODE_LOG_LEVEL",
        "OPENCODE_PRINT_LOGS",
    ],
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

const NO_PROGRAM: ProgramRules =
    ProgramRules { switches: &[], valued: &[], paths: &[], governed: &[], free: &[], config: &[] };
