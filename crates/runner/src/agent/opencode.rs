//! OpenCode: `opencode run --format json`, with its config in a variable. No file of the workspace
//! is touched.

use serde_json::{Map, Value, json};

use super::launch::{Launch, Mode, Wanted, path_text, words};
use super::stream::{Collected, Event, Tokens, count, text};
use super::{AgentError, Provider, SERVER_NAME, guard};

pub(super) const NEEDED: &[&str] = &["--format", "--model"];
pub(super) const ISOLATING: &[&str] = &["--pure", "--agent"];

const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

/// Fetches and project files that an isolated step goes without.
const DISABLED: [&str; 5] = [
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
];

pub(super) fn launch(wanted: &Wanted) -> Result<Launch, AgentError> {
    let request = wanted.request;
    let mut launch = Launch { args: words(["run", "--format", "json"]), ..Launch::of(wanted) };
    let mut config = config(wanted)?;
    if let Some(system) = &wanted.system_prompt {
        let path = wanted.private("system.md");
        let instructions = config.entry("instructions").or_insert_with(|| json!([]));
        if let Some(list) = instructions.as_array_mut() {
            list.push(json!(path_text(&path)?));
        }
        launch.files.push((path, system.clone().into_bytes()));
    }
    if wanted.mode == Mode::Isolated {
        isolate(wanted, &mut launch)?;
    }
    if !config.is_empty() {
        launch.env.push((CONFIG.to_owned(), Value::Object(config).to_string()));
    }
    if let Some(model) = &request.model {
        launch.args.extend(words(["--model", model]));
    }
    launch.args.extend(request.args.iter().cloned());
    Ok(launch)
}

/// The config home alone is not enough: a `.opencode` in the home is read as well, so the step gets
/// an empty one, and an agent of its own that nobody else can have loosened.
fn isolate(wanted: &Wanted, launch: &mut Launch) -> Result<(), AgentError> {
    launch.args.extend(words(["--pure", "--agent", SERVER_NAME]));
    for (name, folder) in
        [("XDG_CONFIG_HOME", "opencode-config"), ("OPENCODE_TEST_HOME", "opencode-home")]
    {
        let folder = wanted.private(folder);
        launch.env.push((name.to_owned(), path_text(&folder)?));
        launch.folders.push(folder);
    }
    // Programs that begin at the same moment would get into each other's way in the person's own.
    let database = path_text(&wanted.private("opencode.db"))?;
    launch.env.push(("OPENCODE_DB".to_owned(), database));
    launch.env.extend(DISABLED.map(|name| (name.to_owned(), "1".to_owned())));
    let steers =
        |name: &str| name.starts_with("OPENCODE_") && !guard::OPENCODE_FREE.contains(&name);
    launch.env_remove = wanted.person.names(steers);
    Ok(())
}

/// Ours over what the step asks for; where the person's own config stays, over that too.
fn config(wanted: &Wanted) -> Result<Map<String, Value>, AgentError> {
    let mut config = Value::Object(Map::new());
    if wanted.mode != Mode::Isolated
        && let Some(text) = wanted.var(CONFIG)
    {
        let person = serde_json::from_str(text)
            .map_err(|error| AgentError::BadOption(format!("{CONFIG} is not JSON: {error}")))?;
        lay_over(&mut config, person);
    }
    if let Some(asked) = &wanted.request.config {
        lay_over(&mut config, asked.clone());
    }
    if wanted.mode != Mode::Plain {
        lay_over(&mut config, ours(wanted)?);
    }
    Ok(config.as_object().cloned().unwrap_or_default())
}

fn ours(wanted: &Wanted) -> Result<Value, AgentError> {
    let server = &wanted.request.server;
    let mut command = vec![path_text(&server.program)?];
    command.extend(server.args.iter().cloned());
    let timeout_ms = wanted.request.call_timeout.as_millis() as u64;
    let mut ours = json!({"mcp": {SERVER_NAME: {
        "type": "local", "command": command, "enabled": true, "timeout": timeout_ms,
    }}});
    if wanted.mode == Mode::Isolated {
        let permission = json!({"*": "deny", format!("{SERVER_NAME}_*"): "allow"});
        ours["permission"] = permission.clone();
        ours["agent"] = json!({SERVER_NAME: {"mode": "primary", "permission": permission}});
    }
    Ok(ours)
}

/// Objects are merged, member by member; any other value is replaced.
fn lay_over(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (name, value) in over {
                lay_over(under.entry(name).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

/// One event of `--format json`.
pub(super) fn line(event: &Value, seen: &mut Collected) -> Vec<Event> {
    let part = &event["part"];
    match text(&event["type"]) {
        "step_start" => {
            seen.text_begins();
            Vec::new()
        }
        "text" => seen.text(text(&part["text"])),
        "tool_use" => tool_use(part, seen),
        "step_finish" => step_finish(part, seen),
        "error" => {
            let error = &event["error"];
            let words =
                [text(&error["data"]["message"]), text(&error["message"]), text(&error["name"])];
            let words = words.into_iter().find(|words| !words.is_empty()).unwrap_or("it failed");
            seen.failed(words)
        }
        _ => Vec::new(),
    }
}

fn tool_use(part: &Value, seen: &mut Collected) -> Vec<Event> {
    let id = text(&part["callID"]);
    let mut events = seen.call(Provider::OpenCode, id, text(&part["tool"]));
    let error = text(&part["state"]["error"]);
    if error.contains("unavailable tool") || error.contains("a rule which prevents") {
        events.extend(seen.refused(id));
    }
    events
}

fn step_finish(part: &Value, seen: &mut Collected) -> Vec<Event> {
    let tokens = &part["tokens"];
    let cached = count(&tokens["cache"]["read"]) + count(&tokens["cache"]["write"]);
    let input = count(&tokens["input"]) + cached;
    let output = count(&tokens["output"]) + count(&tokens["reasoning"]);
    seen.add_tokens(Tokens::of(input, output));
    seen.add_cost(part["cost"].as_f64());
    if part["reason"] != "tool-calls" {
        seen.finished();
    }
    Vec::new()
}
