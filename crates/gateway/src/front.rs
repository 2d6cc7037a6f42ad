//! How agents speak with the gate. [`stdio`] and [`http`] carry the sessions; [`discovery`] offers
//! the gate's own tools, [`passthrough`] those of the servers, [`step`] those of one step of a run,
//! and [`wrap`] passes one server's messages on as they are.

pub mod answer;
pub mod discovery;
pub mod http;
mod passthrough;
mod relay;
mod reply;
mod session;
pub mod stdio;
pub mod step;
mod tool_request;
pub mod wrap;

use std::sync::Arc;

use domain::Caller;
use domain::caller::TokenSurface;

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
    /// The gate's own tools, within a profile.
    Profile(String),
}

impl View {
    /// A server's own tools where one is named, else the gate's own, within a profile or not.
    pub fn named(server: Option<String>, profile: Option<String>) -> View {
        match (server, profile) {
            (Some(server), _) => View::Server(server),
            (None, Some(profile)) => View::Profile(profile),
            (None, None) => View::Discovery,
        }
    }

    /// Whether there is such a view for the caller: a server that it may not see is not there.
    pub fn exists(&self, gateway: &Gateway, caller: &Caller) -> bool {
        match self {
            View::Discovery | View::All => true,
            View::Server(name) => gateway.catalog().server(name).is_some() && caller.sees(name),
            View::Profile(name) => gateway.settings().profiles.contains_key(name),
        }
    }

    /// The door that a token must be good for.
    pub fn surface(&self) -> TokenSurface {
        match self {
            View::Discovery | View::Profile(_) => TokenSurface::Discovery,
            View::All | View::Server(_) => TokenSurface::Passthrough,
        }
    }

    /// The service of a new session.
    pub fn open(&self, gateway: &Gateway, caller: &Arc<Caller>) -> Arc<dyn mcp::Service> {
        let profile = match self {
            View::Profile(name) => Some(name.clone()),
            View::Discovery | View::All | View::Server(_) => None,
        };
        let session = Session::new(gateway.clone(), caller.clone(), profile);
        match self {
            View::Discovery | View::Profile(_) => Arc::new(Discovery::new(session)),
            View::All => Passthrough::all(session),
            View::Server(name) => Passthrough::server(session, name.as_str().into()),
        }
    }
}
