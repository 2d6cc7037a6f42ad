//! The words of `countersign token`. What they must be the gate says, once for every door.

use clap::{Args, Subcommand, ValueEnum};

use super::{Format, activity};

#[derive(Subcommand)]
pub(crate) enum Token {
    /// Create an agent token and print its secret, which is not shown again
    #[command(after_help = "Examples:\n  \
        token=$(countersign token create ci --operations read --servers github,files)\n  \
        countersign token create editor --operations read,write --expires-in 30d\n\n\
        Only the secret is printed on stdout; the token's permissions are printed on stderr.")]
    Create(Create),
    /// List tokens and their permissions, without their secrets
    List {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Revoke a token, also for open sessions
    Revoke { name: String },
}

#[derive(Args)]
pub(crate) struct Create {
    pub(crate) name: String,

    /// Operations to permit: read, write, destructive
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    pub(crate) operations: Vec<String>,

    /// Servers to make visible [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) servers: Option<Vec<String>>,

    /// Surfaces to permit: discovery (the gate's own tools), passthrough (the servers' tools)
    /// [default: discovery]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) surfaces: Option<Vec<String>>,

    /// Limit the token to this profile of the config
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Lifetime, such as 30d or 12h [default: until revoked]
    #[arg(long, value_name = "DURATION", value_parser = activity::duration)]
    pub(crate) expires_in: Option<String>,

    /// Treatment of tools without annotations: allow, deny [default: deny for read-only tokens]
    #[arg(long, value_name = "WORD")]
    pub(crate) unannotated_tools: Option<String>,

    /// Output format; text prints only the secret
    #[arg(short, long, value_enum, default_value_t = SecretFormat::Text)]
    pub(crate) output: SecretFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SecretFormat {
    Text,
    Json,
    Yaml,
}
