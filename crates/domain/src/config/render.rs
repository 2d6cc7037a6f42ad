//! A configuration as JSON, with defaults filled in and likely secrets hidden, as printed by
//! `config show`. `Debug` of values that may hold secrets uses it too.

use std::fmt;

use serde_json::{Map, Value, json};

use super::{
    AnchorConfig, Config, ConfigTemplate, Ledger, OAuth, PluginConfig, ProfileConfig, SecretsKey,
    ServerConfig, ServerOrigin, Telemetry, TokenAuth, ToolRules, Transport, secret,
};
use crate::tool::ToolName;
use text::duration::spell;

/// Renders the whole configuration in the file's format.
pub fn render(config: &Config) -> Value {
    let port = config.listen.port();
    let mut members = json!({
        "listen": config.listen.to_string(),
        "allowed_hosts": config.hosts(port),
        "allowed_origins": config.origins(port),
        "behind_proxy": config.behind_proxy,
        "agent_token": config.agent_token,
        "mcpServers": by_name(config.servers.iter().map(|it| (it.name.as_str(), server(it)))),
        "profiles": by_name(config.profiles.iter().map(|it| (it.name.as_str(), profile(it)))),
        "workspace": {
            "enabled": config.workspace.enabled,
            "root": config.workspace.root,
            "write": config.workspace.write,
            "shell": config.workspace.shell,
            "allow_outside": config.workspace.allow_outside,
        },
        "plugins": by_name(config.plugins.iter().map(|it| (it.name.as_str(), plugin(it)))),
        "intent_declaration": {
            "strict_server_validation": config.intent.strict_server_validation,
        },
        "search": { "learned": config.search.learned },
        "tools_limit": config.tools_limit,
        "tool_response_limit": config.tool_response_limit,
        "call_timeout": spell(config.call_timeout),
        "connect_timeout": spell(config.connect_timeout),
        "shutdown_timeout": spell(config.shutdown_timeout),
        "refresh_interval": spell(config.refresh_interval),
        "ledger": ledger(&config.ledger),
        "redact": { "keys": config.redact.keys, "patterns": config.redact.patterns },
        "secrets": { "key": secrets_key(&config.secrets_key) },
        "telemetry": telemetry(&config.telemetry),
        "rate_limit": config.rate_limit.map_or(0, std::num::NonZeroU32::get),
    });
    if let Some(tls) = &config.tls {
        members["tls"] = json!({"cert": tls.cert, "key": tls.key});
    }
    members
}

