//! The words of `countersign run` and `validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args)]
pub(crate) struct Run {
    /// The workflow's file
    #[arg(value_name = "FILE", required_unless_present = "provider")]
    pub(crate) file: Option<PathBuf>,

    /// An input of the workflow; as often as there are inputs
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) inputs: Vec<(String, String)>,

    /// Without a file, the agent to run: claude, gemini, codex or opencode
    #[arg(long, value_name = "NAME", requires = "prompt", conflicts_with = "file")]
    pub(crate) provider: Option<String>,

    /// What the agent is to do
    #[arg(long, value_name = "TEXT", requires = "provider")]
    pub(crate) prompt: Option<String>,

    /// The model that the agent is to use [default: its own]
    #[arg(long, value_name = "NAME", requires = "provider")]
    pub(crate) model: Option<String>,

    /// Servers of the config that the agent may use as well
    #[arg(long = "server", value_name = "LIST", value_delimiter = ',', requires = "provider")]
    pub(crate) servers: Vec<String>,

    /// Operations of a plugin that the agent may use as well
    #[arg(long = "plugin", value_name = "NAME:OPERATION,…", value_parser = plugin, requires = "provider")]
    pub(crate) plugins: Vec<(String, Vec<String>)>,

    /// Show what each step would start, with its environment and files, and start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Where spans go, such as http://127.0.0.1:4317 [default: as the config says]
    #[arg(long, value_name = "URL")]
    pub(crate) otel_exporter: Option<String>,

    /// The name that spans carry [default: as the config says]
    #[arg(long, value_name = "NAME")]
    pub(crate) otel_service_name: Option<String>,

    /// quiet: nothing but the exit code
    #[arg(short = 'o', long, visible_alias = "output", value_enum, default_value_t = RunFormat::Text)]
    pub(crate) format: RunFormat,
}

#[derive(Args)]
pub(crate) struct Validate {
    /// The workflow's file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[arg(short = 'o', long, visible_alias = "output", value_enum, default_value_t = ValidateFormat::Text)]
    pub(crate) format: ValidateFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    Text,
    Json,
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
