//! The words of `countersign tools`.

use clap::Subcommand;
use domain::policy::Lock;

use super::Format;
use super::activity::words;

#[derive(Subcommand)]
pub(crate) enum Tools {
    /// List every tool, with its class and whether it can be called
    List {
        /// Only tools of this server
        #[arg(long)]
        server: Option<String>,
        /// Only tools with this status, such as pending_approval
        #[arg(long, hide_possible_values = true, value_parser = words(&Lock::words(), |word| word))]
        status: Option<String>,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Find tools by what they do, as an agent would; locked ones come last
    Search {
        /// What you want to do, in a few words
        #[arg(required = true)]
        query: Vec<String>,
        /// Most results
        #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show one tool with its whole definition, hidden characters visible
    #[command(after_help = "Examples:\n  \
        countersign tools list --status pending_approval     what waits for you\n  \
        countersign tools show github:create_issue --diff    what has changed in it")]
    Show {
        /// The tool, as server:tool
        name: String,
        /// Compare what waits with what was approved, in place of the definition
        #[arg(long)]
        diff: bool,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show new or changed tools and approve them as shown
    #[command(after_help = "Examples:\n  \
        countersign tools approve github:create_issue        shows what changed, then asks\n  \
        countersign tools approve --server github --all      its instructions too\n  \
        countersign upstream review github                   one by one\n\n\
        If a tool changes after it was shown, nothing is approved.")]
    Approve {
        /// The tools, each as server:tool
        #[arg(value_name = "SERVER:TOOL", required_unless_present = "all")]
        names: Vec<String>,
        /// The server whose items are meant, with --all
        #[arg(long, requires = "all", conflicts_with = "names")]
        server: Option<String>,
        /// Everything of the server that waits
        #[arg(long, requires = "server", conflicts_with = "names")]
        all: bool,
        /// Approve without showing or asking
        #[arg(short, long)]
        yes: bool,
    },
    /// Switch a tool on again that was switched off with `disable`
    Enable {
        /// The tool, as server:tool
        name: String,
    },
    /// Switch a tool off for every agent
    Disable {
        /// The tool, as server:tool
        name: String,
    },
}
