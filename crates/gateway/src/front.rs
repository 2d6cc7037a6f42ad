//! The agents' side of the gate. [`stdio`] and [`http`] carry the sessions; [`discovery`] offers
//! the gate's own tools, [`passthrough`] those of the servers, [`step`] those of one step of a run,
//! and [`wrap`] relays one server's messages unchanged.

pub mod answer;
pub mod discovery;
pub mod http;
mod passthrough;
mod question;
mod relay;
mod reply;
mod session;
pub mod stdio;
pub mod step;
mod tool_request;
pub mod visitor;
pub mod wrap;

use std::sync::Arc;

use domain::Caller;
use domain::caller::TokenSurface;

use crate::Gateway;
use crate::front::discovery::Discovery;
use crate::front::passthrough::Passthrough;
use crate::front::session::Session;

/// The tools a client sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The gate's own tools, which find and call all others.
    Discovery,
    /// Everything that all servers offer, with tools and prompts as `server__name`.
    All,
    /// One server's tools under their own names.
    Server(String),
    /// The gate's own tools, limited to a profile.
    Profile(String),
}

impl View {
    /// Everything of the named server, or of all, or else the gate's own tools, limited to a profile
    /// if one is named.
    pub fn named(server: Option<String>, is_all: bool, profile: Option<String>) -> View {
        match (server, profile) {
            (Some(server), _) => View::Server(server),
            (None, _) if is_all => View::All,
            (None, Some(profile)) => View::Profile(profile),
            (None, None) => View::Discovery,
        }
    }

    /// Reports whether this view exists for the caller: a server it may not see does not exist.
    pub fn exists(&self, gateway: &Gateway, caller: &Caller) -> bool {
        match self {
            View::Discovery | View::All => true,
            View::Server(name) => gateway.catalog().server(name).is_some() && caller.sees(name),
            View::Profile(name) => gateway.settings().profiles.contains_key(name),
        }
    }

    /// The surface that a token must be valid for.
    pub fn surface(&self) -> TokenSurface {
        match self {
            View::Discovery | View::Profile(_) => TokenSurface::Discovery,
            View::All | View::Server(_) => TokenSurface::Passthrough,
        }
    }

    /// Creates the service of a new session.
    pub fn open(&self, gateway: &Gateway, caller: &Arc<Caller>) -> Arc<dyn mcp::Service> {
        let profile = match self {
            View::Profile(name) => Some(name.clone()),
            View::Discovery | View::All | View::Server(_) => None,
        };
        let session = || Session::new(gateway.clone(), caller.clone(), profile);
        match self {
            View::Discovery | View::Profile(_) => Arc::new(Discovery::new(session())),
            View::All => {
                let session = Session::on_all(gateway.clone(), caller.clone());
                Passthrough::all(session)
            }
            View::Server(name) => {
                let name: Arc<str> = name.as_str().into();
                let session = Session::on_server(gateway.clone(), caller.clone(), name.clone());
                Passthrough::server(session, name)
            }
        }
    }
}
