//! The words of `countersign runs`.

use clap::{Subcommand, ValueEnum};
use store::run::RunStatus;

use super::Format;
use super::activity::{Rows, list, statuses};
use crate::output::status::spoken;

#[derive(Subcommand)]
pub(crate) enum Runs {
    /// List workflow runs, newest first
    #[command(after_help = "Examples:\n  \
        countersign runs list --status failed\n  \
        countersign runs list --workflow deploy --limit 5 -o json\n\n\
        interrupted: the process died before the run ended.")]
    List {
        #[arg(long, hide_possible_values = true,
            help = list("Only runs with this status", &RunStatus::ALL, |one| spoken(one.as_str())),
            value_parser = statuses(RunStatus::ALL.map(RunStatus::as_str)))]
        status: Option<String>,
        /// Only runs of this workflow
        #[arg(long, value_name = "NAME")]
        workflow: Option<String>,
        #[command(flatten)]
        rows: Rows,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Show a run: its steps, and what each printed, wrote and called
    #[command(after_help = "Examples:\n  \
        countersign runs show 01a1de05-f636\n  \
        countersign runs show 01a1de05-f636 -o json      includes the output of each step")]
    Show {
        /// Id of the run, or a part that no other has
        id: String,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Follow a run of another process until it ends
    #[command(after_help = "Examples:\n  \
        countersign runs watch                           the newest run that is running\n  \
        countersign runs watch 01a1de05-f636 -o jsonl    one event a line")]
    Watch {
        /// Id of the run, or a part that no other has [default: the newest that is running]
        id: Option<String>,
        #[arg(short, long, value_enum, default_value_t = LinesFormat::Text)]
        output: LinesFormat,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinesFormat {
    Text,
    Jsonl,
}
