//! The words of `countersign plugin`.

use clap::Subcommand;

use super::Format;

#[derive(Subcommand)]
pub(crate) enum Plugin {
    /// List the plugins available here, without starting them
    List {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show a plugin and, if it is approved, start it to list its operations
    Show {
        name: String,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Approve a plugin of the project in its current form, so that it can be started
    #[command(after_help = "Examples:\n  \
        countersign plugin show deploy         inspect it first\n  \
        countersign plugin approve deploy\n\n\
        The approval covers the plugin's path, its manifest and its executable. If one of them\n\
        changes, the plugin must be approved again.")]
    Approve { name: String },
    /// Withdraw the approval of a plugin
    Revoke { name: String },
}
