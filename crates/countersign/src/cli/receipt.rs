//! The words of `countersign receipt`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use receipt::Hash;

use super::activity::words;
use super::{Format, Rows, Span};

#[derive(Subcommand)]
pub(crate) enum Receipt {
    /// List the receipts, newest first
    #[command(after_help = "Examples:\n  \
        countersign receipt list --status failure --since 1d\n  \
        countersign receipt list --chain CHAIN -o json")]
    List {
        #[command(flatten)]
        filters: ReceiptFilters,
        #[command(flatten)]
        span: Span,
        #[command(flatten)]
        rows: Rows,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Print one receipt as JSON
    Show {
        /// The receipt's id, with or without `urn:receipt:`
        id: String,
        /// Exactly the bytes that are kept, without a line break
        #[arg(long)]
        raw: bool,
    },
    /// Check that no receipt was changed, removed or put in
    #[command(after_help = "Examples:\n  \
        countersign receipt verify                      the ledger of the home, every chain\n  \
        countersign receipt verify receipts.jsonl       an export, with receipts.jsonl.pub.pem\n  \
        countersign receipt verify --db copy.db --public-key countersign.pem\n\n\
        Exit codes: 0 whole, 1 broken, 2 it could not be checked")]
    Verify(Verify),
    /// Write receipts as JSON lines, for others to check
    #[command(after_help = "Examples:\n  \
        countersign receipt export --output receipts.jsonl   and receipts.jsonl.pub.pem\n  \
        countersign receipt verify receipts.jsonl            anywhere, without a home\n\n\
        To stdout, it writes the receipts without the keys: 'keys show --pem' prints the key.")]
    Export {
        /// Only this chain [default: all]
        #[arg(long)]
        chain: Option<String>,
        /// A file, or a folder to put it in; the public keys go to FILE.pub.pem [default: stdout]
        #[arg(long, value_name = "FILE|DIR")]
        output: Option<PathBuf>,
    },
}

#[derive(Args, Default)]
pub(crate) struct ReceiptFilters {
    /// Only of this chain
    #[arg(long)]
    pub(crate) chain: Option<String>,
    /// Only of this type, such as filesystem.file.delete
    #[arg(long, value_name = "TYPE")]
    pub(crate) action_type: Option<String>,
    /// Only with this outcome
    #[arg(long, value_parser = words(&["success", "failure", "pending"], |word| word))]
    pub(crate) status: Option<String>,
}

#[derive(Args)]
pub(crate) struct Verify {
    /// An export to check; no home is needed
    #[arg(value_name = "FILE", conflicts_with = "db")]
    pub(crate) file: Option<PathBuf>,
    /// Only this chain
    #[arg(long)]
    pub(crate) chain: Option<String>,
    /// A ledger, or a copy of one, in place of the home's
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
    /// Trust the public keys in this file [default: FILE.pub.pem, or those of the home]
    #[arg(long, value_name = "PEM")]
    pub(crate) public_key: Option<PathBuf>,
    /// How many receipts the chain must have
    #[arg(long, value_name = "N")]
    pub(crate) expect_length: Option<u64>,
    /// The hash of the chain's last receipt
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub(crate) expect_final_hash: Option<Hash>,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

fn hash(text: &str) -> Result<Hash, String> {
    text.parse().map_err(|error: receipt::hash::NotAHash| error.to_string())
}
