//! The words of `countersign connect`.

use std::path::PathBuf;

use clap::Args;
pub(crate) use clients::{ClientProgram, Reference, SettingsScope};

use super::Format;

#[derive(Args)]
pub(crate) struct Connect {
    /// Client to connect [default: every client that is found]
    #[arg(value_enum)]
    pub(crate) client: Option<ClientProgram>,

    /// Write without asking
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Show the changes and write nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,

    /// Take the changes back, and keep what was edited since
    #[arg(long, conflicts_with_all = ["import", "from", "replace", "http", "permissions"])]
    pub(crate) undo: bool,

    /// Write the gate's address and a token for this client, instead of a command to start
    #[arg(long)]
    pub(crate) http: bool,

    /// Settings to write: your own, or those of the current folder
    #[arg(long, value_enum, default_value_t = SettingsScope::User)]
    pub(crate) scope: SettingsScope,

    /// Let Claude Code call what only reads without asking, and ask for the rest
    #[arg(long)]
    pub(crate) permissions: bool,

    /// Add the client's other servers to the config of the gate
    #[arg(long)]
    pub(crate) import: bool,

    /// Import the servers in this file, such as the config of MCPProxy
    #[arg(long, value_name = "FILE", requires = "import")]
    pub(crate) from: Option<PathBuf>,

    /// Hand over what an imported server refers to, as env:NAME or secret:NAME; can be repeated
    #[arg(long, value_name = "NAME", requires = "import")]
    pub(crate) allow_reference: Vec<Reference>,

    /// Remove the imported servers from the client, so that it reaches them only through the gate
    #[arg(long, requires = "import", conflicts_with = "from")]
    pub(crate) replace: bool,

    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}
