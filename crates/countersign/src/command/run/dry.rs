//! `run --dry-run`: what each step would start, and nothing started.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::config::Config;
use domain::ledger::redaction::{REDACTED, Redactor};
use runner::agent::{self, Installed, Launch, Person, Provider, Search, prepare};
use runner::openai::Settings;
use runner::step;
use serde_json::{Value, json};
use tools::builtin::Workspace;
use workflow::{self, BUILTINS, Inputs, Machine, Proxy, ResolvedAgent, ResolvedStep};
use workflow::{State, Workflow};

use super::machine;
use crate::cli::RunFormat;
use crate::exit::Failure;
use crate::home::Home;
use crate::step::server_of;
use crate::{folders, output};

pub(super) async fn show(
    home: &Home,
    config: &Config,
    workflow: &Arc<Workflow>,
    inputs: Inputs,
    format: RunFormat,
) -> Result<(), Failure> {
    let (machine, _) = machine(workflow, inputs);
    // Keys come in by `options` and by the person's own files.
    let redactor = Redactor::new(&config.redact.keys, &config.redact.patterns)
        .unwrap_or_else(|_| Redactor::builtin());
    let mut steps = Vec::new();
    for state in &workflow.states {
        if !matches!(state.type_name(), "terminal" | "parallel") {
            let number = steps.len();
            let private = crate::step::folder_of(home.path(), number);
            let mut step = step_of(&machine, state, &private).await;
            redactor.value(&mut step);
            steps.push(step);
        }
    }
    match format {
        RunFormat::Quiet => Ok(()),
        RunFormat::Json => {
            let plan = json!({"workflow": workflow.name, "steps": steps});
            output::line(&output::pretty(&plan))
        }
        RunFormat::Text => {
            let texts: Vec<String> = steps.iter().map(words).collect();
            output::line(&texts.join("\n\n"))
        }
    }
}

/// A step as it would be run first. What depends on earlier steps cannot be known.
async fn step_of(machine: &Machine, state: &State, private: &Path) -> Value {
    let mut told = json!({"state": state.name, "type": state.type_name()});
    match machine.resolve(&state.name) {
        Err(fault) => told["unknown"] = json!(fault.to_string()),
        Ok(ResolvedStep::Command { command, dir }) => {
            told["argv"] = json!(["sh", "-c", command]);
            told["dir"] = json!(dir);
        }
        Ok(ResolvedStep::Operation { plugin, operation, inputs, .. }) => {
            told["operation"] = json!(format!("{plugin}.{operation}"));
            told["inputs"] = json!(inputs);
        }
        Ok(ResolvedStep::Agent(agent)) => {
            told["provider"] = json!(agent.provider.name());
            let proxy = state.agent().map(|agent| agent.proxy.clone()).unwrap_or_default();
            if agent.provider == workflow::Provider::OpenAiCompatible {
                describe_request(&mut told, &agent, &proxy);
                return told;
            }
            match launch(&agent, &proxy, private).await {
                Ok((launch, dir)) => describe(&mut told, &launch, &dir),
                Err(error) => told["unknown"] = json!(error),
            }
        }
    }
    told
}

async fn launch(
    agent: &ResolvedAgent,
    proxy: &Proxy,
    private: &Path,
) -> Result<(Launch, PathBuf), String> {
    let provider = Provider::parse(agent.provider.name())
        .ok_or_else(|| format!("{} starts no program", agent.provider.name()))?;
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let command = agent.options.command.as_deref().map(|command| step::command_in(&here, command));
    let path = std::env::var_os("PATH");
    let supervisor = folders::own_program();
    let search = Search {
        command: command.as_deref(),
        path: path.as_deref(),
        supervisor: supervisor.as_deref(),
    };
    let installed =
        Installed::detect(provider, &search).await.map_err(|error| error.to_string())?;
    let dir = agent.dir.as_deref().map_or_else(|| here.clone(), |dir| here.join(dir));
    let (program, args) = server_of(private);
    let request = step::request(
        agent,
        agent::Server { program, args },
        step::tools(proxy),
        (dir.clone(), private.to_owned()),
        Workspace::CALL_TIMEOUT,
    );
    let launch = prepare(&installed, &request, &Person::new(std::env::vars_os()));
    Ok((launch.map_err(|error| error.to_string())?, dir))
}

