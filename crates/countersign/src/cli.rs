//! The words of the command line, and nothing of what they do.

mod activity;
mod connect;
mod contention;
mod ledger;
mod plugin;
mod receipt;
mod run;
mod runs;
mod secret;
mod targets;
mod token;
mod tools;
mod upstream;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use mcp::limits::CHILD_GRACE;

pub(crate) use activity::{Activity, Filters, LedgerFile, Rows, Span, Watch, WatchFormat};
pub(crate) use connect::{ClientProgram, Connect, Reference, SettingsScope};
pub(crate) use contention::{Contention, ContentionSearch, ContentionVerb};
pub(crate) use ledger::Ledger;
pub(crate) use plugin::Plugin;
pub(crate) use receipt::{ExportFormat, Receipt, ReceiptFilters, Verify};
pub(crate) use run::{Run, RunFormat, Validate, ValidateFormat};
pub(crate) use runs::{LinesFormat, Runs};
pub(crate) use secret::Secret;
pub(crate) use targets::Targets;
pub(crate) use token::{Create, SecretFormat, Token};
pub(crate) use tools::Tools;
pub(crate) use upstream::{Add, Login, Upstream};

pub(crate) use crate::output::Format;

/// The position of the options that every command has: after the command's own.
const LAST: usize = 900;

#[derive(Parser)]
#[command(
    name = "countersign",
    version,
    arg_required_else_help = true,
    about = "Control and record the tool calls of AI agents",
    after_help = "Start with 'countersign serve', which prints how to connect an agent.\n\n\
        Exit codes: 0 success, 1 bad input, 2 bad config, 3 call failed, 4 system error"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) place: Locations,

    /// Format of the log on stderr: text, json
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, display_order = LAST,
        hide_possible_values = true)]
    pub(crate) log_format: LogFormat,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The locations of the config and the home.
#[derive(Args, Clone)]
pub(crate) struct Locations {
    /// Config file [default: $XDG_CONFIG_HOME/countersign/config.json]
    #[arg(long, global = true, env = "COUNTERSIGN_CONFIG", value_name = "FILE", display_order = LAST,
        value_parser = any_path())]
    pub(crate) config: Option<PathBuf>,

    /// Folder of keys and records [default: $XDG_DATA_HOME/countersign]
    #[arg(long, global = true, env = "COUNTERSIGN_HOME", value_name = "DIR", display_order = LAST,
        value_parser = any_path())]
    pub(crate) home: Option<PathBuf>,

    /// A config file in the folder has no say.
    #[arg(skip)]
    pub(crate) alone: bool,
}

impl Locations {
    /// Treats a variable that is set to nothing as one that is not set; an empty argument is a
    /// mistake.
    pub(crate) fn without_empty_variables(mut self) -> Result<Locations, clap::Error> {
        for (variable, flag, path) in [
            ("COUNTERSIGN_CONFIG", "--config", &mut self.config),
            ("COUNTERSIGN_HOME", "--home", &mut self.home),
        ] {
            let is_unset = std::env::var_os(variable).is_some_and(|value| value.is_empty());
            let empty = path.take_if(|path| path.as_os_str().is_empty());
            if empty.is_some() && !is_unset {
                let words = format!("{flag}: the path is empty\n");
                return Err(Cli::command().error(ErrorKind::InvalidValue, words));
            }
        }
        Ok(self)
    }
}

