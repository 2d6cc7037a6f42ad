//! `countersign run`: runs a workflow, or a single agent, from its text to its end.

mod calls;
mod dry;
mod known;
mod live;
mod moment;
mod recorder;
mod resume;
mod screen;
mod tree;
mod writes;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use domain::config::Config;
use provider::TraceContext;
use runner::agent::{InstalledAgent, Person, ProbeNotice};
use runner::environment::RunEnvironment;
use runner::run::Order;
use serde::Serialize;
use serde_json::json;
use store::run::RunSource;
use tokio_util::sync::CancellationToken;
use workflow::{self, Finish, Inputs, Machine, Workflow};

use self::live::Live;
use self::recorder::Recorder;
use self::resume::EarlierRun;
use self::writes::Writes;
use crate::cli::{Run, RunFormat};
use crate::exit::Failure;
use crate::home::Home;
use crate::logging;
use crate::plugins::Plugins;
use crate::site::Site;
use crate::step::Steps;
use crate::stop_signal::StopSignal;
use crate::{folders, output};
use telemetry::SpanExport;

pub(crate) use known::checked;
pub(crate) use moment::{EndedStep, Moment, RunFinish, RunStart, SeenCall, StepStart};
pub(crate) use tree::{Colour, Tree};

/// The name of the only state in a run without a file.
const ONLY_STATE: &str = "agent";

pub(crate) async fn run(site: &Site, args: Run) -> Result<(), Failure> {
    let mut stop = StopSignal::new()?;
    let source = site.source()?;
    source.log_notes();
    let mut config = source.config.clone();
    let home = site.home()?;
    let earlier = match &args.resume {
        Some(id) => Some(EarlierRun::read(site, id).await?),
        None => None,
    };
    let RunRequest { text, inputs, file } = asked(&args, earlier.as_ref())?;
    let plugins = Plugins::find(home.path(), &config);
    let notice = |found: &InstalledAgent| report_probe(args.format, found);
    let notice: Option<ProbeNotice> = match args.format {
        RunFormat::Text | RunFormat::Jsonl => Some(&notice),
        RunFormat::Json | RunFormat::Quiet => None,
    };
    // This queries the agents' programs and the plugins, which may take a while.
    let read = tokio::select! {
        read = checked(&text, &config, home.path(), &plugins, notice) => read,
        () = stop.received() => return Err(cancelled()),
    };
    for warning in read.warnings.iter().filter(|_| args.format != RunFormat::Quiet) {
        output::note(&format!("warning: {}: {warning}", warning.code));
    }
    let Some(workflow) = read.workflow else {
        return Err(Failure::config(faults(&read.errors)));
    };
    let inputs = workflow.inputs(&inputs).map_err(|found| Failure::input(faults(&found)))?;
    let workflow = Arc::new(workflow);
    home.prepare()?;
    if args.dry_run {
        return tokio::select! {
            shown = dry::show(home, &config, &workflow, inputs, args.format) => shown,
            () = stop.received() => Err(cancelled()),
        };
    }
    if let Some(exporter) = args.otel_exporter {
        config.telemetry.exporter = exporter;
    }
    if let Some(name) = args.otel_service_name {
        config.telemetry.service_name = name;
    }
    // A run without a file cannot be resumed, and its input is a prompt.
    let kept = inputs.iter().filter(|_| file.is_some());
    let kept: Vec<_> = kept.map(|(name, value)| (name.to_owned(), Some(value.clone()))).collect();
    let (mut machine, id) = machine(&workflow, inputs);
    let resumed_from = earlier.as_ref().map(|earlier| earlier.id().to_owned());
    if let Some(earlier) = earlier {
        machine = machine.resumed(earlier.resumption(&workflow, &text)?);
    }
    let source = RunSource {
        hash: resume::hash(&text),
        dir: resume::current_dir()?.display().to_string(),
        began_at: machine.at().to_owned(),
        inputs: kept,
    };
    let order = Order { id, file, resumed_from, parent: parent() };
    let ran = go(home, (config, plugins), args.format, (machine, order, source), stop).await?;
    tell(args.format, &workflow, &ran)?;
    match ran.finish.exit_status {
        0 => Ok(()),
        status => Err(Failure::with_status(status, words(&ran.finish, args.format))),
    }
}

