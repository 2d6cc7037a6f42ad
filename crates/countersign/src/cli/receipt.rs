//! The words of `countersign receipt`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use receipt::Hash;

use super::activity::statuses;
use super::{Format, LedgerFile, Rows, Span};

#[derive(Subcommand)]
pub(crate) enum Receipt {
    /// List receipts, newest first
    #[command(after_help = "Examples:\n  \
        countersign receipt list --status failed --since 1d\n  \
        countersign receipt list --agent claude --target-resource /srv/notes.txt\n  \
        countersign receipt list --chain CHAIN --db copy.db -o json")]
    List {
        #[command(flatten)]
        filters: ReceiptFilters,
        #[command(flatten)]
        span: Span,
        #[command(flatten)]
        rows: Rows,
        #[command(flatten)]
        ledger: LedgerFile,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Print one receipt, as JSON or YAML
    Show {
        /// Id of the receipt or its record, or a part that no other has
        id: String,
        /// Print exactly the stored bytes, without a trailing newline
        #[arg(long, conflicts_with = "output")]
        raw: bool,
        #[arg(short, long, value_enum, default_value_t = ReceiptFormat::Json)]
        output: ReceiptFormat,
        #[command(flatten)]
        ledger: LedgerFile,
    },
    /// Verify that no receipt was changed, removed or inserted
    #[command(after_help = "Examples:\n  \
        countersign receipt verify                      every chain of the home's ledger\n  \
        countersign receipt verify receipts.jsonl       an export and its .pub.pem file\n  \
        countersign receipt verify --receipt 5814b426   that one call is as it was recorded\n  \
        countersign receipt verify --db copy.db --public-key countersign.pem\n  \
        countersign receipt verify --head \"$(cat head)\"  since 'ledger head > head'\n\n\
        Exit codes: 0 intact, 1 broken, 2 could not be verified")]
    Verify(Verify),
    /// Export receipts as JSON lines or a table of SQLite, for others to verify
    #[command(after_help = "Examples:\n  \
        countersign receipt export --output receipts.jsonl   also writes receipts.jsonl.pub.pem\n  \
        countersign receipt verify receipts.jsonl            works on any machine\n  \
        countersign receipt export --format sqlite --output receipts.db\n\n\
        Without --output, only the receipts are printed; 'keys show --pem' prints the key.")]
    Export {
        /// Only this chain [default: all]
        #[arg(long)]
        chain: Option<String>,
        /// File or folder to write to; the public keys go to FILE.pub.pem [default: stdout]
        #[arg(long, value_name = "FILE|DIR")]
        output: Option<PathBuf>,
        /// JSON lines, or a file of SQLite with the published table
        #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
        format: ExportFormat,
        #[command(flatten)]
        ledger: LedgerFile,
    },
}

/// The forms of exported receipts.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Jsonl,
    Sqlite,
}

#[derive(Args, Default)]
pub(crate) struct ReceiptFilters {
    /// Only receipts of this chain
    #[arg(long)]
    pub(crate) chain: Option<String>,
    /// Only receipts of this action type, such as filesystem.file.delete
    #[arg(long, value_name = "TYPE")]
    pub(crate) action_type: Option<String>,
    /// Only receipts with this outcome
    #[arg(long, value_parser = statuses(["success", "failure", "pending"]))]
    pub(crate) status: Option<String>,
    /// Only receipts of calls to this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Only receipts of calls by this agent, in all sessions or one, or with this token
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only receipts of calls that used this system
    #[arg(long, value_name = "NAME")]
    pub(crate) target_system: Option<String>,
    /// Only receipts of calls that used this resource
    #[arg(long, value_name = "NAME")]
    pub(crate) target_resource: Option<String>,
}

/// The formats of a receipt, which is a tree.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReceiptFormat {
    Json,
    Yaml,
}

impl From<ReceiptFormat> for Format {
    fn from(format: ReceiptFormat) -> Format {
        match format {
            ReceiptFormat::Json => Format::Json,
            ReceiptFormat::Yaml => Format::Yaml,
        }
    }
}

#[derive(Args, Clone)]
pub(crate) struct Verify {
    /// Export to verify; requires no home
    #[arg(value_name = "FILE", conflicts_with = "db")]
    pub(crate) file: Option<PathBuf>,
    /// Only this chain
    #[arg(long)]
    pub(crate) chain: Option<String>,
    /// Only the chain of this receipt or record, with the verdict on the receipt
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "chain"])]
    pub(crate) receipt: Option<String>,
    /// Ledger, or copy of one, to verify instead of the home's
    #[arg(long, value_name = "FILE")]
    pub(crate) db: Option<PathBuf>,
    /// Trust the public keys in this file [default: FILE.pub.pem, or the home's keys]
    #[arg(long, value_name = "PEM")]
    pub(crate) public_key: Option<PathBuf>,
    /// Fail unless the chain has this many receipts
    #[arg(long, value_name = "N")]
    pub(crate) expect_length: Option<u64>,
    /// Fail unless the chain's last receipt has this hash
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub(crate) expect_final_hash: Option<Hash>,
    /// Require what a line of `ledger head` stands for, or a checkpoint that an anchor received
    #[arg(long, value_name = "LINE", conflicts_with_all = ["chain", "receipt"])]
    pub(crate) head: Option<String>,
    /// List every chain, not only broken ones
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

fn hash(text: &str) -> Result<Hash, String> {
    text.parse().map_err(|error: receipt::hash::NotAHash| error.to_string())
}
