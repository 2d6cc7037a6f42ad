//! Log lines, on stderr. `COUNTERSIGN_LOG` takes a filter such as `debug` or `gateway=trace`.

mod line;
mod writer;

use std::io::IsTerminal;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use redact::Redactor;
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command, LogFormat, RunFormat};
use crate::logging::line::{JsonLine, TextLine};
use crate::logging::writer::Writer;

/// Keeps the log running. Lines logged before it is dropped are written by then.
pub(crate) struct Logging(Writer);

impl Drop for Logging {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Removes secrets from log lines. Until a gate gives its own, the first line builds one.
static REDACTOR: ArcSwapOption<Redactor> = ArcSwapOption::const_empty();

/// Redacts log lines by a gate's rules from here on.
pub(crate) fn redact_with(redactor: Arc<Redactor>) {
    REDACTOR.store(Some(redactor));
}

/// Returns what removes secrets from everything that this process reports.
pub(crate) fn redactor() -> Arc<Redactor> {
    REDACTOR.load_full().unwrap_or_else(|| {
        let builtin = Arc::new(Redactor::builtin());
        REDACTOR.compare_and_swap(&None::<Arc<Redactor>>, Some(builtin.clone()));
        builtin
    })
}

pub(crate) fn start(cli: &Cli) -> Logging {
    // On a terminal, a run shows its own progress.
    let level = match &cli.command {
        Command::Serve(_) => "info",
        // The demo tells what happens in its own lines.
        Command::Demo(_) => "error",
        Command::Run(run) if run.format == RunFormat::Quiet => "error",
        Command::Run(_) if !std::io::stderr().is_terminal() => "info",
        _ => "warn",
    };
    let filter =
        EnvFilter::try_from_env("COUNTERSIGN_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let writer = Writer::start(std::io::stderr());
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer.clone())
        .with_target(false);
    match cli.log_format {
        LogFormat::Text => lines.with_ansi(colour).event_format(TextLine::default()).init(),
        LogFormat::Json => lines.json().flatten_event(true).map_event_format(JsonLine).init(),
    }
    let (flushing, before) = (writer.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        flushing.flush();
        before(panic);
    }));
    Logging(writer)
}
