//! How agents speak with the gate. [`stdio`] and [`http`] carry the sessions; [`discovery`] offers
//! the gate's own tools, [`passthrough`] those of the servers, and [`wrap`] passes one server's
//! messages on as they are.

pub mod discovery;
pub mod http;
mod passthrough;
mod relay;
mod session;
pub mod stdio;
mod tool_request;
pub mod wrap;

use std::sync::Arc;

use domain::Caller;

use crate::Gateway;
use crate::front::discovery::Discovery;
use crate::front::passthrough::Passthrough;
use crate::front::session::Session;

/// What a client is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The gate's own tools, through which all others are found and called.
    Discovery,
    /// Every callable tool, as `server__tool`.
    All,
    /// One server's tools under their own names.
    Server(String),
}

impl View {
    /// Whether there is such a view for the caller: a server that it may not see is not there.
    pub fn exists(&self, gateway: &Gateway, caller: &Caller) -> bool {
        match self {
            View::Discovery | View::All => true,
            View::Server(name) => gateway.catalog().server(name).is_some() && caller.sees(name),
        }
    }

    /// The service of a new session.
    pub fn open(&self, gateway: &Gateway, caller: &Arc<Caller>) -> Arc<dyn mcp::Service> {
        let session = Session::new(gateway.clone(), caller.clone());
        match self {
            View::Discovery => Arc::new(Discovery::new(session)),
            View::All => Passthrough::all(session),
            View::Server(name) => Passthrough::server(session, name.as_str().into()),
        }
    }
}
