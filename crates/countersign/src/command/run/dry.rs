//! `run --dry-run`: shows what each step would start, without starting anything.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::config::Config;
use redact::REDACTED;
use runner::agent::{self, InstalledAgent, Launch, Person, Provider, Search, Symlink, prepare};
use runner::openai::ModelSettings;
use runner::step::{self, StepFolders};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
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
    // Keys can come in through `options` and the user's own files.
    let redactor = config.redact.redactor();
    home.hide_keys(redactor.known());
    let mut steps = Vec::new();
    for state in &workflow.states {
        if !matches!(state.type_name(), "terminal" | "parallel") {
            let number = steps.len();
            let private = crate::step::folder_of(home.path(), number);
            let planned = step_of(&machine, state, &private).await;
            let mut step = serde_json::to_value(planned).map_err(undescribed)?;
            redactor.value(&mut step);
            steps.push(step);
        }
    }
    match format {
        RunFormat::Quiet => Ok(()),
        RunFormat::Json | RunFormat::Jsonl => {
            output::line(&crate::json::pretty(&Plan { workflow: &workflow.name, steps: &steps }))
        }
        RunFormat::Text => {
            let texts = steps.iter().map(|step| PlannedStep::deserialize(step).map(words));
            let texts = texts.collect::<Result<Vec<String>, _>>().map_err(undescribed)?;
            output::line(&texts.join("\n\n"))
        }
    }
}

fn undescribed(error: serde_json::Error) -> Failure {
    Failure::system(format!("cannot print a step: {error}"))
}

#[derive(Serialize)]
struct Plan<'a> {
    workflow: &'a str,
    /// The planned steps, with their secrets redacted.
    steps: &'a [Value],
}

/// The plan of a step; its members depend on its type. Members that are not read again serve
/// programs only.
#[derive(Default, Serialize, Deserialize)]
struct PlannedStep {
    state: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    /// The reason or reasons the command is not known: one text or several.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    inputs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    has_key: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    max_turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argv: Option<Vec<String>>,
    /// Null if it is the folder that the run is started in.
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<Option<PathBuf>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env_removed: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<PlannedFile>>,
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    links: Option<Vec<PlannedLink>>,
    /// Null if nothing is written to stdin.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin_bytes: Option<Option<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    isolation: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct PlannedFile {
    path: PathBuf,
    content: String,
}

#[derive(Serialize)]
struct PlannedLink {
    path: PathBuf,
    to: PathBuf,
}

impl From<Symlink> for PlannedLink {
    fn from(link: Symlink) -> PlannedLink {
        PlannedLink { path: link.path, to: link.target }
    }
}

/// Plans a step as it would run first. Parts that depend on earlier steps cannot be known.
async fn step_of(machine: &Machine, state: &State, private: &Path) -> PlannedStep {
    let step = PlannedStep {
        state: state.name.clone(),
        kind: state.type_name().to_owned(),
        ..PlannedStep::default()
    };
    match machine.resolve(&state.name) {
        Err(fault) => PlannedStep { unknown: Some(fault.to_string().into()), ..step },
        Ok(ResolvedStep::Command { command, dir }) => PlannedStep {
            argv: Some(vec!["sh".to_owned(), "-c".to_owned(), command]),
            dir: Some(dir.map(PathBuf::from)),
            ..step
        },
        Ok(ResolvedStep::Operation { plugin, operation, inputs, .. }) => PlannedStep {
            operation: Some(format!("{plugin}.{operation}")),
            inputs: Some(json!(inputs)),
            ..step
        },
        Ok(ResolvedStep::Agent(agent)) => {
            let step = PlannedStep { provider: Some(agent.provider.name().to_owned()), ..step };
            let proxy = state.agent().map(|agent| agent.proxy.clone()).unwrap_or_default();
            if agent.provider == workflow::Provider::OpenAiCompatible {
                return requested(step, &agent, &proxy);
            }
            match launch(&agent, &proxy, private).await {
                Ok((launch, dir)) => launched(step, launch, dir),
                Err(error) => PlannedStep { unknown: Some(error.into()), ..step },
            }
        }
    }
}

async fn launch(
    agent: &ResolvedAgent,
    proxy: &Proxy,
    private: &Path,
) -> Result<(Launch, PathBuf), String> {
    let provider = Provider::parse(agent.provider.name()).ok_or_else(|| {
        format!("{} runs in this process and starts no program", agent.provider.name())
    })?;
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let command = agent.options.command.as_deref().map(|command| step::command_in(&here, command));
    let path = std::env::var_os("PATH");
    let supervisor = folders::own_program();
    // A step's folder is `<home>/steps/<name>`.
    let probes = private.ancestors().nth(2).map(folders::probes);
    let probes = probes.filter(|_| proxy.is_isolating());
    let search = Search {
        command: command.as_deref(),
        path: path.as_deref(),
        supervisor: supervisor.as_deref(),
        probes: probes.as_deref(),
        notice: None,
    };
    let installed =
        InstalledAgent::detect(provider, &search).await.map_err(|error| error.to_string())?;
    let dir = agent.dir.as_deref().map_or_else(|| here.clone(), |dir| here.join(dir));
    let (program, args) = server_of(private);
    let request = step::request(
        agent,
        agent::AgentServer { program, args },
        step::tools(proxy),
        StepFolders { work: dir.clone(), private: private.to_owned() },
        Workspace::CALL_TIMEOUT,
    );
    let launch = prepare(&installed, &request, &Person::new(std::env::vars_os()));
    Ok((launch.map_err(|error| error.to_string())?, dir))
}

