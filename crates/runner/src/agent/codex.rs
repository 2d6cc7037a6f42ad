//! Codex: `codex exec --json`. Its tools come from features and from the model's entry in its
//! catalogue; both must be changed, and the catalogue is the installed program's own.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use text::json;

use crate::agent::error::AgentError;
use crate::agent::launch::{ARGUMENT_BYTES_MAX, Launch, LaunchInput, LaunchMode, path_text, words};
use crate::agent::program::{Provider, SERVER_NAME};
use crate::agent::report::{AgentEvent, ReportBuilder, TokenUsage, count, text};
use crate::agent::{ground, person, toml};

pub(super) const NEEDED: &[&str] = &["--json", "--config", "--skip-git-repo-check"];
pub(super) const ISOLATING: &[&str] =
    &["--sandbox", "--ephemeral", "--ignore-user-config", "--ignore-rules", "--disable"];

/// All features that add tools, or run something from the person's setup.
const FEATURES: [&str; 14] = [
    "shell_tool",
    "unified_exec",
    "view_image",
    "multi_agent",
    "goals",
    "apps",
    "plugins",
    "hooks",
    "image_generation",
    "sleep_tool",
    "tool_suggest",
    "skill_search",
    "code_mode_host",
    "shell_snapshot",
];

/// Tools that talk only to our server; they cannot be disabled.
const READERS: [&str; 3] =
    ["codex.list_mcp_resources", "codex.list_mcp_resource_templates", "codex.read_mcp_resource"];

/// Returns the catalogue of `codex debug models` with every model's own tools removed, or its
/// fault.
pub(super) fn tame(catalogue: &[u8]) -> Result<Vec<u8>, String> {
    let mut catalogue: Value = serde_json::from_slice(catalogue).map_err(|error| {
        format!("its model catalogue is not valid JSON: {}", json::explain(&error))
    })?;
    let models = catalogue["models"].as_array_mut().filter(|models| !models.is_empty());
    for model in models.ok_or("its model catalogue has no models")? {
        let slug = text(&model["slug"]).to_owned();
        let object = model.as_object_mut().ok_or("its model catalogue has no models")?;
        for field in ["shell_type", "apply_patch_tool_type", "supports_search_tool"] {
            if !object.contains_key(field) {
                return Err(format!("its model catalogue has no {field} for {slug}"));
            }
        }
        for (field, value) in [
            ("shell_type", json!("disabled")),
            ("apply_patch_tool_type", Value::Null),
            ("tool_mode", json!("direct")),
            ("supports_search_tool", json!(false)),
            ("multi_agent_version", Value::Null),
            ("experimental_supported_tools", json!([])),
        ] {
            object.insert(field.to_owned(), value);
        }
    }
    Ok(catalogue.to_string().into_bytes())
}

pub(super) fn launch(input: &LaunchInput) -> Result<Launch, AgentError> {
    let request = input.request;
    // The step's author chooses its folder; whether it is a repository does not matter.
    let mut args = words(["exec", "--json", "--skip-git-repo-check"]);
    let mut files = Vec::new();
    for setting in request.config.iter().flat_map(toml::overrides) {
        args.extend(words(["-c", &setting]));
    }
    let mut launch = Launch::of(input);
    if input.mode == LaunchMode::Isolated {
        keep_login(input, &mut launch)?;
        let catalogue = input.private("models.json");
        args.extend(words(["--sandbox", "read-only", "--ephemeral"]));
        args.extend(words(["--ignore-user-config", "--ignore-rules"]));
        for feature in FEATURES {
            args.extend(words(["--disable", feature]));
        }
        let catalogue_text = toml::text(&json!(path_text(&catalogue)?));
        for setting in [
            "web_search=\"disabled\"".to_owned(),
            "tools.experimental_request_user_input.enabled=false".to_owned(),
            format!("model_catalog_json={catalogue_text}"),
        ] {
            args.extend(words(["-c", &setting]));
        }
        files.push((catalogue, input.installed.catalogue().to_vec()));
    }
    if input.mode != LaunchMode::Plain {
        for setting in toml::overrides(&server(input)?) {
            args.extend(words(["-c", &setting]));
        }
    }
    if let Some(model) = &request.model {
        args.extend(words(["--model", model]));
    }
    let mut prompt = input.prompt.clone();
    match &input.system_prompt {
        Some(system) if system.len() > ARGUMENT_BYTES_MAX => {
            prompt = format!("{system}\n\n{prompt}")
        }
        Some(system) => {
            let setting = format!("developer_instructions={}", toml::text(&json!(system)));
            args.extend(words(["-c", &setting]));
        }
        None => {}
    }
    args.extend(request.args.iter().cloned());
    args.push("-".to_owned());
    launch.files.extend(files);
    Ok(Launch { args, stdin: Some(prompt.into_bytes()), ..launch })
}

