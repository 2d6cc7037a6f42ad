//! The words of `countersign tools`.

use clap::Subcommand;
use domain::policy::Lock;

use super::Format;
use super::activity::words;

#[derive(Subcommand)]
pub(crate) enum Tools {
    /// List tools with their class and status
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
    /// Search tools as an agent does; locked tools come last
    Search {
        /// Task to find tools for, in a few words
        #[arg(required = true)]
        query: Vec<String>,
        /// Maximum number of results
        #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..=100))]
        limit: u16,
        /// Show the words that matched and the similarity in meaning
        #[arg(long)]
        explain: bool,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show the full definition of a tool, with hidden characters made visible
    #[command(after_help = "Examples:\n  \
        countersign tools list --status pending_approval     tools that wait for approval\n  \
        countersign tools show github:create_issue --diff    changes since it was approved")]
    Show {
        /// Tool to show, as server:tool
        name: String,
        /// Show the changes since approval instead of the definition
        #[arg(long)]
        diff: bool,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show new or changed tools and approve them as shown
    #[command(after_help = "Examples:\n  \
        countersign tools approve github:create_issue        show what changed, then ask\n  \
        countersign tools approve --server github --all      its instructions as well\n  \
        countersign upstream review github                   one item after the other\n\n\
        If a tool changes after it was shown, nothing is approved.")]
    Approve {
        /// Tools to approve, each as server:tool
        #[arg(value_name = "SERVER:TOOL", required_unless_present = "all")]
        names: Vec<String>,
        /// Server whose items to approve, with --all
        #[arg(long, requires = "all", conflicts_with = "names")]
        server: Option<String>,
        /// Approve every pending item of the server
        #[arg(long, requires = "server", conflicts_with = "names")]
        all: bool,
        /// Approve without showing or asking
        #[arg(short, long)]
        yes: bool,
    },
    /// Enable a tool that was disabled with `disable`
    Enable {
        /// Tool to enable, as server:tool
        name: String,
    },
    /// Disable a tool for all agents
    Disable {
        /// Tool to disable, as server:tool
        name: String,
    },
}
