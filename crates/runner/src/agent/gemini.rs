//! Gemini CLI. Its settings can only be given as a whole home: the step gets a private one, with
//! links to the person's login, and with all of the person's setup if native tools stay enabled.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::agent::error::AgentError;
use crate::agent::launch::{Launch, LaunchInput, LaunchMode, Symlink, path_text, words};
use crate::agent::person::GeminiFolder;
use crate::agent::program::{Provider, SERVER_NAME};
use crate::agent::report::{AgentEvent, ReportBuilder, TokenUsage, count, text};
use crate::agent::{ground, version};

pub(super) const NEEDED: &[&str] = &["--output-format", "stream-json"];
pub(super) const ISOLATING: &[&str] =
    &["--policy", "--allowed-mcp-server-names", "--extensions", "--skip-trust"];

/// The first version measured to have its own home; 0.20 has none.
const OWN_HOME: [u64; 3] = [0, 30, 0];

/// The variable that names a file of settings under the person's own.
const SYSTEM_DEFAULTS: &str = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH";

/// The files that hold the person's Google login.
const LOGIN: [&str; 4] =
    ["oauth_creds.json", "google_accounts.json", "installation_id", "gemini-credentials.json"];

/// The variables in the person's `.env` that hold a login.
const LOGIN_VARIABLES: [&str; 9] = [
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_GENAI_USE_GCA",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_VERTEX_BASE_URL",
];

/// Denied tools are not even registered.
const POLICY: &str = r#"[[rule]]
toolName = "*"
decision = "deny"
priority = 900

[[rule]]
mcpName = "awf-proxy"
toolName = "*"
decision = "allow"
priority = 950
"#;

pub(super) fn launch(input: &LaunchInput, folder: &GeminiFolder) -> Result<Launch, AgentError> {
    let request = input.request;
    let mut args = words(["--output-format", "stream-json"]);
    let mut launch = Launch { stdin: Some(stdin(input)), ..Launch::of(input) };
    // Its child process would not get our signals.
    launch.env.push(("GEMINI_CLI_NO_RELAUNCH".to_owned(), "true".to_owned()));
    if input.mode == LaunchMode::Isolated {
        let policy = input.private("policy.toml");
        args.extend(["--policy".to_owned(), path_text(&policy)?]);
        args.extend(words(["--allowed-mcp-server-names", SERVER_NAME, "--extensions", "none"]));
        launch.files.push((policy, POLICY.as_bytes().to_vec()));
        // In its own sandbox it could not start our server.
        launch.env.push(("GEMINI_SANDBOX".to_owned(), "false".to_owned()));
        // Nothing in the start folder is read for an `@` in the prompt.
        launch.files.push((launch.dir.join(".geminiignore"), b"*\n".to_vec()));
        ground::rehome(input, input.private("gemini-home"), &mut launch)?;
    }
    if input.mode != LaunchMode::Plain && input.installed.has("--skip-trust") {
        args.push("--skip-trust".to_owned());
    }
    match (input.mode, has_own_home(input)) {
        (LaunchMode::Plain, _) => {}
        (LaunchMode::Isolated | LaunchMode::Beside, true) => home(input, folder, &mut launch)?,
        (LaunchMode::Isolated | LaunchMode::Beside, false) => {
            let path = input.private("settings.json");
            launch.env.push((SYSTEM_DEFAULTS.to_owned(), path_text(&path)?));
            let settings = settings(input, &GeminiFolder::default())?.to_string().into_bytes();
            launch.files.push((path, settings));
        }
    }
    if let Some(model) = &request.model {
        args.extend(words(["--model", model]));
    }
    args.extend(request.args.iter().cloned());
    launch.args = args;
    Ok(launch)
}

/// Reports whether the program uses the home that `GEMINI_CLI_HOME` names. Older ones do not, but
/// take the settings that a variable names.
fn has_own_home(input: &LaunchInput) -> bool {
    version::numbers(input.installed.version()) >= OWN_HOME
}

/// Builds the input. Gemini has no flag for a system prompt: without a private home, the prompt
/// starts with it.
fn stdin(input: &LaunchInput) -> Vec<u8> {
    let is_in_home = input.mode != LaunchMode::Plain && has_own_home(input);
    match &input.system_prompt {
        Some(system) if !is_in_home => format!("{system}\n\n{}", input.prompt).into_bytes(),
        Some(_) | None => input.prompt.clone().into_bytes(),
    }
}

fn home(input: &LaunchInput, folder: &GeminiFolder, launch: &mut Launch) -> Result<(), AgentError> {
    let home = input.private("gemini-home");
    let inside = |name: &str| home.join(".gemini").join(name);
    launch.env.push(("GEMINI_CLI_HOME".to_owned(), path_text(&home)?));
    let settings = settings(input, folder)?.to_string().into_bytes();
    launch.files.push((inside("settings.json"), settings));
    if let Some(memory) = memory(input, folder) {
        launch.files.push((inside("GEMINI.md"), memory.into_bytes()));
    }
    if input.mode == LaunchMode::Isolated {
        // Gemini takes variables from the first such file, searching upwards from its start folder:
        // this one ends the search, even when it is empty.
        let env = folder.env.as_deref().map(login_lines).unwrap_or_default();
        launch.files.push((launch.dir.join(".gemini/.env"), env.into_bytes()));
    }
    let written: Vec<PathBuf> = launch.files.iter().map(|(path, _)| path.clone()).collect();
    for name in &folder.entries {
        let carried = match input.mode {
            LaunchMode::Isolated => LOGIN.contains(&name.as_str()),
            // Files that Gemini creates while it runs belong to the step.
            LaunchMode::Beside | LaunchMode::Plain => !matches!(name.as_str(), "tmp" | "history"),
        };
        if carried && !written.contains(&inside(name)) {
            launch.links.push(Symlink { path: inside(name), target: folder.path.join(name) });
        }
    }
    Ok(())
}