/// Gives the program its own home, except for the folder with the person's login, which it rewrites
/// as it uses it.
fn keep_login(input: &LaunchInput, launch: &mut Launch) -> Result<(), AgentError> {
    let set = input.var("CODEX_HOME").map(PathBuf::from);
    let own = set.or_else(|| Some(Path::new(input.var("HOME")?).join(".codex")));
    let own = own.filter(|folder| folder.is_dir());
    if let Some(folder) = &own {
        person::check_codex_variables(&folder.join(".env"))?;
    }
    ground::rehome(input, input.private("codex-person"), launch)?;
    let folder = own.unwrap_or_else(|| input.private("codex-home"));
    launch.env.push(("CODEX_HOME".to_owned(), path_text(&folder)?));
    if folder.starts_with(&input.request.private) {
        launch.folders.push(folder);
    }
    Ok(())
}

fn server(input: &LaunchInput) -> Result<Value, AgentError> {
    let server = &input.request.server;
    Ok(json!({"mcp_servers": {SERVER_NAME: {
        "command": path_text(&server.program)?,
        "args": server.args,
        "required": true,
        "default_tools_approval_mode": "approve",
        "tool_timeout_sec": input.request.call_timeout.as_secs().max(1),
    }}}))
}

/// Reads one event of `--json`.
pub(super) fn line(event: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    match text(&event["type"]) {
        "item.started" | "item.completed" | "item.updated" => item(event, report),
        "turn.completed" => {
            let usage = &event["usage"];
            report.tokens(TokenUsage::of(
                count(&usage["input_tokens"]),
                count(&usage["output_tokens"]),
            ));
            report.finished();
            report.usage()
        }
        "turn.failed" => report.failed(text(&event["error"]["message"])),
        "error" => report.error(text(&event["message"])),
        _ => Vec::new(),
    }
}

fn item(event: &Value, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    let item = &event["item"];
    let id = text(&item["id"]);
    match text(&item["type"]) {
        "agent_message" if event["type"] == "item.completed" => {
            let mut events = report.in_turn();
            events.extend(report.text_of_its_own(text(&item["text"])));
            events
        }
        "error" => report.warning(text(&item["message"])),
        "agent_message" | "reasoning" | "todo_list" => Vec::new(),
        "mcp_tool_call" => {
            let name = format!("{}.{}", text(&item["server"]), text(&item["tool"]));
            let inert = READERS.contains(&name.as_str());
            if inert { Vec::new() } else { called(event, id, &name, report) }
        }
        // Anything else is an action of the program itself.
        other => {
            let mut events = called(event, id, other, report);
            if item["status"] == "declined" {
                events.extend(report.refused(id));
            }
            events
        }
    }
}

/// The program does not say where an answer of the model ends: a call that begins after the result
/// of another counts as a new turn.
fn called(event: &Value, id: &str, name: &str, report: &mut ReportBuilder) -> Vec<AgentEvent> {
    let mut events = report.in_turn();
    events.extend(report.call(Provider::Codex, id, name));
    if event["type"] == "item.completed" {
        report.turn_ends();
    }
    events
}