fn launched(step: PlannedStep, launch: Launch, dir: PathBuf) -> PlannedStep {
    let argv = std::iter::once(launch.program.display().to_string()).chain(launch.args);
    let env = launch.env.into_iter().map(|(name, value)| {
        let value = shown(&name, value);
        (name, value.into())
    });
    let file = |(path, bytes): (PathBuf, Vec<u8>)| PlannedFile {
        path,
        content: String::from_utf8_lossy(&bytes).into_owned(),
    };
    let isolation = match launch.isolation {
        agent::Isolation::Full => "full".to_owned(),
        agent::Isolation::Coexistence { reason } => format!("coexistence: {reason}"),
    };
    PlannedStep {
        argv: Some(argv.collect()),
        dir: Some(Some(dir)),
        env: Some(env.collect()),
        env_removed: Some(launch.env_remove),
        files: Some(launch.files.into_iter().map(file).collect()),
        links: Some(launch.links.into_iter().map(PlannedLink::from).collect()),
        stdin_bytes: Some(launch.stdin.map(|bytes| bytes.len())),
        isolation: Some(isolation),
        ..step
    }
}

/// Plans a request that this program sends to a model: the address and the tools. Shows whether
/// there is a key, never the key.
fn requested(step: PlannedStep, agent: &ResolvedAgent, proxy: &Proxy) -> PlannedStep {
    let is_isolated = step::tools(proxy) == agent::AgentTools::Only;
    let step = PlannedStep {
        dir: Some(agent.dir.as_ref().map(PathBuf::from)),
        tools: Some(tool_names(proxy)),
        isolation: Some(if is_isolated { "full" } else { "none" }.to_owned()),
        ..step
    };
    let env: Vec<_> = std::env::vars_os().collect();
    match ModelSettings::new(&agent.options, &env) {
        Ok(settings) => PlannedStep {
            url: Some(settings.shown_url()),
            model: Some(settings.model.clone()),
            has_key: Some(settings.key.is_given()),
            stream: Some(settings.stream),
            max_turns: Some(settings.max_turns),
            ..step
        },
        Err(faults) => {
            let messages: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
            PlannedStep { unknown: Some(json!(messages.join("; "))), ..step }
        }
    }
}

/// Returns the tool names as a model would get them; the servers are not queried for theirs.
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

/// Returns a variable's value, unless its name suggests a key. Variable names do so in more ways
/// than the redactor knows.
fn shown(name: &str, value: String) -> String {
    let words = ["KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"];
    let is_key = name.split('_').any(|word| words.contains(&word.to_ascii_uppercase().as_str()));
    if is_key { REDACTED.to_owned() } else { value }
}

/// Quotes a word as for a shell.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    let plain = !text.is_empty() && text.chars().all(is_plain);
    if plain { text.to_owned() } else { workflow::quoted(text) }
}

fn words(step: PlannedStep) -> String {
    let title = match step.provider {
        Some(provider) => format!("{} ({provider})", step.state),
        None => step.state,
    };
    let mut lines = vec![output::plain(&title)];
    let mut say = |name: &str, text: &str| {
        let text = output::plain_lines(text).replace('\n', "\n            ");
        lines.push(format!("  {name:<9} {text}"));
    };
    let unknown = step.unknown.and_then(|unknown| unknown.as_str().map(str::to_owned));
    let dir = step.dir.flatten().map(|dir| dir.display().to_string());
    for (name, text) in [
        ("unknown", unknown),
        ("operation", step.operation),
        ("url", step.url),
        ("model", step.model),
        ("dir", dir),
    ] {
        text.iter().for_each(|text| say(name, text));
    }
    if let Some(argv) = step.argv {
        say("argv", &argv.iter().map(|text| word(text)).collect::<Vec<_>>().join(" "));
    }
    for (name, value) in step.env.iter().flatten() {
        say("env", &format!("{name}={}", value.as_str().unwrap_or_default()));
    }
    step.env_removed.iter().flatten().for_each(|name| say("without", name));
    for file in step.files.iter().flatten() {
        say("file", &format!("{}\n{}", file.path.display(), file.content));
    }
    if let Some(bytes) = step.stdin_bytes.flatten() {
        say("stdin", &format!("{bytes} bytes"));
    }
    if let Some(tools) = step.tools {
        say("tools", &tools.join(" "));
    }
    if let Some(isolation) = step.isolation {
        say("isolation", &isolation);
    }
    lines.join("\n")
}