fn describe(told: &mut Value, launch: &Launch, dir: &Path) {
    let argv = std::iter::once(launch.program.display().to_string());
    let argv: Vec<String> = argv.chain(launch.args.iter().cloned()).collect();
    let files = launch
        .files
        .iter()
        .map(|(path, bytes)| json!({"path": path, "content": String::from_utf8_lossy(bytes)}));
    told["argv"] = json!(argv);
    told["dir"] = json!(dir);
    told["env"] =
        launch.env.iter().map(|(name, value)| (name.clone(), shown(name, value))).collect();
    told["env_removed"] = json!(launch.env_remove);
    told["files"] = files.collect();
    told["links"] = launch.links.iter().map(|(link, to)| json!({"path": link, "to": to})).collect();
    told["stdin_bytes"] = json!(launch.stdin.as_ref().map(Vec::len));
    told["isolation"] = match &launch.isolation {
        agent::Isolation::Full => json!("full"),
        agent::Isolation::Coexistence { reason } => json!(format!("coexistence: {reason}")),
    };
}

/// A model is asked by ourselves: where, and with which tools. Whether there is a key, never which.
fn describe_request(told: &mut Value, agent: &ResolvedAgent, proxy: &Proxy) {
    let env: Vec<_> = std::env::vars_os().collect();
    match Settings::new(&agent.options, &env) {
        Ok(settings) => {
            told["url"] = json!(settings.shown_url());
            told["model"] = json!(settings.model);
            told["has_key"] = json!(settings.key.is_given());
            told["stream"] = json!(settings.stream);
            told["max_turns"] = json!(settings.max_turns);
        }
        Err(faults) => told["unknown"] = json!(faults),
    }
    told["dir"] = json!(agent.dir);
    told["tools"] = json!(tool_names(proxy));
    let is_isolated = step::tools(proxy) == agent::Tools::Only;
    told["isolation"] = json!(if is_isolated { "full" } else { "none" });
}

/// As a model would be told them; which tools servers have is not asked.
fn tool_names(proxy: &Proxy) -> Vec<String> {
    if !proxy.enable {
        return Vec::new();
    }
    let builtins = BUILTINS.iter().filter(|_| proxy.intercept_builtins);
    let servers = proxy.mcp_servers.iter().map(|server| format!("{server}__*"));
    let plugins = proxy.plugin_tools.iter().flat_map(|tools| {
        tools.expose.iter().map(|operation| format!("{}_{operation}", tools.plugin))
    });
    builtins.map(|name| (*name).to_owned()).chain(servers).chain(plugins).collect()
}

/// A variable's value, unless its name says that it is a key. Names of variables say so more freely
/// than those that the redactor knows.
fn shown(name: &str, value: &str) -> Value {
    let words = ["KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"];
    let is_key = name.split('_').any(|word| words.contains(&word.to_ascii_uppercase().as_str()));
    if is_key { json!(REDACTED) } else { json!(value) }
}

/// As one would type it.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let plain = !text.is_empty() && text.chars().all(is_plain);
    if plain { text.to_owned() } else { workflow::quoted(text) }
}

fn words(step: &Value) -> String {
    let title = match step["provider"].as_str() {
        Some(provider) => format!("{} ({provider})", output::text(step, "state")),
        None => output::text(step, "state"),
    };
    let mut lines = vec![output::plain(&title)];
    let mut say = |name: &str, text: String| {
        lines.push(format!(
            "  {name:<9} {}",
            output::plain_lines(&text).replace('\n', "\n            ")
        ));
    };
    for name in ["unknown", "operation", "url", "model", "dir"] {
        if let Some(text) = step[name].as_str() {
            say(name, text.to_owned());
        }
    }
    if let Some(argv) = step["argv"].as_array() {
        let quoted = argv.iter().filter_map(Value::as_str).map(word);
        say("argv", quoted.collect::<Vec<_>>().join(" "));
    }
    for (name, value) in step["env"].as_object().into_iter().flatten() {
        say("env", format!("{name}={}", value.as_str().unwrap_or_default()));
    }
    for name in step["env_removed"].as_array().into_iter().flatten() {
        say("without", name.as_str().unwrap_or_default().to_owned());
    }
    for file in step["files"].as_array().into_iter().flatten() {
        say("file", format!("{}\n{}", output::text(file, "path"), output::text(file, "content")));
    }
    if let Some(bytes) = step["stdin_bytes"].as_u64() {
        say("stdin", format!("{bytes} bytes"));
    }
    if let Some(tools) = step["tools"].as_array() {
        let names: Vec<&str> = tools.iter().filter_map(Value::as_str).collect();
        say("tools", names.join(" "));
    }
    if let Some(isolation) = step["isolation"].as_str() {
        say("isolation", isolation.to_owned());
    }
    lines.join("\n")
}
