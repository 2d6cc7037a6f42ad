//! The part of the configuration that the pipeline needs. A call keeps the settings it began with.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use domain::caller::Profile;
use domain::config::{Config, Payloads};
use domain::policy::Strictness;
use redact::{KnownSecrets, Redactor};

#[derive(Clone)]
pub struct GateSettings {
    pub strictness: Strictness,
    /// Searches count meaning in addition to words.
    pub learned: bool,
    pub tools_limit: u32,
    pub tool_response_limit: u32,
    pub call_timeout: Duration,
    pub connect_timeout: Duration,
    pub refresh_interval: Duration,
    pub shutdown_timeout: Duration,
    /// MCP requests per minute for each token.
    pub rate_limit: Option<NonZeroU32>,
    /// The default token is valid.
    pub agent_token: bool,
    pub payloads: Payloads,
    pub redactor: Arc<Redactor>,
    pub profiles: HashMap<String, Arc<Profile>>,
    server_call_timeouts: HashMap<String, Duration>,
}

impl GateSettings {
    pub fn call_timeout(&self, server: &str) -> Duration {
        self.server_call_timeouts.get(server).copied().unwrap_or(self.call_timeout)
    }

    /// Redacts these known secrets too, such as those that were handed out under earlier settings.
    pub fn know(&mut self, known: &KnownSecrets) {
        if let Some(redactor) = Arc::get_mut(&mut self.redactor) {
            redactor.share(known);
        }
    }
}

impl From<&Config> for GateSettings {
    fn from(config: &Config) -> Self {
        let strict = config.intent_declaration.strict_server_validation;
        GateSettings {
            strictness: if strict { Strictness::Refuse } else { Strictness::Warn },
            learned: config.search.learned,
            tools_limit: config.tools_limit,
            tool_response_limit: config.tool_response_limit,
            call_timeout: config.call_timeout,
            connect_timeout: config.connect_timeout,
            refresh_interval: config.refresh_interval,
            shutdown_timeout: config.shutdown_timeout,
            rate_limit: config.rate_limit,
            agent_token: config.agent_token,
            payloads: config.ledger.payloads,
            redactor: Arc::new(config.redact.redactor()),
            profiles: config
                .profiles
                .iter()
                .map(|profile| (profile.name.clone(), Arc::new(Profile::from(profile))))
                .collect(),
            server_call_timeouts: config
                .servers
                .iter()
                .filter_map(|server| Some((server.name.clone(), server.call_timeout?)))
                .collect(),
        }
    }
}

impl Default for GateSettings {
    fn default() -> Self {
        GateSettings::from(&Config::default())
    }
}
