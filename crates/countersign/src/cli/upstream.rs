//! The words of `countersign upstream`.

use clap::{Args, Subcommand};

use super::Format;

#[derive(Subcommand)]
pub(crate) enum Upstream {
    /// List the servers and their state
    List {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show one server: where it comes from, how it is reached, what of it waits
    Get {
        name: String,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Add a server; it is not started until you approve it
    #[command(after_help = "Examples:\n  \
        countersign upstream add github --env 'GITHUB_TOKEN=${env:GITHUB_TOKEN}' -- npx -y server-github\n  \
        countersign upstream add docs --url https://docs.example/mcp\n  \
        countersign upstream approve github --inspect        see what it lists\n  \
        countersign upstream approve github\n\n\
        Values are kept as written; of '${env:NAME}' only the name is.")]
    Add(Add),
    /// Remove a server that was added, and forget what was decided about it
    Remove { name: String },
    /// Switch a server on again
    Enable { name: String },
    /// Switch a server off: it is ended, and nothing of it can be called
    Disable { name: String },
    /// Walk through what of a server waits for approval, item by item
    #[command(
        after_help = "Each item is shown with its warnings and its changes. Answer a to approve it, s to skip\n\
        it (it stays locked) or q to stop. Answers can be piped in, one per line."
    )]
    Review {
        name: String,
        /// With json or yaml: only print what waits
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show a server with everything that it was seen to list, and approve it as shown
    Approve {
        name: String,
        /// Approve without showing or asking
        #[arg(short, long, conflicts_with = "inspect")]
        yes: bool,
        /// Only start it and show what it lists; nothing is approved
        #[arg(long)]
        inspect: bool,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Lock everything of a server until it is approved again
    Quarantine { name: String },
    /// End the connection to a server and make it anew
    Restart { name: String },
    /// Print the last lines that a server wrote on stderr
    Logs {
        name: String,
        /// Most lines
        #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        lines: u32,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
}

#[derive(Args)]
pub(crate) struct Add {
    pub(crate) name: String,

    /// A variable for the command
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "url")]
    pub(crate) env: Vec<(String, String)>,

    /// A header for the url
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "command")]
    pub(crate) header: Vec<(String, String)>,

    /// Where the server is, if it is no command
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    pub(crate) url: Option<String>,

    /// Quarantine the server when the file that its command starts changes
    #[arg(long, conflicts_with = "url")]
    pub(crate) pin: bool,

    /// The server's command line, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected NAME=VALUE".to_owned()),
    }
}
