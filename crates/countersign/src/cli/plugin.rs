//! The words of `countersign plugin`.

use clap::Subcommand;

use super::Format;

#[derive(Subcommand)]
pub(crate) enum Plugin {
    /// List the plugins that are found from here; none is started
    List {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show one plugin; what it offers too, where it may be started
    Show {
        name: String,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Let a plugin of the project be started as it is now
    #[command(after_help = "Examples:\n  \
        countersign plugin show deploy         look at it first\n  \
        countersign plugin approve deploy\n\n\
        The approval is bound to the plugin's path, its manifest and its program. Whoever changes\n\
        one of them needs a new one.")]
    Approve { name: String },
    /// Take an approval back
    Revoke { name: String },
}
