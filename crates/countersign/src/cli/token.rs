//! The words of `countersign token`. What they must be the gate says, once for every door.

use clap::{Args, Subcommand, ValueEnum};

use super::{Format, activity};

#[derive(Subcommand)]
pub(crate) enum Token {
    /// Make a token for an agent; its secret is shown this once
    #[command(after_help = "Examples:\n  \
        token=$(countersign token create ci --operations read --servers github,files)\n  \
        countersign token create editor --operations read,write --expires-in 30d\n\n\
        The secret stands alone on stdout, and what it is good for on stderr.")]
    Create(Create),
    /// List the tokens and what they are good for; never their secrets
    List {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Revoke a token: open sessions lose it too
    Revoke { name: String },
}

#[derive(Args)]
pub(crate) struct Create {
    pub(crate) name: String,

    /// What it may do: read, write, destructive
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    pub(crate) operations: Vec<String>,

    /// The servers that it sees [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) servers: Option<Vec<String>>,

    /// The doors that it opens: discovery (the gate's own tools), passthrough (the servers' own)
    /// [default: discovery]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) surfaces: Option<Vec<String>>,

    /// Only what lies within this profile of the config
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// How long it is good, such as 30d or 12h [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = activity::duration)]
    pub(crate) expires_in: Option<String>,

    /// Whether it may use tools without annotations: allow, deny [default: deny if it only reads]
    #[arg(long, value_name = "WORD")]
    pub(crate) unannotated_tools: Option<String>,

    /// text: the secret alone
    #[arg(short, long, value_enum, default_value_t = SecretFormat::Text)]
    pub(crate) output: SecretFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SecretFormat {
    Text,
    Json,
    Yaml,
}
