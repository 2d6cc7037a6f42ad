//! The configuration: text in; checked values and notes out, or every fault with its position. This
//! module opens no files and reads no environment: `${env:NAME}` and `${secret:NAME}` stay in a
//! [`ConfigTemplate`] until the code that uses the value expands it.

mod added;
mod declare;
mod environment;
mod fault;
mod found;
mod keys;
mod kind;
mod ledger;
mod members;
mod name;
mod network;
mod oauth;
mod plugin;
mod profile;
mod read;
mod redact;
mod reference;
mod render;
mod report;
#[cfg(test)]
mod sample;
pub(crate) mod secret;
mod secrets;
mod section;
mod server;
mod source;
mod targets;
mod template;
#[cfg(test)]
mod tests;
mod tool_rules;
mod top;
mod transport;
mod trusted;
mod values;

pub use added::{DividedServer, divide, secret_names, unite};
pub use environment::{Environment, Withheld, is_withheld};
pub use fault::{ConfigFault, Faults, Note};
pub use found::overlay;
pub use keys::server_keys;
pub use ledger::{AnchorConfig, Durability, Ledger, OnFailure, Payloads};
pub use name::name_fault;
pub use oauth::{OAuth, OAuthGrant, TokenAuth};
pub use plugin::PluginConfig;
pub use profile::ProfileConfig;
pub use read::parse;
pub use redact::Redact;
pub use reference::reference;
pub use render::render;
pub use secret::{
    VISIBLE_SECRET, args as shown_args, is_in_args as is_secret_in_args, is_secret,
    url as shown_url,
};
pub use secrets::{SecretsConfig, SecretsKey};
pub use section::{
    IntentDeclaration, OtlpProtocol, SearchConfig, Telemetry, TlsFiles, WorkspaceConfig,
};
pub use server::{
    ArgumentCheck, AutoApprove, LoginScope, ServerConfig, ServerOrigin, Sharing, Start,
};
pub use template::{ConfigTemplate, MissingValue, Placeholder, TemplateFault, is_secret_name};
pub use tool_rules::ToolRules;
pub use top::{Config, ParsedConfig};
pub use transport::{RemoteProtocol, RemoteTransport, StdioTransport, Transport, TransportPart};
pub use trusted::lay_over;
