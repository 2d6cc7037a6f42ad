//! The link to a running server: an MCP connection, or a started plugin. The driver treats both
//! alike.

use std::sync::Arc;
use std::time::Duration;

use domain::catalog::ListedResource;
use domain::upstream::UpstreamFailure;
use futures_util::future::join;
use mcp::child::StderrTail;
use mcp::handshake::Welcome;
use mcp::message::Raw;
use mcp::peer::Peer;
use provider::ProviderConnection;

use crate::limits;
use crate::spec::{PluginSpec, ServerEndpoint};
use crate::trust::ItemList;
use crate::upstream::connection::{Connection, Lister, Opening};

/// A link owned by the driver, which closes it.
pub(super) enum ServerLink {
    Server(Connection),
    Plugin(Arc<dyn ProviderConnection>),
}

/// All lists of a server.
pub(super) struct ServerLists {
    pub(super) tools: Vec<Raw>,
    /// The lists besides the tools.
    pub(super) others: Vec<ItemList>,
    /// `None` if they could not be fetched.
    pub(super) resources: Option<Arc<[ListedResource]>>,
}

impl ServerLists {
    fn of_tools(tools: Vec<Raw>) -> ServerLists {
        ServerLists { tools, others: Vec::new(), resources: None }
    }
}

/// Makes calls on a link while it is up.
pub(crate) enum LinkHandle {
    Server { server: Arc<str>, peer: Peer, welcome: Arc<Welcome> },
    Plugin(Arc<dyn ProviderConnection>),
}

impl ServerLink {
    /// Opens the link and lists, or returns one sentence saying why it cannot.
    pub(super) async fn open(
        opening: Opening<'_>,
    ) -> Result<(ServerLink, ServerLists), UpstreamFailure> {
        let timeout = opening.timeout;
        if let ServerEndpoint::Plugin(plugin) = &opening.spec.endpoint {
            return open_plugin(plugin, opening.stderr, timeout).await;
        }
        let (connection, tools) = opening.open_and_list().await?;
        let lister = connection.lister();
        let wait = timeout.min(limits::RESOURCES_WAIT);
        let (others, resources) = join(lister.others(timeout), lister.resources(wait)).await;
        Ok((ServerLink::Server(connection), ServerLists { tools, others, resources }))
    }

    pub(super) fn handle(&self) -> LinkHandle {
        match self {
            ServerLink::Server(connection) => {
                let Lister { server, peer, welcome } = connection.lister();
                LinkHandle::Server { server, peer, welcome }
            }
            ServerLink::Plugin(plugin) => LinkHandle::Plugin(plugin.clone()),
        }
    }

    pub(super) fn instructions(&self) -> Option<String> {
        match self {
            ServerLink::Server(connection) => connection.welcome.instructions.clone(),
            ServerLink::Plugin(_) => None,
        }
    }

    /// Returns the name that the server gives itself.
    pub(super) fn info(&self) -> Option<Arc<str>> {
        match self {
            ServerLink::Server(connection) => connection.welcome.server_name().map(Into::into),
            ServerLink::Plugin(_) => None,
        }
    }

    /// Waits until the link is lost, and returns the reason.
    pub(super) async fn lost(&mut self) -> UpstreamFailure {
        match self {
            ServerLink::Server(connection) => connection.lost().await,
            ServerLink::Plugin(plugin) => plugin.lost().await,
        }
    }

    /// Adds what is known about the end of the server's process.
    pub(super) async fn explain(&mut self, failure: UpstreamFailure) -> UpstreamFailure {
        match self {
            ServerLink::Server(connection) => connection.explain(failure).await,
            ServerLink::Plugin(_) => failure,
        }
    }

    pub(super) async fn close(self) {
        match self {
            ServerLink::Server(connection) => connection.close().await,
            ServerLink::Plugin(plugin) => plugin.close().await,
        }
    }
}

impl LinkHandle {
    /// Requests the lists again.
    pub(super) async fn list(&self, timeout: Duration) -> Result<ServerLists, UpstreamFailure> {
        match self {
            LinkHandle::Server { server, peer, welcome } => {
                let (server, peer) = (server.clone(), peer.clone());
                let lister = Lister { server, peer, welcome: welcome.clone() };
                let tools = lister.tools(timeout).await?;
                let (others, resources) =
                    join(lister.others(timeout), lister.resources(timeout)).await;
                Ok(ServerLists { tools, others, resources })
            }
            LinkHandle::Plugin(plugin) => {
                tools_of(&**plugin, timeout).await.map(ServerLists::of_tools)
            }
        }
    }
}

async fn open_plugin(
    plugin: &PluginSpec,
    stderr: &StderrTail,
    timeout: Duration,
) -> Result<(ServerLink, ServerLists), UpstreamFailure> {
    let opening = async {
        let plugin = plugin.connector.connect(stderr).await?;
        match plugin.tools().await {
            Ok(tools) => Ok((ServerLink::Plugin(plugin), ServerLists::of_tools(tools))),
            Err(error) => {
                plugin.close().await;
                Err(error.to_string().into())
            }
        }
    };
    // An attempt that times out is ended by being dropped.
    let opened = tokio::time::timeout(timeout, opening).await;
    opened.unwrap_or_else(|_| Err(late(timeout)))
}

async fn tools_of(
    plugin: &dyn ProviderConnection,
    timeout: Duration,
) -> Result<Vec<Raw>, UpstreamFailure> {
    match tokio::time::timeout(timeout, plugin.tools()).await {
        Ok(listed) => listed.map_err(|error| error.to_string().into()),
        Err(_) => Err(late(timeout)),
    }
}

fn late(timeout: Duration) -> UpstreamFailure {
    format!("it was not ready within {timeout:?}").into()
}
