//! The words of `countersign ledger`.

use clap::Subcommand;

use super::Format;

#[derive(Subcommand)]
pub(crate) enum Ledger {
    /// Print the state of all chains on one line, to be kept elsewhere
    #[command(after_help = "Examples:\n  \
        countersign ledger head > head                    keep it on another machine\n  \
        countersign receipt verify --head \"$(cat head)\"   nothing up to then may be missing\n\n\
        While 'serve' runs, it issues a new checkpoint first. Otherwise the line is that of the\n\
        newest checkpoint, and nothing is written.")]
    Head {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
}
