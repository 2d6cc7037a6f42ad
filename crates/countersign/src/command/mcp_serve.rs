//! `countersign mcp-serve --config=<file>`: the MCP server that the agent in a step starts. It
//! copies bytes to the step's gate; if the file names no gate, it is the gate itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::Caller;
use gateway::front::{stdio, step};
use provider::TraceContext;
use runner::gate::{GateRequest, PluginGrant};
use text::json;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tools::builtin::Workspace;

use super::mcp::copy;
use super::run::text_within;
use crate::cli::Locations;
use crate::exit::Failure;
use crate::logging;
use crate::plugins::Plugins;
use crate::site::Site;
use crate::step::{StepFile, Steps};
use crate::stop_signal::StopSignal;
use telemetry::SpanExport;

/// The size limit of a step's file, which holds names and paths.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The agent's name if the file does not give one.
const AGENT: &str = "mcp-serve";

/// Uses the step's file instead of the program's own config.
pub(crate) async fn run(site: &Site) -> Result<(), Failure> {
    let Locations { config: file, home, alone } = site.place().clone();
    let file = file.ok_or_else(|| {
        Failure::input("the step's file is missing: name it with --config=<file>")
    })?;
    let step = read(&file)?;
    match step.gate {
        Some(socket) => {
            let stream = UnixStream::connect(&socket).await.map_err(|error| {
                let socket = socket.display();
                Failure::system(format!("cannot reach the step's gate at '{socket}': {error}"))
            })?;
            let (reader, writer) = stream.into_split();
            // Set explicitly: the parent process may have left SIGINT ignored.
            let mut told = StopSignal::new()?;
            tokio::select! {
                copied = copy(reader, writer) => copied,
                () = told.received() => Ok(()),
            }
        }
        None => serve(&Site::new(Locations { config: None, home, alone }), step).await,
    }
}

fn read(file: &Path) -> Result<StepFile, Failure> {
    let text = text_within(file, FILE_BYTES_MAX);
    let read = text.and_then(|text| {
        serde_json::from_str(&text).map_err(|error| json::explain_in_file(&error))
    });
    read.map_err(|error| {
        Failure::config(format!("cannot read the step's file '{}': {error}", file.display()))
    })
}

async fn serve(site: &Site, step: StepFile) -> Result<(), Failure> {
    let mut told = StopSignal::new()?;
    let source = site.source()?;
    source.log_notes();
    let home = site.home()?;
    home.prepare()?;
    let telemetry = SpanExport::start(&source.config.telemetry, logging::redactor);
    let plugins = Plugins::find(home.path(), &source.config);
    let steps = Steps::new(home, source.config.clone(), plugins, telemetry.tracer())?;
    let agent = step.agent.unwrap_or_else(|| AGENT.to_owned());
    let wanted = GateRequest {
        agent: agent.clone(),
        root: step.root_dir.unwrap_or_else(|| PathBuf::from(".")),
        builtins: step.intercept_builtins,
        servers: step.mcp_servers,
        plugins: step.plugin_tools.into_iter().map(PluginGrant::from).collect(),
        patience: Workspace::CALL_TIMEOUT,
        kept_bytes: None,
        withheld: Vec::new(),
        trace: TraceContext::default(),
        cancel: CancellationToken::new(),
    };
    let opened = tokio::select! {
        opened = steps.gateway(&wanted) => opened,
        () = told.received() => return Ok(()),
    };
    let gateway = opened
        .map_err(|refusal| Failure::config(format!("{}: {}", refusal.code, refusal.message)))?;
    let caller = Arc::new(Caller::agent(&agent));
    let service = step::open(&gateway, &caller, &Arc::default(), wanted.trace);
    let stop = CancellationToken::new();
    let serving = stdio::serve(service, tokio::io::stdin(), tokio::io::stdout(), stop.clone());
    told.or_done(serving, stop).await;
    gateway.drain().await;
    telemetry.end().await;
    Ok(())
}
