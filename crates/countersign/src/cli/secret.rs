//! The words of `countersign secret`.

use clap::Subcommand;

use super::Format;

#[derive(Subcommand)]
pub(crate) enum Secret {
    /// Store the value of a secret, from stdin or a hidden prompt
    #[command(after_help = "Examples:\n  \
        countersign secret set GITHUB_TOKEN                     asks for the value\n  \
        gh auth token | countersign secret set GITHUB_TOKEN\n\n\
        In the config, '${secret:GITHUB_TOKEN}' stands for the value. Servers get a new value when\n\
        they are connected again: 'countersign upstream restart NAME'.")]
    Set {
        /// Letters, digits, '_', '-' and '.'
        #[arg(value_parser = secret_name)]
        name: String,
    },
    /// List secrets and the servers that use them, without values
    List {
        #[arg(short, long, value_enum, default_value_t = Format::Table)]
        output: Format,
    },
    /// Remove a secret
    Remove { name: String },
}

fn secret_name(text: &str) -> Result<String, String> {
    if !domain::config::is_secret_name(text) {
        return Err("use up to 100 letters, digits, '_', '-' and '.'".to_owned());
    }
    Ok(text.to_owned())
}