fn settings(input: &LaunchInput, folder: &GeminiFolder) -> Result<Value, AgentError> {
    let person = folder.settings.as_ref().and_then(Value::as_object);
    let mut settings = match (input.mode, person) {
        (LaunchMode::Beside | LaunchMode::Plain, Some(person)) => person.clone(),
        (LaunchMode::Isolated, Some(person)) => login_settings(person),
        (LaunchMode::Beside | LaunchMode::Plain | LaunchMode::Isolated, None) => Map::new(),
    };
    choose_key(input, folder, &mut settings);
    let server = &input.request.server;
    let ours = json!({
        "command": path_text(&server.program)?,
        "args": server.args,
        "trust": true,
        "timeout": input.request.call_timeout.as_millis() as u64,
    });
    member(&mut settings, "mcpServers").insert(SERVER_NAME.to_owned(), ours);
    if input.mode == LaunchMode::Isolated {
        // Nor from a plain `.env` above it.
        member(&mut settings, "advanced").insert("ignoreLocalEnv".to_owned(), json!(true));
    }
    Ok(Value::Object(settings))
}

/// Returns the person's sign-in settings, and none of the others.
fn login_settings(person: &Map<String, Value>) -> Map<String, Value> {
    let auth = person.get("security").and_then(|security| security.get("auth"));
    let auth = auth.map(|auth| json!({"security": {"auth": auth}}));
    auth.and_then(|settings| settings.as_object().cloned()).unwrap_or_default()
}

/// Selects the API key, unless the person chose otherwise: with a key and another endpoint, Gemini
/// would choose a sign-in method that it then rejects.
fn choose_key(input: &LaunchInput, folder: &GeminiFolder, settings: &mut Map<String, Value>) {
    let in_file = |name: &str| folder.env.as_deref().is_some_and(|env| has_variable(env, name));
    let has = |name: &str| input.var(name).is_some() || in_file(name);
    let others = ["GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"];
    if !has("GEMINI_API_KEY") || others.into_iter().any(has) {
        return;
    }
    let auth = member(member(settings, "security"), "auth");
    auth.entry("selectedType").or_insert_with(|| json!("gemini-api-key"));
}

/// Returns the object at a member; replaces any other value.
fn member<'a>(object: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = object.entry(name).or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was made one")
}

fn memory(input: &LaunchInput, folder: &GeminiFolder) -> Option<String> {
    match (&input.system_prompt, &folder.memory, input.mode) {
        (Some(ours), Some(person), LaunchMode::Beside) => Some(format!("{person}\n\n{ours}\n")),
        (Some(ours), _, _) => Some(ours.clone()),
        (None, _, _) => None,
    }
}

fn login_lines(env: &str) -> String {
    let proves = |line: &&str| LOGIN_VARIABLES.into_iter().any(|name| has_variable(line, name));
    env.lines().filter(proves).map(|line| format!("{line}\n")).collect()
}

fn has_variable(env: &str, name: &str) -> bool {
    let named = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        line.split_once('=').is_some_and(|(key, value)| key.trim() == name && !value.is_empty())
    };
    env.lines().any(named)
}

/// Reads one event of `--output-format stream-json`.
pub(super) fn line(event: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    match text(&event["type"]) {
        "init" => report.model(text(&event["model"])),
        "message" if event["role"] == "assistant" => {
            let mut events = report.in_turn();
            events.extend(report.text(text(&event["content"])));
            events
        }
        "tool_use" => {
            let mut events = report.in_turn();
            let (id, name) = (text(&event["tool_id"]), text(&event["tool_name"]));
            events.extend(report.call(Provider::Gemini, id, name));
            events
        }
        "tool_result" => {
            report.turn_ends();
            match text(&event["error"]["type"]) {
                "tool_not_registered" | "policy_violation" => {
                    report.refused(text(&event["tool_id"]))
                }
                _ => Vec::new(),
            }
        }
        "error" if event["severity"] != "warning" => report.error(text(&event["message"])),
        "result" => result(event, report),
        _ => Vec::new(),
    }
}

fn result(event: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    let stats = &event["stats"];
    report.tokens(TokenUsage {
        input: count(&stats["input_tokens"]),
        output: count(&stats["output_tokens"]),
        total: count(&stats["total_tokens"]),
    });
    let mut events = report.usage();
    if event["status"] != "success" {
        events.extend(report.failed(text(&event["error"]["message"])));
        return events;
    }
    report.finished();
    events
}
