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
mod site;
mod source;
mod spool;
mod step;
mod stop_signal;
mod supervise;
mod workspace;

use std::pin::Pin;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::exit::{ErrorForm, Exit, Failure};
use crate::site::Site;

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
        return command::hook::run(&Site::new(cli.place));
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
    let site = Site::new(cli.place);
    match cli.command {
        Command::Serve(args) => serve::run(&site, args).await,
        Command::Mcp(args) => command::mcp::run(&site, args).await,
        Command::McpServe => command::mcp_serve::run(&site).await,
        Command::Connect(args) => command::connect::run(&site, args).await,
        Command::Wrap(args) => command::wrap::run(&site, args).await,
        Command::Run(args) => command::run::run(&site, args).await,
        Command::Validate(args) => command::validate::run(&site, &args).await,
        Command::Demo(args) => command::demo::run(args).await,
        Command::Status { output } => command::status::run(&site, output).await,
        Command::Doctor { output } => command::doctor::run(&site, output).await,
        Command::Page => command::page::run(&site).await,
        Command::Completions { shell } => command::completions::run(shell),
        Command::Man { words } => command::man::run(&words),
        Command::Call { variant } => command::call::run(&site, variant).await,
        Command::Tools { verb } => command::tools::run(&site, verb).await,
        Command::Targets { verb } => command::targets::run(&site, verb).await,
        Command::Upstream { verb } => command::upstream::run(&site, verb).await,
        Command::Plugin { verb } => command::plugin::run(&site, verb).await,
        Command::Token { verb } => command::token::run(&site, verb).await,
        Command::Secret { verb } => command::secret::run(&site, verb).await,
        Command::Activity { verb } => command::activity::run(&site, verb).await,
        Command::Runs { verb } => command::runs::run(&site, verb).await,
        Command::Receipt { verb } => command::receipt::run(&site, verb).await,
        Command::Ledger { verb } => command::ledger::run(&site, verb).await,
        Command::Keys { verb } => command::keys::run(&site, verb).await,
        Command::Contention(args) => command::contention::run(&site, args).await,
        Command::Config { verb } => command::config::run(&site, verb).await,
        Command::Hook => command::hook::run(&site),
        Command::Supervise(order) => supervise::run(&order),
    }
}
