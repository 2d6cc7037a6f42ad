//! The words of `countersign targets`.

use clap::Subcommand;

use super::Format;
use super::activity::{LedgerFile, Span};

#[derive(Subcommand)]
pub(crate) enum Targets {
    /// Show which resources a call would touch, without making it
    #[command(after_help = "Example:\n  \
        countersign targets try github:issue_read \
        '{\"owner\": \"o\", \"repo\": \"r\", \"issue_number\": 7}'")]
    Try {
        /// Tool of the call, as server:tool
        #[arg(value_name = "SERVER:TOOL")]
        tool: String,
        /// Arguments of the call: a JSON object, or @FILE to read one from a file
        #[arg(value_name = "JSON")]
        arguments: String,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Count the recorded calls that had a target, by server
    #[command(after_help = "Examples:\n  \
        countersign targets coverage --since 7d\n  \
        countersign targets coverage --server github -v")]
    Coverage {
        /// Only calls to this server
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Also list the tools of each server
        #[arg(short, long)]
        verbose: bool,
        #[command(flatten)]
        span: Span,
        #[command(flatten)]
        ledger: LedgerFile,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
}
