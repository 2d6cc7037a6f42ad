//! Arguments, environment and files, per provider and mode.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::agent::AgentServer;
use crate::agent::launch::{ARGUMENT_BYTES_MAX, words};

fn request(tools: AgentTools) -> AgentRequest {
    AgentRequest {
        prompt: "do it".to_owned(),
        system_prompt: None,
        model: None,
        args: Vec::new(),
        env: Vec::new(),
        config: None,
        dir: "/workspace".into(),
        private: "/private".into(),
        server: AgentServer {
            program: "/bin/gate".into(),
            args: words(["mcp-serve", "--config=/f"]),
        },
        tools,
        max_cost_usd: None,
        call_timeout: Duration::from_secs(600),
    }
}

fn person(vars: &[(&str, &str)]) -> Person {
    Person::new(vars.iter().map(|(name, value)| (name.into(), value.into())))
}

fn launch(provider: Provider, request: &AgentRequest) -> Result<Launch, AgentError> {
    prepare(&InstalledAgent::imagined(provider, Isolation::Full), request, &person(&[]))
}

fn line(launch: &Launch) -> String {
    launch
        .args
        .iter()
        .map(|arg| if arg.is_empty() { "''" } else { arg })
        .collect::<Vec<_>>()
        .join(" ")
}

fn env(launch: &Launch) -> BTreeMap<String, String> {
    launch.env.iter().cloned().collect()
}

