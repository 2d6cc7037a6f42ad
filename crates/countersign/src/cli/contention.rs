//! The words of `countersign contention`.

use clap::{Args, Subcommand};
use touch::contention::ContentionKind;

use super::Format;
use super::activity::{self, LedgerFile, Span};

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Contention {
    #[command(subcommand)]
    pub(crate) verb: Option<ContentionVerb>,

    #[command(flatten)]
    pub(crate) search: ContentionSearch,

    /// Only contention of this kind
    #[arg(long, value_parser = activity::words(&ContentionKind::ALL, ContentionKind::as_str))]
    pub(crate) kind: Option<String>,

    /// Include resources that both agents only read
    #[arg(long, conflicts_with = "kind")]
    pub(crate) reads: bool,

    /// Print each write that meets another agent's access of the last hour, until Ctrl+C
    #[arg(long, conflicts_with_all = ["reads", "window", "since", "until", "containers"])]
    pub(crate) watch: bool,

    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

#[derive(Subcommand)]
pub(crate) enum ContentionVerb {
    /// Tell how two agents met, in sentences with times
    Explain {
        /// Id of the pair, as in the last column of `contention`
        id: String,
        #[command(flatten)]
        search: ContentionSearch,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
}

/// The place and the time to search.
#[derive(Args)]
pub(crate) struct ContentionSearch {
    /// Longest time between two accesses, such as 10m or 2h [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = activity::duration)]
    pub(crate) window: Option<String>,

    /// Only resources of this system: a server name or 'filesystem'
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,

    /// Include accesses of a container and of its contents: a folder and a file in it
    #[arg(long)]
    pub(crate) containers: bool,

    #[command(flatten)]
    pub(crate) span: Span,

    #[command(flatten)]
    pub(crate) ledger: LedgerFile,
}
