//! `countersign man [COMMAND]…`: a man page, generated from the command line's own help.

use clap::CommandFactory;

use crate::cli::Cli;
use crate::exit::Failure;
use crate::output;

pub(crate) fn run(words: &[String]) -> Result<(), Failure> {
    let mut whole = Cli::command();
    // Gives every command its full name and the global options.
    whole.build();
    let mut command = &whole;
    for word in words {
        command = command.find_subcommand(word).ok_or_else(|| {
            Failure::input(format!(
                "there is no command '{word}': run 'countersign --help' for a list"
            ))
        })?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .source(concat!("countersign ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .map_err(|error| Failure::system(format!("cannot render the man page: {error}")))?;
    output::line(String::from_utf8_lossy(&page).trim_end())
}
