//! The gate put together from a configuration.

use std::sync::Arc;

use domain::Caller;
use domain::config::{Config, Server};
use domain::policy::{ServerRules, ToolRules};
use gateway::auth::Tokens;
use gateway::{Gateway, ServerSpec, Settings};
use store::Store;

use crate::demo;
use crate::exit::Failure;
use crate::home::Home;

pub(crate) struct App {
    pub(crate) gateway: Gateway,
    pub(crate) tokens: Arc<Tokens>,
}

/// Which of the configured servers to connect to.
#[derive(Clone, Copy)]
pub(crate) enum Servers<'a> {
    All,
    Only(&'a str),
}

/// Builds the gate and starts to connect. With no server configured the demo ones take their
/// place, so that there is something to see.
pub(crate) fn build(home: &Home, config: &Config, servers: Servers<'_>) -> Result<App, Failure> {
    let tokens = Tokens::new([
        (home.api_key()?.expose().to_owned(), Caller::admin()),
        (home.agent_token()?.expose().to_owned(), Caller::agent("agent-token")),
    ]);
    let gateway = Gateway::new(Settings::from(config), Store::in_memory());
    if is_demo(config) {
        demo::servers().into_iter().for_each(|spec| gateway.add_upstream(spec));
    }
    for server in &config.servers {
        let wanted = match servers {
            Servers::All => true,
            Servers::Only(name) => server.name == name,
        };
        if wanted {
            gateway.add_upstream(spec(server));
        }
    }
    Ok(App { gateway, tokens: Arc::new(tokens) })
}

pub(crate) fn is_demo(config: &Config) -> bool {
    config.servers.is_empty()
}

fn spec(server: &Server) -> ServerSpec {
    let tools = match (&server.enabled_tools, server.disabled_tools.as_slice()) {
        (Some(only), _) => ToolRules::Only(only.clone()),
        (None, []) => ToolRules::All,
        (None, except) => ToolRules::Except(except.to_vec()),
    };
    ServerSpec {
        name: server.name.as_str().into(),
        rules: ServerRules { quarantined: server.quarantined, disabled: !server.enabled, tools },
        endpoint: (&server.transport).into(),
    }
}
