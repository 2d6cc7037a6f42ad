//! The configuration: text in; checked values and notes out, or every fault with its position. This
//! module opens no files and reads no environment: `${env:NAME}` and `${secret:NAME}` stay in a
//! [`ConfigTemplate`] until the code that uses the value expands it.

mod added;
mod defaults;
mod environment;
mod fault;
mod found;
mod keys;
mod members;
mod oauth;
mod profile;
mod read;
mod reference;
mod render;
mod report;
mod scalar;
pub(crate) mod secret;
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

pub use added::{DividedServer, divide, secret_names, unite};
pub use environment::{Environment, Withheld, is_withheld};
pub use fault::{ConfigFault, Faults, Note};
pub use found::overlay;
pub use keys::server_keys;
pub use oauth::{OAuth, OAuthGrant, TokenAuth};
pub use read::{name_fault, parse};
pub use reference::reference;
pub use render::render;
pub use secret::{
    VISIBLE_SECRET, args as shown_args, is_in_args as is_secret_in_args, is_secret,
    url as shown_url,
};
pub use section::{
    AnchorConfig, Durability, IntentDeclaration, Ledger, OnFailure, OtlpProtocol, Payloads,
    PluginConfig, ProfileConfig, Redact, SearchConfig, SecretsKey, Telemetry, TlsFiles,
    WorkspaceConfig,
};
pub use server::{AutoApprove, LoginScope, ServerConfig, ServerOrigin, Sharing, Start, Transport};
pub use template::{ConfigTemplate, MissingValue, Placeholder, TemplateFault, is_secret_name};
pub use tool_rules::ToolRules;
pub use top::{Config, ParsedConfig};
pub use trusted::lay_over;