/// Shows that a program is probed, which happens before the run begins.
fn report_probe(format: RunFormat, found: &InstalledAgent) {
    let (agent, version) = (found.provider().as_str(), found.version());
    if format == RunFormat::Jsonl {
        let moment = Moment::Probe {
            step: None,
            agent: Some(agent.to_owned()),
            version: version.to_owned(),
        };
        // The run itself detects a reader that is gone.
        let _ = output::line(&moment.json_line());
    } else {
        output::note(&moment::probe_words(agent, version));
    }
}

/// The result of a run.
struct RunResult {
    id: String,
    finish: Finish,
    steps: Vec<EndedStep>,
}

/// A workflow's text and its inputs.
struct RunRequest {
    text: String,
    inputs: Vec<(String, String)>,
    /// The file that the text was read from.
    file: Option<String>,
}

fn asked(args: &Run, earlier: Option<&EarlierRun>) -> Result<RunRequest, Failure> {
    let earlier_file = earlier.map(|earlier| earlier.file()).transpose()?;
    let Some(file) = args.file.as_ref().or(earlier_file.as_ref()) else {
        return alone(args);
    };
    let text = text_of(file)?;
    let inputs = match earlier {
        Some(earlier) => {
            earlier.check(&text)?;
            earlier.inputs(&args.inputs)?
        }
        None => args.inputs.clone(),
    };
    let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
    let file = Some(file.display().to_string());
    Ok(RunRequest { text, inputs, file })
}

/// Reads the text of a workflow's file.
pub(crate) fn text_of(file: &Path) -> Result<String, Failure> {
    text_within(file, known::FILE_BYTES_MAX).map_err(|error| {
        Failure::input(format!("cannot read workflow '{}': {error}", file.display()))
    })
}

