//! The words of the command line, and nothing of what they do.

mod activity;
mod plugin;
mod receipt;
mod run;
mod runs;
mod token;
mod tools;
mod upstream;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use domain::ledger::contention::ContentionKind;
use mcp::limits::CHILD_GRACE;

pub(crate) use activity::{Activity, Filters, Rows, Span, Watch, WatchFormat};
pub(crate) use plugin::Plugin;
pub(crate) use receipt::{Receipt, ReceiptFilters, Verify};
pub(crate) use run::{Run, RunFormat, Validate, ValidateFormat};
pub(crate) use runs::Runs;
pub(crate) use token::{Create, SecretFormat, Token};
pub(crate) use tools::Tools;
pub(crate) use upstream::{Add, Upstream};

/// What every command knows stands after what is its own.
const LAST: usize = 900;

#[derive(Parser)]
#[command(
    name = "countersign",
    version,
    arg_required_else_help = true,
    about = "The gate between AI agents and their tools",
    after_help = "Examples:\n  \
        countersign serve                      run the gate; it says how to connect an agent\n  \
        countersign run --provider claude --prompt \"Fix the failing test\"\n\n\
        Exit codes: 0 done, 1 wrong input, 2 wrong config, 3 a call failed, 4 the system failed"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) place: Locations,

    /// How log lines on stderr look: text, json
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, display_order = LAST,
        hide_possible_values = true)]
    pub(crate) log_format: LogFormat,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where things are.
#[derive(Args, Clone)]
pub(crate) struct Locations {
    /// The config file [default: $XDG_CONFIG_HOME/countersign/config.json]
    #[arg(long, global = true, env = "COUNTERSIGN_CONFIG", value_name = "FILE", display_order = LAST)]
    pub(crate) config: Option<PathBuf>,

    /// Keys, sockets and records [default: $XDG_DATA_HOME/countersign]
    #[arg(long, global = true, env = "COUNTERSIGN_HOME", value_name = "DIR", display_order = LAST)]
    pub(crate) home: Option<PathBuf>,

    /// A config file in the folder has no say.
    #[arg(skip)]
    pub(crate) alone: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Json,
    Yaml,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gate until it is told to stop
    Serve(Serve),
    /// Speak MCP on stdin and stdout: through a running `serve`, else with a gate of its own
    Mcp(Mcp),
    /// Be the MCP server of the agent in a step of a run; --config names the step's file
    #[command(hide = true)]
    McpServe,
    /// Stand in for one server: pass its messages on as they are, and record every call
    #[command(after_help = "Example, in a client's configuration:\n  \
        \"command\": \"countersign\", \"args\": [\"wrap\", \"--name\", \"github\", \"--\", \"npx\", \"…\"]")]
    Wrap(Wrap),
    /// Run a workflow, or one agent, with the gate as the only source of tools
    #[command(after_help = "Examples:\n  \
        countersign run flow.yaml -i env=dev\n  \
        countersign run --provider claude --prompt \"Fix the failing test\"\n  \
        countersign run flow.yaml --dry-run      what would be started, and how\n\n\
        Ends with 0, 2 where the workflow is wrong, 3 where the run failed, 130 where it was\n\
        cancelled, or what the workflow says. Ctrl+C ends every step first; a second one does not wait.")]
    Run(Run),
    /// Check a workflow and tell every fault at once, with its place
    Validate(Validate),
    /// Call a tool; the intent is filled in from the command
    Call {
        #[command(subcommand)]
        variant: Call,
    },
    /// See the tools of all servers, approve what waits, switch them on and off
    Tools {
        #[command(subcommand)]
        verb: Tools,
    },
    /// See the servers behind the gate, add, approve and switch them
    Upstream {
        #[command(subcommand)]
        verb: Upstream,
    },
    /// See the plugins that are found here, let them be started
    Plugin {
        #[command(subcommand)]
        verb: Plugin,
    },
    /// Print a link to the page, where all of this can be seen and done
    #[command(after_help = "The link signs one browser in. It works once, for ten minutes.")]
    Page,
    /// Make tokens for agents, see them, revoke them
    Token {
        #[command(subcommand)]
        verb: Token,
    },
    /// See what was done: every call, refused ones too
    Activity {
        #[command(subcommand)]
        verb: Activity,
    },
    /// See the runs of workflows, their steps and calls
    Runs {
        #[command(subcommand)]
        verb: Runs,
    },
    /// See, check and take along the signed proof of what was done
    Receipt {
        #[command(subcommand)]
        verb: Receipt,
    },
    /// See or change the key that signs the receipts
    Keys {
        #[command(subcommand)]
        verb: Keys,
    },
    /// See which agents touched the same thing
    #[command(after_help = "Examples:\n  \
        countersign contention                          within an hour of each other\n  \
        countersign contention --window 10m --kind stale-read\n\n\
        write-write: both changed it. read-write: one read what the other changed. stale-read:\n\
        the first read, the second changed, and the first changed it without looking again.")]
    Contention(Contention),
    /// Record what an agent does by itself: a hook event of Claude Code on stdin
    #[command(
        after_help = "In Claude Code's settings, for PreToolUse, PostToolUse and PostToolUseFailure:\n  \
        {\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": \"countersign hook\"}]}\n\n\
        It ends at once and never stops the agent. While no 'serve' runs, events are written\n\
        down in <home>/spool and taken in at its next start."
    )]
    Hook,
    /// Run a command and end its whole process group when stdin is closed, or a process ends
    #[command(hide = true)]
    Supervise(Supervise),
    /// Show it all alive: demo servers and two scripted agents, in a temporary home
    Demo(Demo),
    /// Print a completion script for your shell
    Completions { shell: clap_complete::Shell },
    /// Print a page for `man`, for those who package the program
    #[command(hide = true)]
    Man {
        /// The command that it is about [default: the program itself]
        #[arg(value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// See, check or trust the configuration
    Config {
        #[command(subcommand)]
        verb: Config,
    },
}