/// Accepts any path, an empty one too.
fn any_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gate until it receives SIGTERM or Ctrl+C
    Serve(Serve),
    /// Serve MCP on stdin and stdout, through a running `serve` if there is one
    Mcp(Mcp),
    /// Serve the tools of one workflow step over MCP; --config names the step's file
    #[command(hide = true)]
    McpServe,
    /// Connect Claude Code, Cursor and other clients to the gate
    #[command(
        after_help = "Shows each change and asks before it writes; a copy of every file is kept for --undo.\n\n\
        Examples:\n  \
        countersign connect                      every client that is found\n  \
        countersign connect claude --import      bring its servers along\n  \
        countersign connect --undo               take everything back"
    )]
    Connect(Connect),
    /// Wrap one MCP server: forward its messages unchanged and record every call
    #[command(after_help = "Example, in a client's configuration:\n  \
        \"command\": \"countersign\", \"args\": [\"wrap\", \"--name\", \"github\", \"--\", \"npx\", \"…\"]")]
    Wrap(Wrap),
    /// Run a workflow or a single agent that gets its tools only from the gate
    #[command(after_help = "Examples:\n  \
        countersign run flow.yaml -i env=dev\n  \
        countersign run --provider claude --prompt \"Fix the failing test\"\n  \
        countersign run flow.yaml --dry-run      print what would be started, and start nothing\n\n\
        Exit codes: 0 success, 2 invalid workflow, 3 run failed, 130 cancelled; a workflow can set\n\
        its own. Ctrl+C stops all steps and then exits; press it again to exit at once.")]
    Run(Run),
    /// Check a workflow and report every error with its line and column
    Validate(Validate),
    /// Call a tool, with the intent taken from the subcommand
    Call {
        #[command(subcommand)]
        variant: Call,
    },
    /// List, search, approve, enable and disable tools
    Tools {
        #[command(subcommand)]
        verb: Tools,
    },
    /// Show which resources the calls of a tool touch
    Targets {
        #[command(subcommand)]
        verb: Targets,
    },
    /// List, add, approve, enable and disable MCP servers
    Upstream {
        #[command(subcommand)]
        verb: Upstream,
    },
    /// List and approve plugins
    Plugin {
        #[command(subcommand)]
        verb: Plugin,
    },
    /// Show what runs, who is connected, and what needs a person
    #[command(after_help = "Exit codes: 0 the gate is running, 3 it is not")]
    Status {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Check everything that the gate needs, and say what mends a fault
    #[command(after_help = "Exit codes: 0 no fault, 3 there is one")]
    Doctor {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Print a sign-in link to the web page
    #[command(after_help = "The link signs in one browser, once, and expires after ten minutes.")]
    Page,
    /// Create, list and revoke agent tokens
    Token {
        #[command(subcommand)]
        verb: Token,
    },
    /// Set, list and remove the values of ${secret:NAME} in the config
    Secret {
        #[command(subcommand)]
        verb: Secret,
    },
    /// List, watch and export the calls that agents made, including refused ones
    Activity {
        #[command(subcommand)]
        verb: Activity,
    },
    /// List workflow runs and show their steps and calls
    Runs {
        #[command(subcommand)]
        verb: Runs,
    },
    /// List, verify and export signed receipts
    Receipt {
        #[command(subcommand)]
        verb: Receipt,
    },
    /// Print the head of the ledger, check it, repair it or accept a loss
    Ledger {
        #[command(subcommand)]
        verb: Ledger,
    },
    /// Show or rotate the key that signs receipts
    Keys {
        #[command(subcommand)]
        verb: Keys,
    },
    /// Show which agents used the same resource at about the same time
    #[command(after_help = "Examples:\n  \
        countersign contention                          accesses within one hour of each other\n  \
        countersign contention --since 30d              look back further than seven days\n  \
        countersign contention --window 10m --kind stale-read\n  \
        countersign contention explain 3f9c01d2aa47     how two agents met, in sentences\n\n\
        --window is the longest time between two accesses that count as a meeting. How far back\n\
        to look is another matter: the last seven days, unless --since or --until is given.\n\
        Kinds: stale-read, wrote after an outdated read; write-write, both wrote; read-write, one\n\
        read, the other wrote; unknown, one or both may have written; read-read, both only read.")]
    Contention(Contention),
    /// Record an action of Claude Code's own tools, from a hook event on stdin
    #[command(
        after_help = "In Claude Code's settings, for PreToolUse, PostToolUse and PostToolUseFailure:\n  \
        {\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": \"countersign hook\"}]}\n\n\
        The hook exits at once and never blocks the agent. It writes the event to <home>/spool,\n\
        from where a running 'serve' or 'mcp', or the next one, records it."
    )]
    Hook,
    /// Run a command and kill its process group when stdin closes or a given process exits
    #[command(hide = true)]
    Supervise(Supervise),
    /// Start a demo in a temporary home: sample servers and two scripted agents
    Demo(Demo),
    /// Print a completion script for your shell
    Completions { shell: clap_complete::Shell },
    /// Print a man page, for packagers
    #[command(hide = true)]
    Man {
        /// Command to document [default: countersign itself]
        #[arg(value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// Show, check or trust the configuration
    Config {
        #[command(subcommand)]
        verb: Config,
    },
}

#[derive(Args)]
pub(crate) struct Serve {
    /// Address and port to listen on; port 0 picks a free port. Beyond loopback the config must set
    /// 'tls' or 'behind_proxy' [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// Output format; json prints one line on stdout when the gate is ready
    #[arg(short, long, value_enum, default_value_t = ServeFormat::Text)]
    pub(crate) output: ServeFormat,
}

