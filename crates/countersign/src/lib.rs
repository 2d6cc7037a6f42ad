//! The program: arguments in, wiring, exit codes out.

mod app;
mod cli;
mod command;
mod control;
mod demo;
mod exit;
mod fingerprint;
mod folders;
mod home;
mod json;
mod listen;
mod logging;
mod off_limits;
mod output;
mod page_link;
mod plugins;
mod reload;
mod serve;
mod source;
mod spool;
mod step;
mod stop_signal;
mod supervise;
mod telemetry;
mod workspace;

use std::pin::Pin;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::exit::{ErrorForm, Exit, Failure};

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let parsed = Cli::try_parse()
        .and_then(|cli| Ok(Cli { place: cli.place.clone().without_empty_variables()?, ..cli }));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return exit::usage(error, std::env::args()),
    };
    match run(cli) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => failure.report(ErrorForm::asked_for(std::env::args())),
    }
}

/// The stack size. Checking deep arguments against a nested schema recurses deeply; unused stack
/// takes no memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// The maximum number of blocking threads. Each one that reads large lists keeps its own memory;
/// these few keep up with every server.
const BLOCKING_THREADS_MAX: usize = 4;

fn run(cli: Cli) -> Result<(), Failure> {
    if let Command::Supervise(order) = &cli.command {
        return supervise::run(order);
    }
    if let Command::Hook = &cli.command {
        return command::hook::run(&cli.place);
    }
    let _logging = logging::start(&cli);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(STACK_BYTES)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build()
        .map_err(|error| Failure::system(format!("cannot start: {error}")))?;
    // Boxed as a trait object, the commands are compiled once, not for each kind of runtime.
    let command: Pin<Box<dyn Future<Output = Result<(), Failure>>>> = Box::pin(dispatch(cli));
    let result = runtime.block_on(command);
    // A thread may block on stdin forever; it must not keep the process alive.
    runtime.shutdown_background();
    result
}

async fn dispatch(cli: Cli) -> Result<(), Failure> {
    let place = cli.place;
    match cli.command {
        Command::Serve(args) => serve::run(&place, args).await,
        Command::Mcp(args) => command::mcp::run(&place, args).await,
        Command::McpServe => command::mcp_serve::run(place).await,
        Command::Connect(args) => command::connect::run(&place, args).await,
        Command::Wrap(args) => command::wrap::run(&place, args).await,
        Command::Run(args) => command::run::run(&place, args).await,
        Command::Validate(args) => command::validate::run(&place, &args).await,
        Command::Demo(args) => command::demo::run(args).await,
        Command::Status { output } => command::status::run(&place, output).await,
        Command::Doctor { output } => command::doctor::run(&place, output).await,
        Command::Page => command::page::run(&place).await,
        Command::Completions { shell } => command::completions::run(shell),
        Command::Man { words } => command::man::run(&words),
        Command::Call { variant } => command::call::run(&place, variant).await,
        Command::Tools { verb } => command::tools::run(&place, verb).await,
        Command::Targets { verb } => command::targets::run(&place, verb).await,
        Command::Upstream { verb } => command::upstream::run(&place, verb).await,
        Command::Plugin { verb } => command::plugin::run(&place, verb).await,
        Command::Token { verb } => command::token::run(&place, verb).await,
        Command::Secret { verb } => command::secret::run(&place, verb).await,
        Command::Activity { verb } => command::activity::run(&place, verb).await,
        Command::Runs { verb } => command::runs::run(&place, verb).await,
        Command::Receipt { verb } => command::receipt::run(&place, verb).await,
        Command::Ledger { verb } => command::ledger::run(&place, verb).await,
        Command::Keys { verb } => command::keys::run(&place, verb).await,
        Command::Contention(args) => command::contention::run(&place, args).await,
        Command::Config { verb } => command::config::run(&place, verb).await,
        Command::Hook => command::hook::run(&place),
        Command::Supervise(order) => supervise::run(&order),
    }
}