fn by_name<'a>(values: impl Iterator<Item = (&'a str, Value)>) -> Value {
    values.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn server(server: &ServerConfig) -> Value {
    let mut members = transport(&server.transport);
    members.extend([
        ("enabled".to_owned(), json!(server.enabled)),
        ("quarantined".to_owned(), json!(server.quarantined)),
        ("untrusted".to_owned(), json!(server.origin == ServerOrigin::Found)),
        ("auto_approve".to_owned(), json!(server.auto_approve.name())),
        ("sharing".to_owned(), json!(server.sharing.name())),
        ("start".to_owned(), json!(server.start.name())),
        ("login".to_owned(), json!(server.login.name())),
        ("pin".to_owned(), json!(server.pin)),
    ]);
    // Only one of them: both together would be a fault in a file.
    match &server.tools {
        ToolRules::Only(tools) => members.insert("enabled_tools".to_owned(), json!(tools)),
        ToolRules::Except(tools) => members.insert("disabled_tools".to_owned(), json!(tools)),
        ToolRules::All => members.insert("disabled_tools".to_owned(), json!([])),
    };
    put(&mut members, "call_timeout", server.call_timeout.map(spell));
    put(&mut members, "max_concurrent", server.max_concurrent);
    put(&mut members, "oauth", server.oauth.as_ref().map(oauth));
    put(&mut members, "targets", server.targets.as_ref().map(|targets| targets.to_json()));
    Value::Object(members)
}

fn transport(transport: &Transport) -> Map<String, Value> {
    let mut members = Map::new();
    match transport {
        Transport::Stdio { command, args, env, cwd, inherit_env } => {
            put(&mut members, "transport", Some("stdio"));
            put(&mut members, "command", Some(command));
            put(&mut members, "args", Some(secret::args(args)));
            put(&mut members, "env", Some(named(env)));
            put(&mut members, "inherit_env", Some(inherit_env));
            put(&mut members, "cwd", cwd.as_ref());
        }
        Transport::Http { url, headers } => remote(&mut members, "http", url, headers),
        Transport::Sse { url, headers } => remote(&mut members, "sse", url, headers),
    }
    members
}

fn remote(
    members: &mut Map<String, Value>,
    transport: &str,
    url: &ConfigTemplate,
    headers: &[(String, ConfigTemplate)],
) {
    put(members, "transport", Some(transport));
    put(members, "url", Some(secret::url(url.text())));
    put(members, "headers", Some(named(headers)));
}

fn named(values: &[(String, ConfigTemplate)]) -> Value {
    by_name(
        values
            .iter()
            .map(|(name, value)| (name.as_str(), Value::from(secret::named(name, value.text())))),
    )
}

fn oauth(oauth: &OAuth) -> Value {
    let mut members = Map::new();
    put(&mut members, "client_id", oauth.client_id.as_ref());
    for (name, value) in
        [("client_secret", &oauth.client_secret), ("private_key", &oauth.private_key)]
    {
        let shown = value.as_ref().map(|value| secret::named(name, value.text()));
        put(&mut members, name, shown);
    }
    put(&mut members, "auth_method", oauth.auth_method.map(TokenAuth::name));
    put(&mut members, "scopes", Some(&oauth.scopes));
    put(&mut members, "grant", Some(oauth.grant.name()));
    put(&mut members, "metadata_url", oauth.metadata_url.as_ref());
    put(&mut members, "resource", Some(oauth.resource));
    put(&mut members, "assume_pkce", Some(oauth.assume_pkce));
    Value::Object(members)
}

fn profile(profile: &ProfileConfig) -> Value {
    let mut members = Map::new();
    put(&mut members, "servers", Some(&profile.servers));
    put(&mut members, "tools", profile.tools.as_deref().map(names));
    put(&mut members, "exclude", Some(names(&profile.exclude)));
    Value::Object(members)
}

fn names(tools: &[ToolName]) -> Vec<String> {
    tools.iter().map(ToolName::to_string).collect()
}

fn plugin(plugin: &PluginConfig) -> Value {
    let mut members = Map::new();
    put(&mut members, "path", plugin.path.as_ref());
    put(&mut members, "config", Some(secret::json(&Value::Object(plugin.config.clone()))));
    put(&mut members, "env", Some(named(&plugin.env)));
    put(&mut members, "sha256", plugin.sha256.as_ref());
    Value::Object(members)
}

fn ledger(ledger: &Ledger) -> Value {
    let mut members = json!({
        "durability": ledger.durability.name(),
        "payloads": ledger.payloads.name(),
        "on_failure": ledger.on_failure.name(),
        "activity_retention_days": ledger.activity_retention_days,
        "max_records": ledger.max_records,
        "max_size_mb": ledger.max_size_mb,
        "receipt_retention_days": ledger.receipt_retention_days,
    });
    match &ledger.anchor {
        None => {}
        Some(AnchorConfig::File(path)) => members["anchor"] = json!(path),
        Some(AnchorConfig::Command(words)) => {
            members["anchor"] = json!(secret::words(words.iter().map(String::as_str)));
        }
    }
    members
}

fn secrets_key(key: &SecretsKey) -> Value {
    match key {
        SecretsKey::Auto => json!("auto"),
        SecretsKey::File => json!("file"),
        SecretsKey::Keychain => json!("keychain"),
        SecretsKey::Command(words) => {
            json!({"command": secret::words(words.iter().map(String::as_str))})
        }
    }
}

fn telemetry(telemetry: &Telemetry) -> Value {
    json!({
        "exporter": secret::url(&telemetry.exporter),
        "service_name": telemetry.service_name,
        "protocol": telemetry.protocol.name(),
    })
}

/// Omits values that the file may omit.
fn put(members: &mut Map<String, Value>, name: &str, value: Option<impl serde::Serialize>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), json!(value));
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Config {}", render(self))
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server {:?} {}", self.name, server(self))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transport {}", Value::Object(transport(self)))
    }
}

impl fmt::Debug for PluginConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plugin {:?} {}", self.name, plugin(self))
    }
}