/// Reads the text of a file of any kind, even an endless one.
pub(crate) fn text_within(file: &Path, bytes_max: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|error| error.to_string())?;
    let read = opened.take(bytes_max + 1).read_to_end(&mut bytes);
    if read.map_err(|error| error.to_string())? as u64 > bytes_max {
        return Err(format!("the file is larger than {bytes_max} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// Makes a workflow of one agent. The prompt is passed as an input, since it is not a template.
fn alone(args: &Run) -> Result<RunRequest, Failure> {
    if !args.inputs.is_empty() {
        return Err(Failure::input(
            "--input requires a workflow file: put the values into the prompt instead",
        ));
    }
    if args.prompt.as_deref().is_none_or(|prompt| prompt.trim().is_empty()) {
        return Err(Failure::input("the prompt is empty"));
    }
    let mut inputs = vec![json!({"name": "prompt", "required": true})];
    let mut given = vec![("prompt".to_owned(), args.prompt.clone().unwrap_or_default())];
    let mut options = json!({});
    if let Some(model) = &args.model {
        inputs.push(json!({"name": "model"}));
        given.push(("model".to_owned(), model.clone()));
        options["model"] = json!("{{.inputs.model}}");
    }
    let provider = args.provider.clone().unwrap_or_default();
    let plugins = args.plugins.iter();
    let plugins: Vec<serde_json::Value> = plugins
        .map(|(plugin, operations)| json!({"plugin": plugin, "expose": operations}))
        .collect();
    let text = json!({
        "name": "run",
        "inputs": inputs,
        "states": {
            "initial": ONLY_STATE,
            ONLY_STATE: {
                "type": "agent",
                "provider": provider,
                "prompt": "{{.inputs.prompt}}",
                "options": options,
                "mcp_proxy": {
                    "enable": true,
                    "mcp_servers": args.servers,
                    "plugin_tools": plugins,
                },
                "on_success": "done",
            },
            "done": {"type": "terminal", "status": "success"},
        },
    });
    Ok(RunRequest { text: text.to_string(), inputs: given, file: None })
}

/// Returns the trace that the caller wants the run to belong to.
fn parent() -> TraceContext {
    let variable = |name: &str| std::env::var(name).ok();
    TraceContext { traceparent: variable("TRACEPARENT"), tracestate: variable("TRACESTATE") }
}

fn machine(workflow: &Arc<Workflow>, inputs: Inputs) -> (Machine, String) {
    let id = uuid::Uuid::now_v7().to_string();
    let env = |name: &str| std::env::var(name).ok();
    (Machine::new(workflow.clone(), inputs, id.clone(), env), id)
}

async fn go(
    home: &Home,
    (config, plugins): (Config, Plugins),
    format: RunFormat,
    (machine, order, source): (Machine, Order, RunSource),
    mut stop: StopSignal,
) -> Result<RunResult, Failure> {
    let telemetry = SpanExport::start(&config.telemetry, logging::redactor);
    let redactor = config.redact.redactor();
    home.hide_keys(redactor.known());
    let steps = Arc::new(Steps::new(home, config, plugins, telemetry.tracer())?);
    let store = steps.store().clone();
    let (writes, written) = Writes::start(store.clone(), redactor);
    let live = Live::start(format, &store, writes.clone());
    let recorder = Arc::new(Recorder::new(writes, source, live));
    let around = Arc::new(RunEnvironment {
        gates: steps.clone(),
        watch: recorder.clone(),
        tracer: telemetry.tracer(),
        supervisor: folders::own_program(),
        probes: Some(folders::probes(home.path())),
        dir: resume::current_dir()?,
        env: std::env::vars_os().collect(),
        person: Person::new(std::env::vars_os()),
    });
    let cancel = CancellationToken::new();
    let (id, workflow) = (order.id.clone(), machine.workflow().name.clone());
    let running = runner::run::run(&around, order, machine, cancel.clone());
    tokio::pin!(running);
    let finish = loop {
        tokio::select! {
            finish = &mut running => break finish,
            () = stop.received() => {
                if cancel.is_cancelled() {
                    // A second signal means that the user does not want to wait; the supervisors
                    // clean up.
                    steps.abandon();
                    return Err(cancelled());
                }
                recorder.remark("stopping the run; press Ctrl+C again to exit at once");
                cancel.cancel();
            }
        }
    };
    recorder.finish(finished(&id, &workflow, &finish));
    let steps_told = recorder.end(written).await;
    let _ = steps.store().close().await;
    telemetry.end().await;
    Ok(RunResult { id, finish, steps: steps_told })
}

fn finished(id: &str, workflow: &str, finish: &Finish) -> RunFinish {
    RunFinish {
        id: id.to_owned(),
        workflow: workflow.to_owned(),
        status: finish.ending.name().to_owned(),
        state: Some(finish.state.clone()),
        message: finish.message.clone(),
        error_code: finish.code.map(|code| code.as_str()),
        exit_code: Some(finish.exit_status),
    }
}

/// Returns the failure for a run that the user cancelled.
pub(crate) fn cancelled() -> Failure {
    Failure::with_status(workflow::EXIT_CANCELLED, "cancelled")
}

/// An ended run in the output for programs.
#[derive(Serialize)]
struct EndedRun<'a> {
    id: &'a str,
    workflow: &'a str,
    status: &'static str,
    state: &'a str,
    message: Option<&'a str>,
    error_code: Option<&'static str>,
    exit_code: u8,
    steps: &'a [EndedStep],
}

/// Prints the result of the run on stdout.
fn tell(format: RunFormat, workflow: &Workflow, ran: &RunResult) -> Result<(), Failure> {
    match format {
        // The lines of jsonl were printed as things happened.
        RunFormat::Quiet | RunFormat::Jsonl => Ok(()),
        RunFormat::Json => output::line(&crate::json::pretty(&EndedRun {
            id: &ran.id,
            workflow: &workflow.name,
            status: ran.finish.ending.name(),
            state: &ran.finish.state,
            message: ran.finish.message.as_deref(),
            error_code: ran.finish.code.map(|code| code.as_str()),
            exit_code: ran.finish.exit_status,
            steps: &ran.steps,
        })),
        RunFormat::Text => {
            let said = ran.steps.last().and_then(EndedStep::said);
            let message = ran.finish.message.as_deref().filter(|_| ran.finish.exit_status == 0);
            match message.or(said) {
                Some(text) => output::line(&output::plain_lines(text.trim_end())),
                None => Ok(()),
            }
        }
    }
}

/// Returns the message for stderr; a program that reads JSON already has all of it.
fn words(finish: &Finish, format: RunFormat) -> String {
    match format {
        RunFormat::Json | RunFormat::Jsonl => String::new(),
        RunFormat::Text | RunFormat::Quiet => {
            let message = finish.message.as_deref().unwrap_or("the run failed");
            let code = finish.code.map(|code| format!("{code}: ")).unwrap_or_default();
            format!("{code}{}", output::plain_lines(message))
        }
    }
}

fn faults(found: &[workflow::WorkflowFault]) -> String {
    let lines = found.iter().map(|fault| format!("{}: {fault}", fault.code));
    lines.collect::<Vec<_>>().join("\n")
}
