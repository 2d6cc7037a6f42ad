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
    /// Check the whole ledger: file, journals, keys, decisions and every chain
    #[command(
        after_help = "It only reads, also from a read-only home and while the gate runs.\n\n\
        Exit codes: 0 sound, 1 faults found, 2 could not be checked"
    )]
    Check {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Recover what can be recovered of a damaged or lost ledger
    #[command(after_help = "Stop all gates of the home first. A lost database is made again from \
        journals and\ncopies of chains, damaged files are set aside, nothing is deleted. A signed \
        receipt says\nwhat was done.")]
    Repair {
        /// Repair without asking
        #[arg(long)]
        yes: bool,
    },
    /// Accept the loss of what is missing and cannot be repaired
    #[command(after_help = "Stop all gates of the home and run 'ledger repair' first. Shows the \
        receipts and records\nthat are missing, asks, and signs exactly that with the home's key. \
        Verification then\nreports them as accepted, and anything else that is missing as a fault.\n\n\
        Exit codes: 0 nothing else is wrong, 1 nothing was accepted or other faults remain,\n\
        4 it failed")]
    Accept {
        /// Accept without asking
        #[arg(long)]
        yes: bool,
    },
}
