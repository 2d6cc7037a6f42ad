//! The words of `countersign upstream`.

use clap::{Args, Subcommand};

use super::Format;

#[derive(Subcommand)]
pub(crate) enum Upstream {
    /// List servers and their state
    List {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show a server: its origin, how it is reached, and what waits for approval
    Get {
        name: String,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Add a server, which is not started until you approve it
    #[command(after_help = "Examples:\n  \
        countersign upstream add github --env 'GITHUB_TOKEN=${secret:GITHUB}' -- npx -y server-github\n  \
        countersign upstream add docs --url https://docs.example/mcp\n  \
        countersign upstream approve github --inspect        start it and show what it lists\n  \
        countersign upstream approve github\n\n\
        Values that may be secret are stored in <home>/secrets.json, not in the ledger;\n\
        '${secret:NAME}' and '${env:NAME}' are stored as written.")]
    Add(Add),
    /// Remove a server added with `add`, with all decisions about it
    Remove { name: String },
    /// Enable a server
    Enable { name: String },
    /// Disable a server: stop it and lock its tools
    Disable { name: String },
    /// Review the pending items of a server one by one
    #[command(
        after_help = "Each item is shown with its warnings and its changes. Answer a to approve it, s to skip\n\
        it (it stays locked) or q to stop. Answers can be piped in, one per line."
    )]
    Review {
        name: String,
        /// Output format; json and yaml only print the pending items
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show a server with everything it has listed, and approve it as shown
    Approve {
        name: String,
        /// Approve without showing or asking
        #[arg(short, long, conflicts_with = "inspect")]
        yes: bool,
        /// Start the server and show what it lists, without approving anything
        #[arg(long)]
        inspect: bool,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Lock all tools of a server until it is approved again
    Quarantine { name: String },
    /// Sign in to a server in a browser
    #[command(after_help = "Examples:\n  \
        countersign upstream login linear\n  \
        countersign upstream login linear --no-browser      over ssh: open the address yourself\n  \
        countersign upstream login linear --device          enter a code on another machine\n  \
        countersign upstream login linear --token ci        for one agent token (\"login\": \"per_token\")\n\n\
        The tokens are stored encrypted in the home; 'countersign upstream logout' removes them.")]
    Login(Login),
    /// Sign out of a server: revoke its tokens and forget them
    Logout {
        name: String,
        /// Sign out one agent token, where each signs in for itself [default: all]
        #[arg(long, value_name = "NAME")]
        token: Option<String>,
    },
    /// Close the connection to a server and reconnect
    Restart { name: String },
    /// Print the last lines that a server wrote to stderr
    Logs {
        name: String,
        /// Maximum number of lines
        #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        lines: u32,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
}

#[derive(Args)]
pub(crate) struct Login {
    pub(crate) name: String,

    /// Agent token to sign in for, where each signs in for itself
    #[arg(long, value_name = "NAME")]
    pub(crate) token: Option<String>,

    /// Only print the address to open
    #[arg(long)]
    pub(crate) no_browser: bool,

    /// Port on 127.0.0.1 that the browser returns to [default: the last one, or any free one]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// Sign in with a code, where the server offers that
    #[arg(long, conflicts_with_all = ["no_browser", "port"])]
    pub(crate) device: bool,
}

#[derive(Args)]
pub(crate) struct Add {
    pub(crate) name: String,

    /// Environment variable for the command; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "url")]
    pub(crate) env: Vec<(String, String)>,

    /// HTTP header for the URL; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "command")]
    pub(crate) header: Vec<(String, String)>,

    /// URL of the server, instead of a command
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    pub(crate) url: Option<String>,

    /// Quarantine the server if the file that its command starts changes
    #[arg(long, conflicts_with = "url")]
    pub(crate) pin: bool,

    /// Command line of the server, after --
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected NAME=VALUE".to_owned()),
    }
}