#[derive(Args)]
pub(crate) struct Serve {
    /// Address and port; port 0 takes a free one. Beyond loopback the config must set 'tls' or
    /// 'behind_proxy' [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,

    /// json: one line on stdout once it is ready
    #[arg(short, long, value_enum, default_value_t = ServeFormat::Text)]
    pub(crate) output: ServeFormat,
}

#[derive(Args)]
pub(crate) struct Mcp {
    /// Show one server's tools under their own names, without the two-key tools
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,

    /// Show only what lies within this profile of the config
    #[arg(long, value_name = "NAME", conflicts_with = "server")]
    pub(crate) profile: Option<String>,
}

#[derive(Args)]
pub(crate) struct Wrap {
    /// The server's name in the records
    #[arg(long, value_name = "NAME", value_parser = server_name)]
    pub(crate) name: String,

    /// The server's command line, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address and a port such as 127.0.0.1:7420".to_owned())
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
    /// End with this process, our parent, instead of stdin
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) gate: Option<i32>,

    /// Seconds between SIGTERM and SIGKILL
    #[arg(long, value_name = "SECONDS", default_value_t = CHILD_GRACE.as_secs())]
    pub(crate) grace: u64,

    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct Demo {
    /// Address and port [default: a free port]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,

    /// End after the agent has gone through its script once
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
    #[command(name = "tool-read")]
    Read(CallArgs),
    /// Call a tool that creates or changes something
    #[command(name = "tool-write")]
    Write(CallArgs),
    /// Call a tool that can destroy something
    #[command(name = "tool-destructive")]
    Destructive(CallArgs),
}

#[derive(Args)]
pub(crate) struct CallArgs {
    /// The tool, as server:tool
    #[arg(long, alias = "tool_name", value_name = "SERVER:TOOL")]
    pub(crate) tool_name: String,

    /// The tool's arguments: a JSON object, or @file
    #[arg(long = "json_args", alias = "json-args", value_name = "JSON")]
    pub(crate) json_args: Option<String>,

    /// Why the call is made; it is recorded
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,

    /// public, internal, private or unknown
    #[arg(long, value_name = "LEVEL")]
    pub(crate) sensitivity: Option<String>,

    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

#[derive(Subcommand)]
pub(crate) enum Keys {
    /// Show the public keys, the one that signs now first
    #[command(after_help = "Example:\n  \
        countersign keys show --pem > countersign.pem      for whoever checks your receipts")]
    Show {
        /// Print the public key that signs now, as PEM and nothing else
        #[arg(long)]
        pem: bool,
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Have a new key sign from here on; the old one signs a receipt that says so
    Rotate {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
}

#[derive(Args)]
pub(crate) struct Contention {
    /// How close in time two agents must have touched it, such as 10m or 2h [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = activity::duration)]
    pub(crate) window: Option<String>,

    /// Only what lies in this system: the name of a server, or 'filesystem'
    #[arg(long, value_name = "NAME")]
    pub(crate) system: Option<String>,

    /// Only this kind
    #[arg(long, value_parser = activity::words(&ContentionKind::ALL, ContentionKind::as_str))]
    pub(crate) kind: Option<String>,

    /// Also where both only read, which is no contention
    #[arg(long, conflicts_with = "kind")]
    pub(crate) reads: bool,

    #[command(flatten)]
    pub(crate) span: Span,

    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

#[derive(Subcommand)]
pub(crate) enum Config {
    /// Print the configuration in force, defaults filled in and secrets left out
    Show {
        #[arg(short, long, value_enum, default_value_t = Format::Json)]
        output: Format,
    },
    /// Check the config files and tell every fault at once
    Check,
    /// Put all of a folder's countersign.json into effect, as it is now
    #[command(
        after_help = "Until then such a file may only narrow: it can lock tools, hide values in records and add\n\
        servers that are not started. Once it is changed, it may only narrow again."
    )]
    Trust {
        /// The file [default: ./countersign.json]
        #[arg(long, value_name = "PATH")]
        file: Option<PathBuf>,
        /// Trust it no longer
        #[arg(long)]
        revoke: bool,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_words_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