#[derive(Args)]
pub(crate) struct Mcp {
    /// Offer only this server's tools, under their own names and without an intent
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Offer everything of all servers, with tools and prompts as 'server__name' and without an intent
    #[arg(long, conflicts_with = "server")]
    pub(crate) all: bool,

    /// Offer only the servers and tools in this profile of the config
    #[arg(long, value_name = "NAME", conflicts_with_all = ["server", "all"])]
    pub(crate) profile: Option<String>,
}

#[derive(Args)]
pub(crate) struct Wrap {
    /// Name of the server in records
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub(crate) name: String,

    /// Command line of the server, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port, such as 127.0.0.1:7420".to_owned())
}

/// As in the configuration, where names of servers stand before the tool's: `server:tool`.
fn server_name(text: &str) -> Result<String, String> {
    match domain::config::name_fault(text) {
        None => Ok(text.to_owned()),
        Some(fault) => Err(fault),
    }
}

#[derive(Args)]
pub(crate) struct Supervise {
    /// Watch this process, the parent, instead of stdin
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) gate: Option<i32>,

    /// Seconds between SIGTERM and SIGKILL
    #[arg(long, value_name = "SECONDS", default_value_t = CHILD_GRACE.as_secs())]
    pub(crate) grace: u64,

    /// Take this many further arguments of the command from variables
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) handed_over: usize,

    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct Demo {
    /// Address and port to listen on [default: a free port]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,

    /// Exit once the agents have finished their script
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServeFormat {
    Text,
    Json,
}

#[derive(Subcommand)]
pub(crate) enum Call {
    /// Call a tool that only reads
    #[command(
        name = "tool-read",
        after_help = "Examples, with the same meaning:\n  \
        countersign call tool-read workspace:Read '{\"path\": \"a.txt\"}'\n  \
        countersign call tool-read -t workspace:Read -j '{\"path\": \"a.txt\"}'"
    )]
    Read(CallArgs),
    /// Call a tool that creates or changes something
    #[command(name = "tool-write")]
    Write(CallArgs),
    /// Call a tool that can destroy something
    #[command(name = "tool-destructive")]
    Destructive(CallArgs),
}

/// The tool and its arguments can be given by position or by flag. The command reports what is
/// given twice; clap's own message would not say what was meant.
#[derive(Args)]
pub(crate) struct CallArgs {
    /// Tool to call, as server:tool
    #[arg(value_name = "SERVER:TOOL", required_unless_present = "tool_name")]
    pub(crate) tool: Option<String>,

    /// Arguments of the tool: a JSON object, or @FILE to read one from a file
    #[arg(value_name = "JSON")]
    pub(crate) json: Option<String>,

    /// Tool to call, instead of by position
    #[arg(short, long, alias = "tool_name", value_name = "SERVER:TOOL", action = ArgAction::Append)]
    pub(crate) tool_name: Vec<String>,

    /// Arguments of the tool, instead of by position
    #[arg(short, long = "json_args", alias = "json-args", value_name = "JSON", action = ArgAction::Append)]
    pub(crate) json_args: Vec<String>,

    /// Reason for the call, kept in the record
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// Sensitivity of the data: public, internal, private or unknown
    #[arg(long, value_name = "LEVEL")]
    pub(crate) sensitivity: Option<String>,

    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

#[derive(Subcommand)]
pub(crate) enum Keys {
    /// Show the public keys, the current one first
    #[command(after_help = "Example:\n  \
        countersign keys show --pem > countersign.pem      for anyone who verifies your receipts")]
    Show {
        /// Print only the current public key, as PEM
        #[arg(long)]
        pem: bool,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Replace the signing key; the old key signs a receipt of the change
    Rotate {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
}

#[derive(Subcommand)]
pub(crate) enum Config {
    /// Print the effective configuration with defaults and without secrets
    Show {
        #[arg(short, long, value_enum, default_value_t = Format::Json)]
        output: Format,
    },
    /// Check the config files and report every error
    Check,
    /// Trust a folder's countersign.json in its current form, so that all its settings apply
    #[command(
        after_help = "An untrusted file can only restrict: it can lock tools, redact values in \
        records,\nand add servers, which are not started. A file that changes must be trusted again."
    )]
    Trust {
        /// File to trust [default: ./countersign.json]
        #[arg(long, value_name = "PATH")]
        file: Option<PathBuf>,
        /// Stop trusting the file
        #[arg(long)]
        revoke: bool,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_definition_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
