//! Log lines, on stderr. `COUNTERSIGN_LOG` takes a filter such as `debug` or `gateway=trace`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command, LogFormat};

pub(crate) fn start(cli: &Cli) {
    let level = match cli.command {
        Command::Serve(_) => "info",
        _ => "warn",
    };
    let filter =
        EnvFilter::try_from_env("COUNTERSIGN_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    match cli.log_format {
        LogFormat::Text => lines.with_ansi(colour).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
