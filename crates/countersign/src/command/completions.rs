//! `countersign completions SHELL`.

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Failure;
use crate::output;

pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(), "countersign", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())
}

/// Returns the commands for people: clap's scripts would offer hidden ones too.
fn shown() -> Command {
    let whole = Cli::command();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new("countersign")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(commands.cloned())
}
