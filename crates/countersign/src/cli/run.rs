//! The words of `countersign run` and `validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args)]
pub(crate) struct Run {
    /// Workflow file
    #[arg(value_name = "FILE", required_unless_present_any = ["provider", "resume"])]
    pub(crate) file: Option<PathBuf>,

    /// Input of the workflow; can be repeated
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) inputs: Vec<(String, String)>,

    /// Go on from the failed step of this run, with the same workflow and inputs
    #[arg(long, value_name = "RUN", conflicts_with_all = ["provider", "dry_run"])]
    pub(crate) resume: Option<String>,

    /// Agent to run without a workflow file: claude, gemini, codex, opencode or openai_compatible
    #[arg(long, value_name = "NAME", requires = "prompt", conflicts_with = "file")]
    pub(crate) provider: Option<String>,

    /// Task for the agent
    #[arg(long, value_name = "TEXT", requires = "provider")]
    pub(crate) prompt: Option<String>,

    /// Model to use [default: the agent's own]
    #[arg(long, value_name = "NAME", requires = "provider")]
    pub(crate) model: Option<String>,

    /// Servers of the config that the agent may also use
    #[arg(long = "server", value_name = "LIST", value_delimiter = ',', requires = "provider")]
    pub(crate) servers: Vec<String>,

    /// Operations of a plugin that the agent may also use
    #[arg(long = "plugin", value_name = "NAME:OPERATION,…", value_parser = plugin, requires = "provider")]
    pub(crate) plugins: Vec<(String, Vec<String>)>,

    /// Print the command, environment and files of each step, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Export spans to this URL, such as http://127.0.0.1:4317 [default: from the config]
    #[arg(long, value_name = "URL")]
    pub(crate) otel_exporter: Option<String>,

    /// Service name of the spans [default: from the config]
    #[arg(long, value_name = "NAME")]
    pub(crate) otel_service_name: Option<String>,

    /// Output format; jsonl prints events as they happen, quiet nothing but errors
    #[arg(short = 'o', long, visible_alias = "output", value_enum, default_value_t = RunFormat::Text)]
    pub(crate) format: RunFormat,
}

#[derive(Args)]
pub(crate) struct Validate {
    /// Workflow file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[arg(short = 'o', long, visible_alias = "output", value_enum, default_value_t = ValidateFormat::Text)]
    pub(crate) format: ValidateFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    Text,
    Json,
    Jsonl,
    Quiet,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ValidateFormat {
    Text,
    Json,
}

fn plugin(text: &str) -> Result<(String, Vec<String>), String> {
    let expected = || "expected a plugin and its operations, such as echo:say,shout".to_owned();
    let (name, operations) = text.split_once(':').ok_or_else(expected)?;
    let operations: Vec<String> = operations.split(',').map(str::to_owned).collect();
    if name.is_empty() || operations.iter().any(String::is_empty) {
        return Err(expected());
    }
    Ok((name.to_owned(), operations))
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}
