//! What is kept of a server while it is up: a connection that speaks MCP, or a plugin that was
//! started. The driver treats both alike.

use std::sync::Arc;
use std::time::Duration;

use mcp::child::StderrTail;
use mcp::handshake::Welcome;
use mcp::message::{Raw, raw};
use mcp::peer::{Peer, Service};
use provider::Connected;

use crate::trust::Others;
use crate::upstream::connection::{Connection, Lister, Opening};
use crate::upstream::endpoint::{Endpoint, Plugin};

pub(super) enum Kept {
    Server(Connection),
    Plugin(Arc<dyn Connected>),
}

/// Every tool, and the lists beside them.
pub(super) type Listed = (Vec<Raw>, Others);

/// What calls are made on, as long as it is up.
pub(crate) enum Live {
    Server { peer: Peer, welcome: Arc<Welcome> },
    Plugin(Arc<dyn Connected>),
}

impl Kept {
    /// Opens and lists, or says in one sentence why not.
    pub(super) async fn open(
        endpoint: &Endpoint,
        service: Arc<dyn Service>,
        stderr: &StderrTail,
        timeout: Duration,
    ) -> Result<(Kept, Listed), String> {
        if let Endpoint::Plugin(plugin) = endpoint {
            return open_plugin(plugin, stderr, timeout).await;
        }
        let capabilities = raw("{}".to_owned());
        let opening = Opening { endpoint, service, capabilities, stderr, timeout };
        let (connection, tools) = opening.open_and_list().await?;
        let others = connection.lister().others(timeout).await;
        Ok((Kept::Server(connection), (tools, others)))
    }

    pub(super) fn live(&self) -> Live {
        match self {
            Kept::Server(connection) => {
                Live::Server { peer: connection.peer.clone(), welcome: connection.welcome.clone() }
            }
            Kept::Plugin(plugin) => Live::Plugin(plugin.clone()),
        }
    }

    pub(super) fn instructions(&self) -> Option<String> {
        match self {
            Kept::Server(connection) => connection.welcome.instructions.clone(),
            Kept::Plugin(_) => None,
        }
    }

    /// Waits until it is gone, and says why.
    pub(super) async fn lost(&mut self) -> String {
        match self {
            Kept::Server(connection) => connection.lost().await,
            Kept::Plugin(plugin) => plugin.lost().await,
        }
    }

    pub(super) async fn reason(&mut self, reason: String) -> String {
        match self {
            Kept::Server(connection) => connection.reason(reason).await,
            Kept::Plugin(_) => reason,
        }
    }

    pub(super) async fn close(self) {
        match self {
            Kept::Server(connection) => connection.close().await,
            Kept::Plugin(plugin) => plugin.close().await,
        }
    }
}

impl Live {
    /// Lists again.
    pub(super) async fn list(&self, timeout: Duration) -> Result<Listed, String> {
        match self {
            Live::Server { peer, welcome } => {
                let lister = Lister { peer: peer.clone(), welcome: welcome.clone() };
                Ok((lister.tools(timeout).await?, lister.others(timeout).await))
            }
            Live::Plugin(plugin) => Ok((tools_of(&**plugin, timeout).await?, Others::new())),
        }
    }
}

async fn open_plugin(
    plugin: &Plugin,
    stderr: &StderrTail,
    timeout: Duration,
) -> Result<(Kept, Listed), String> {
    let opening = async {
        let plugin = plugin.connector.connect(stderr).await?;
        match plugin.tools().await {
            Ok(tools) => Ok((Kept::Plugin(plugin), (tools, Others::new()))),
            Err(error) => {
                plugin.close().await;
                Err(error.to_string())
            }
        }
    };
    // Whoever is given up on is ended by being dropped.
    let opened = tokio::time::timeout(timeout, opening).await;
    opened.unwrap_or_else(|_| Err(late(timeout)))
}

async fn tools_of(plugin: &dyn Connected, timeout: Duration) -> Result<Vec<Raw>, String> {
    match tokio::time::timeout(timeout, plugin.tools()).await {
        Ok(listed) => listed.map_err(|error| error.to_string()),
        Err(_) => Err(late(timeout)),
    }
}

fn late(timeout: Duration) -> String {
    format!("it was not ready within {timeout:?}")
}