fn file(launch: &Launch, name: &str) -> Value {
    let text = text_file(launch, name);
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn text_file(launch: &Launch, name: &str) -> String {
    let found = launch.files.iter().find(|(path, _)| path == Path::new(name));
    let (_, bytes) = found.unwrap_or_else(|| panic!("no {name} in {launch:?}"));
    String::from_utf8(bytes.clone()).unwrap()
}

const CODEX_SERVER: &str = "-c mcp_servers.awf-proxy.command=\"/bin/gate\" \
    -c mcp_servers.awf-proxy.args=[\"mcp-serve\", \"--config=/f\"] \
    -c mcp_servers.awf-proxy.required=true \
    -c mcp_servers.awf-proxy.default_tools_approval_mode=\"approve\" \
    -c mcp_servers.awf-proxy.tool_timeout_sec=600";

#[test]
fn the_arguments_are_those_of_the_table() {
    let claude = "-p --output-format stream-json --verbose --include-partial-messages";
    let codex = "exec --json --skip-git-repo-check";
    for (provider, tools, expected) in [
        (Provider::Claude, AgentTools::None, claude.to_owned()),
        (
            Provider::Claude,
            AgentTools::Only,
            format!(
                "{claude} --mcp-config /private/mcp.json --allowedTools mcp__awf-proxy \
                 --strict-mcp-config --tools '' --setting-sources= --no-session-persistence"
            ),
        ),
        (
            Provider::Claude,
            AgentTools::Beside,
            format!("{claude} --mcp-config /private/mcp.json --allowedTools mcp__awf-proxy"),
        ),
        (Provider::Gemini, AgentTools::None, "--output-format stream-json".to_owned()),
        (
            Provider::Gemini,
            AgentTools::Only,
            "--output-format stream-json --policy /private/policy.toml --allowed-mcp-server-names \
             awf-proxy --extensions none --skip-trust"
                .to_owned(),
        ),
        (
            Provider::Gemini,
            AgentTools::Beside,
            "--output-format stream-json --skip-trust".to_owned(),
        ),
        (Provider::Codex, AgentTools::None, format!("{codex} -")),
        (
            Provider::Codex,
            AgentTools::Only,
            format!(
                "{codex} --sandbox read-only --ephemeral --ignore-user-config --ignore-rules \
                 --disable shell_tool --disable unified_exec --disable view_image --disable \
                 multi_agent --disable goals --disable apps --disable plugins --disable hooks \
                 --disable image_generation --disable sleep_tool --disable tool_suggest --disable \
                 skill_search --disable code_mode_host --disable shell_snapshot -c web_search=\"disabled\" -c \
                 tools.experimental_request_user_input.enabled=false -c \
                 model_catalog_json=\"/private/models.json\" {CODEX_SERVER} -"
            ),
        ),
        (Provider::Codex, AgentTools::Beside, format!("{codex} {CODEX_SERVER} -")),
        (Provider::OpenCode, AgentTools::None, "run --format json".to_owned()),
        (
            Provider::OpenCode,
            AgentTools::Only,
            "run --format json --pure --agent awf-proxy".to_owned(),
        ),
        (Provider::OpenCode, AgentTools::Beside, "run --format json".to_owned()),
    ] {
        let launch = launch(provider, &request(tools)).unwrap();
        assert_eq!(line(&launch), expected, "{provider:?} {tools:?}");
        assert_eq!(launch.program, Path::new("/opt").join(provider.as_str()));
        let said = String::from_utf8(launch.stdin.clone().unwrap()).unwrap();
        let (dir, begin) = match tools {
            AgentTools::Only => ("/private/start", "Your tools work in the folder /workspace"),
            AgentTools::None | AgentTools::Beside => ("/workspace", "do it"),
        };
        assert_eq!(launch.dir, Path::new(dir), "{provider:?} {tools:?}");
        assert!(said.starts_with(begin) && said.ends_with("do it"), "{said}");
        assert_eq!(launch.isolation, Isolation::Full);
        assert!(launch.files.iter().all(|(path, _)| path.starts_with("/private")));
    }
}

#[test]
fn the_environment_is_that_of_the_table() {
    let all = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let isolated = |pairs: &[(&str, &str)]| {
        let git = [
            ("GIT_CEILING_DIRECTORIES", "/private"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
        ];
        all(&[pairs, &git].concat())
    };
    for (provider, tools, expected) in [
        (Provider::Claude, AgentTools::None, all(&[])),
        (Provider::Claude, AgentTools::Beside, all(&[("MCP_TOOL_TIMEOUT", "600000")])),
        (
            Provider::Claude,
            AgentTools::Only,
            isolated(&[
                ("CLAUDE_CODE_DISABLE_ATTACHMENTS", "1"),
                ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
                ("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"),
                ("ENABLE_CLAUDEAI_MCP_SERVERS", "false"),
                ("MCP_TOOL_TIMEOUT", "600000"),
                ("XDG_CACHE_HOME", "/private/cache"),
            ]),
        ),
        (Provider::Gemini, AgentTools::None, all(&[("GEMINI_CLI_NO_RELAUNCH", "true")])),
        (
            Provider::Gemini,
            AgentTools::Only,
            isolated(&[
                ("GEMINI_CLI_HOME", "/private/gemini-home"),
                ("GEMINI_CLI_NO_RELAUNCH", "true"),
                ("GEMINI_SANDBOX", "false"),
                ("HOME", "/private/gemini-home"),
            ]),
        ),
        (
            Provider::Codex,
            AgentTools::Only,
            isolated(&[("CODEX_HOME", "/private/codex-home"), ("HOME", "/private/codex-person")]),
        ),
        (Provider::Codex, AgentTools::Beside, all(&[])),
        (Provider::OpenCode, AgentTools::None, all(&[])),
    ] {
        let launch = launch(provider, &request(tools)).unwrap();
        assert_eq!(env(&launch), expected, "{provider:?} {tools:?}");
    }
}

#[test]
fn opencode_gets_its_config_in_a_variable() {
    let mut asked = request(AgentTools::Only);
    asked.config = Some(json!({"model": "a/b", "provider": {"a": {}}}));
    let only = launch(Provider::OpenCode, &asked).unwrap();
    let vars = env(&only);
    assert_eq!(vars["XDG_CONFIG_HOME"], "/private/opencode-config");
    assert_eq!(vars["OPENCODE_TEST_HOME"], "/private/opencode-home");
    assert_eq!(vars["OPENCODE_DB"], "/private/opencode.db");
    for name in [
        "PROJECT_CONFIG",
        "MODELS_FETCH",
        "AUTOUPDATE",
        "DEFAULT_PLUGINS",
        "LSP_DOWNLOAD",
        "CLAUDE_CODE",
        "EXTERNAL_SKILLS",
    ] {
        assert_eq!(vars[&format!("OPENCODE_DISABLE_{name}")], "1");
    }
    let server = json!({
        "type": "local", "command": ["/bin/gate", "mcp-serve", "--config=/f"],
        "enabled": true, "timeout": 600_000,
    });
    let permission = json!({"*": "deny", "awf-proxy_*": "allow"});
    let expected = json!({
        "model": "a/b", "provider": {"a": {}}, "mcp": {"awf-proxy": server}, "permission": permission,
        "snapshot": false,
        "agent": {"awf-proxy": {"mode": "primary", "permission": permission}},
    });
    let config: Value = serde_json::from_str(&vars["OPENCODE_CONFIG_CONTENT"]).unwrap();
    assert_eq!(config, expected);

    asked.tools = AgentTools::Beside;
    asked.config =
        Some(json!({"mcp": {"awf-proxy": {"enabled": false}, "mine": {"enabled": true}}}));
    let persons = person(&[("OPENCODE_CONFIG_CONTENT", r#"{"theme":"x","mcp":{"his":{}}}"#)]);
    let installed = InstalledAgent::imagined(Provider::OpenCode, Isolation::Full);
    let beside = env(&prepare(&installed, &asked, &persons).unwrap());
    assert_eq!(beside.len(), 1, "{beside:?}");
    let config: Value = serde_json::from_str(&beside["OPENCODE_CONFIG_CONTENT"]).unwrap();
    let mcp = json!({"his": {}, "awf-proxy": server, "mine": {"enabled": true}});
    assert_eq!(config, json!({"theme": "x", "mcp": mcp}));
}

/// Such a login takes a config, and so servers to start, from a remote machine.
#[test]
fn opencode_gets_no_login_that_brings_a_config() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".local/share/opencode/auth.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let installed = InstalledAgent::imagined(Provider::OpenCode, Isolation::Full);
    let launched = |login: &Value, vars: &[(&str, &str)]| {
        std::fs::write(&file, login.to_string()).unwrap();
        let vars = [&[("HOME", home.path().to_str().unwrap())], vars].concat();
        prepare(&installed, &request(AgentTools::Only), &person(&vars))
    };
    let key = json!({"type": "api", "key": "k"});
    let remote = json!({"type": "wellknown", "key": "K", "token": "t"});
    let vars = env(&launched(&json!({"mine": key}), &[]).unwrap());
    assert!(!vars.contains_key("OPENCODE_AUTH_CONTENT"), "the file is used as it is");
    assert_eq!(vars["XDG_DATA_HOME"], home.path().join(".local/share").to_str().unwrap());
    let both = json!({"mine": key, "https://x": remote});
    let kept = json!({"mine": key}).to_string();
    assert_eq!(env(&launched(&both, &[]).unwrap())["OPENCODE_AUTH_CONTENT"], kept);
    let given = [("OPENCODE_AUTH_CONTENT", &*both.to_string())];
    assert_eq!(env(&launched(&json!({}), &given).unwrap())["OPENCODE_AUTH_CONTENT"], kept);
    let oauth = json!({"mine": {"type": "oauth", "refresh": "r"}, "https://x": remote});
    let error = launched(&oauth, &[]).unwrap_err();
    assert_eq!(error.code(), domain::Code::AgentNotIsolated);
    assert!(error.to_string().contains("its login at https://x takes a config"), "{error}");
}

#[test]
fn codex_gets_the_steps_config_before_ours() {
    let mut asked = request(AgentTools::Beside);
    asked.model = Some("gpt".to_owned());
    asked.system_prompt = Some("Be\n\"good\"".to_owned());
    asked.args = words(["--color", "never"]);
    asked.config =
        Some(json!({"mcp_servers": {"awf-proxy": {"command": "evil"}}, "model_provider": "x"}));
    let launched = launch(Provider::Codex, &asked).unwrap();
    let expected = format!(
        "exec --json --skip-git-repo-check -c mcp_servers.awf-proxy.command=\"evil\" -c \
         model_provider=\"x\" {CODEX_SERVER} --model gpt -c developer_instructions=\"Be\\n\\\"good\\\"\" \
         --color never -"
    );
    assert_eq!(line(&launched), expected);
}

#[test]
fn claude_always_loads_our_server_beside_its_own_tools() {
    let entry = json!({"command": "/bin/gate", "args": ["mcp-serve", "--config=/f"]});
    let only = launch(Provider::Claude, &request(AgentTools::Only)).unwrap();
    assert_eq!(file(&only, "/private/mcp.json"), json!({"mcpServers": {"awf-proxy": entry}}));
    let beside = launch(Provider::Claude, &request(AgentTools::Beside)).unwrap();
    let loaded = &file(&beside, "/private/mcp.json")["mcpServers"]["awf-proxy"]["alwaysLoad"];
    assert_eq!(loaded, true);
}

#[test]
fn claude_gets_the_flags_that_its_version_has() {
    let with_budget = AgentRequest { max_cost_usd: Some(0.000_01), ..request(AgentTools::None) };
    let newest = line(&launch(Provider::Claude, &with_budget).unwrap());
    assert!(newest.ends_with("--include-partial-messages --max-budget-usd 0.00001"), "{newest}");
    let mut older = InstalledAgent::imagined(Provider::Claude, Isolation::Full);
    older.lacks = words(["--include-partial-messages", "--max-budget-usd"]);
    let older = prepare(&older, &with_budget, &person(&[])).unwrap();
    assert_eq!(line(&older), "-p --output-format stream-json --verbose");
}

/// The person's folder, with a login, settings, an extension and a memory.
fn gemini_home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".gemini");
    std::fs::create_dir_all(folder.join("extensions/x")).unwrap();
    std::fs::create_dir(folder.join("tmp")).unwrap();
    for (name, text) in [
        ("oauth_creds.json", "{}"),
        ("google_accounts.json", "{}"),
        ("installation_id", "7"),
        ("GEMINI.md", "Mine."),
        (".env", "export GEMINI_API_KEY=k\nGEMINI_SANDBOX=true\nGOOGLE_CLOUD_PROJECT = p\n"),
        (
            "settings.json",
            "{\"hooks\": {\"SessionStart\": []}, // mine\n \"mcpServers\": {\"his\": {}, \
             \"awf-proxy\": {\"command\": \"evil\"}}, \"security\": {\"auth\": \
             {\"selectedType\": \"oauth-personal\"}}}",
        ),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    home
}

fn gemini(home: &Path, tools: AgentTools) -> Launch {
    let mut asked = request(tools);
    asked.system_prompt = Some("Ours.".to_owned());
    let installed = InstalledAgent::imagined(Provider::Gemini, Isolation::Full);
    prepare(&installed, &asked, &person(&[("HOME", home.to_str().unwrap())])).unwrap()
}

fn linked(launch: &Launch) -> Vec<&str> {
    launch.links.iter().map(|link| link.path.file_name().unwrap().to_str().unwrap()).collect()
}

#[test]
fn gemini_keeps_the_login_and_nothing_else_where_it_is_isolated() {
    let home = gemini_home();
    let launch = gemini(home.path(), AgentTools::Only);
    let server = json!({
        "command": "/bin/gate", "args": ["mcp-serve", "--config=/f"], "trust": true, "timeout": 600_000,
    });
    assert_eq!(
        file(&launch, "/private/gemini-home/.gemini/settings.json"),
        json!({
            "security": {"auth": {"selectedType": "oauth-personal"}},
            "mcpServers": {"awf-proxy": server},
            "advanced": {"ignoreLocalEnv": true},
        })
    );
    assert_eq!(linked(&launch), ["google_accounts.json", "installation_id", "oauth_creds.json"]);
    assert_eq!(launch.links[2].target, home.path().join(".gemini/oauth_creds.json"));
    assert_eq!(text_file(&launch, "/private/gemini-home/.gemini/GEMINI.md"), "Ours.");
    let env = text_file(&launch, "/private/start/.gemini/.env");
    assert_eq!(env, "export GEMINI_API_KEY=k\nGOOGLE_CLOUD_PROJECT = p\n");
    let nobody = prepare(
        &InstalledAgent::imagined(Provider::Gemini, Isolation::Full),
        &request(AgentTools::Only),
        &person(&[]),
    );
    assert_eq!(text_file(&nobody.unwrap(), "/private/start/.gemini/.env"), "");
    let policy = text_file(&launch, "/private/policy.toml");
    assert!(policy.contains("decision = \"deny\"\npriority = 900"), "{policy}");
    assert!(policy.contains("mcpName = \"awf-proxy\"\ntoolName = \"*\"\ndecision = \"allow\""));
}

#[test]
fn gemini_keeps_the_users_settings_beside_our_tools() {
    let home = gemini_home();
    let launch = gemini(home.path(), AgentTools::Beside);
    let settings = file(&launch, "/private/gemini-home/.gemini/settings.json");
    assert_eq!(settings["mcpServers"]["awf-proxy"]["command"], "/bin/gate");
    assert_eq!(settings["mcpServers"]["his"], json!({}));
    assert_eq!(settings["hooks"], json!({"SessionStart": []}));
    let carried =
        [".env", "extensions", "google_accounts.json", "installation_id", "oauth_creds.json"];
    assert_eq!(linked(&launch), carried);
    let memory = text_file(&launch, "/private/gemini-home/.gemini/GEMINI.md");
    assert_eq!(memory, "Mine.\n\nOurs.\n");
}

/// With a key and another endpoint it would otherwise choose a sign-in method that it rejects.
#[test]
fn gemini_uses_the_api_key_unless_the_user_chose_otherwise() {
    let mut asked = request(AgentTools::Only);
    asked.env = vec![("GEMINI_API_KEY".to_owned(), "k".to_owned())];
    let chosen = |asked: &AgentRequest| {
        let launch = launch(Provider::Gemini, asked).unwrap();
        file(&launch, "/private/gemini-home/.gemini/settings.json")["security"]["auth"].clone()
    };
    assert_eq!(chosen(&asked), json!({"selectedType": "gemini-api-key"}));
    asked.env.push(("GOOGLE_GENAI_USE_VERTEXAI".to_owned(), "true".to_owned()));
    assert_eq!(chosen(&asked), Value::Null);
}

#[test]
fn variables_of_ours_and_loosening_ones_do_not_reach_the_program() {
    let vars = person(&[
        ("COUNTERSIGN_HOME", "/h"),
        ("COUNTERSIGN_API_KEY", "k"),
        ("OPENCODE_PERMISSION", "{}"),
        ("OPENCODE_CONFIG", "/x"),
        ("OPENCODE_API_KEY", "k"),
        ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "/x"),
        ("PATH", "/bin"),
    ]);
    let ours = ["COUNTERSIGN_API_KEY", "COUNTERSIGN_HOME"];
    for (provider, tools, also) in [
        (Provider::Claude, AgentTools::None, vec!["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"]),
        (Provider::Gemini, AgentTools::Only, vec!["GEMINI_CLI_SYSTEM_SETTINGS_PATH"]),
        (Provider::Gemini, AgentTools::Beside, vec![]),
        (Provider::Codex, AgentTools::Only, vec![]),
        (Provider::OpenCode, AgentTools::Only, vec!["OPENCODE_CONFIG", "OPENCODE_PERMISSION"]),
        (Provider::OpenCode, AgentTools::Beside, vec![]),
    ] {
        let installed = InstalledAgent::imagined(provider, Isolation::Full);
        let launch = prepare(&installed, &request(tools), &vars).unwrap();
        let expected: Vec<&str> = also.into_iter().chain(ours).collect();
        assert_eq!(launch.env_remove, expected, "{provider:?} {tools:?}");
    }
}

#[test]
fn options_that_loosen_are_refused_together_where_isolation_is_wanted() {
    let mut asked = request(AgentTools::Only);
    asked.args = words(["--dangerously-bypass-approvals-and-sandbox"]);
    asked.env = vec![("LD_PRELOAD".to_owned(), "/x".to_owned())];
    asked.config = Some(json!({"mcp_servers": {"evil": {"command": "sh"}}, "model": "m"}));
    let error = launch(Provider::Codex, &asked).unwrap_err();
    assert_eq!(error.code(), domain::Code::WorkflowIsolation);
    assert_eq!(
        error.to_string(),
        "options would weaken the isolation of codex: options.args: \
         --dangerously-bypass-approvals-and-sandbox is not known to be safe under isolation; \
         options.env.LD_PRELOAD: this variable affects the program's own tools or settings; \
         options.config: mcp_servers is not known to be safe under isolation"
    );
    asked.tools = AgentTools::Beside;
    assert!(launch(Provider::Codex, &asked).is_ok());
}

#[test]
fn each_bad_request_has_its_own_error() {
    let fault = |provider, change: fn(&mut AgentRequest)| {
        let mut asked = request(AgentTools::Beside);
        change(&mut asked);
        launch(provider, &asked).unwrap_err().to_string()
    };
    assert_eq!(
        fault(Provider::Claude, |asked| asked.prompt = " \n".to_owned()),
        "the prompt is empty"
    );
    assert_eq!(
        fault(Provider::Gemini, |asked| asked.prompt = "x".repeat(8 * 1024 * 1024 + 1)),
        "the prompt has 8388609 bytes, but gemini accepts at most 8388608: put the text into a file"
    );
    assert_eq!(
        fault(Provider::Codex, |asked| asked.prompt = "é".repeat(1024 * 1024 + 1)),
        "the prompt has 1048577 characters, but codex accepts at most 1048576: put the text into \
         a file"
    );
    let both = fault(Provider::Codex, |asked| {
        asked.prompt = "x".repeat(1024 * 1024 - 10);
        asked.system_prompt = Some("x".repeat(200_000));
    });
    assert!(both.starts_with("the prompt has 1248568 characters"), "{both}");
    assert_eq!(
        fault(Provider::Claude, |asked| asked.config = Some(json!({}))),
        "options.config is supported by codex and opencode, not by claude"
    );
    assert_eq!(
        fault(Provider::Codex, |asked| asked.config = Some(json!([]))),
        "options.config must be an object"
    );
    assert_eq!(
        fault(Provider::Codex, |asked| asked.env =
            vec![("COUNTERSIGN_HOME".to_owned(), "x".to_owned())]),
        "options.env.COUNTERSIGN_HOME: variables named COUNTERSIGN_… are not passed to agents"
    );
    assert_eq!(
        fault(Provider::Codex, |asked| asked.env = vec![("A=B".to_owned(), "x".to_owned())]),
        "options.env.A=B: a variable name must consist of letters, digits and '_'"
    );
    assert_eq!(
        fault(Provider::Gemini, |asked| asked.model = Some("--yolo".to_owned())),
        "options.model: a model's name cannot begin with '-'"
    );
}

#[test]
fn without_isolation_the_model_is_told_to_use_only_mcp_tools() {
    let reason = "old".to_owned();
    for (provider, marker) in [
        (Provider::Claude, "--strict-mcp-config"),
        (Provider::Gemini, "--policy"),
        (Provider::Codex, "--disable"),
        (Provider::OpenCode, "--pure"),
    ] {
        let coexistence = Isolation::Coexistence { reason: reason.clone() };
        let installed = InstalledAgent::imagined(provider, coexistence.clone());
        let mut asked = request(AgentTools::Only);
        asked.system_prompt = Some("Be good.".to_owned());
        let launch = prepare(&installed, &asked, &person(&[])).unwrap();
        assert_eq!(launch.isolation, coexistence);
        assert!(!launch.args.iter().any(|arg| arg == marker), "{provider:?}");
        let files = launch.files.iter().map(|(_, bytes)| String::from_utf8_lossy(bytes));
        let said = line(&launch) + &files.collect::<String>();
        let said = said.replace("\\n", "\n");
        assert!(said.contains("Be good.\n\nUse only MCP tools, never built-in tools."), "{said}");
        let warning = coexistence.warning(provider).unwrap();
        assert!(warning.starts_with(&format!("mcp_proxy on provider={} runs", provider.as_str())));
        // The line is for a step that requested isolation.
        asked.tools = AgentTools::Beside;
        let beside = prepare(&installed, &asked, &person(&[])).unwrap();
        assert_eq!(beside.isolation, Isolation::Full);
        assert!(!line(&beside).contains("Use only MCP tools"));
    }
}

#[test]
fn an_isolated_prompt_triggers_no_commands_or_file_references() {
    for (provider, tools, expected) in [
        (Provider::Claude, AgentTools::Only, "to it.\n\n/do @it"),
        (Provider::Gemini, AgentTools::Only, "to it.\n\n/do @it"),
        (Provider::Codex, AgentTools::Only, "to it.\n\n/do @it"),
        (Provider::OpenCode, AgentTools::Only, "to it.\n\n/do @it"),
        (Provider::Claude, AgentTools::Beside, "/do @it"),
        (Provider::Gemini, AgentTools::None, "/do @it"),
    ] {
        let mut asked = request(tools);
        asked.prompt = "/do @it".to_owned();
        let stdin = launch(provider, &asked).unwrap().stdin.unwrap();
        let said = String::from_utf8(stdin).unwrap();
        assert!(said.ends_with(expected), "{provider:?} {tools:?}: {said}");
        assert_eq!(said.starts_with('/'), tools != AgentTools::Only, "{said}");
    }
}

#[test]
fn long_system_prompts_are_not_passed_as_arguments() {
    for provider in Provider::ALL {
        let mut asked = request(AgentTools::Only);
        asked.system_prompt = Some("x".repeat(200_000));
        let launch = launch(provider, &asked).unwrap();
        assert!(launch.args.iter().all(|arg| arg.len() < ARGUMENT_BYTES_MAX), "{provider:?}");
        assert!(launch.env.iter().all(|(_, value)| value.len() < ARGUMENT_BYTES_MAX));
        let in_file = launch.files.iter().any(|(_, bytes)| bytes.len() == 200_000);
        let in_prompt = launch.stdin.is_some_and(|prompt| prompt.len() > 200_000);
        assert!(in_file || in_prompt, "{provider:?}");
    }
}

#[test]
fn keys_are_not_shown() {
    let mut asked = request(AgentTools::Only);
    asked.env = vec![("ANTHROPIC_API_KEY".to_owned(), "sk-secret".to_owned())];
    let shown = format!("{:?}", launch(Provider::Claude, &asked).unwrap());
    assert!(shown.contains("ANTHROPIC_API_KEY") && !shown.contains("sk-secret"), "{shown}");
}

#[test]
fn files_are_private_to_the_user_and_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let home = gemini_home();
    let mut asked = request(AgentTools::Only);
    asked.private = dir.path().to_owned();
    let installed = InstalledAgent::imagined(Provider::Gemini, Isolation::Full);
    let launch =
        prepare(&installed, &asked, &person(&[("HOME", home.path().to_str().unwrap())])).unwrap();
    launch.write().unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir.path().join("policy.toml")), 0o600);
    assert_eq!(mode(&dir.path().join("gemini-home/.gemini")), 0o700);
    let login = dir.path().join("gemini-home/.gemini/oauth_creds.json");
    assert_eq!(std::fs::read_link(login).unwrap(), home.path().join(".gemini/oauth_creds.json"));
    assert_eq!(launch.write().unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
}

#[test]
fn files_in_the_arguments_are_named_from_the_root() {
    for (provider, args, expected) in [
        (
            Provider::Claude,
            "--add-dir ../lib --model opus",
            "--add-dir /workspace/../lib --model opus",
        ),
        (
            Provider::Codex,
            "-i a.png,/b.png --output-schema=s.json",
            "-i /workspace/a.png,/b.png --output-schema=/workspace/s.json",
        ),
    ] {
        let mut asked = request(AgentTools::Only);
        asked.args = args.split(' ').map(str::to_owned).collect();
        let isolated = line(&launch(provider, &asked).unwrap());
        assert!(isolated.contains(expected), "{isolated}");
        asked.tools = AgentTools::Beside;
        let beside = line(&launch(provider, &asked).unwrap());
        assert!(beside.contains(args), "{beside}");
    }
}
