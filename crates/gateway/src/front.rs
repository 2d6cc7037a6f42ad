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
use text::percent;

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

    /// Returns the view behind the path of an MCP endpoint.
    fn at(path: &str) -> Option<View> {
        let name = |encoded: &str| match encoded {
            "" => None,
            _ if encoded.contains('/') => None,
            _ if encoded.contains('%') => percent::decode(encoded),
            _ => Some(encoded.to_owned()),
        };
        match path.strip_prefix("/mcp")? {
            "" => Some(View::Discovery),
            "/all" => Some(View::All),
            rest => match rest.strip_prefix("/s/") {
                Some(server) => name(server).map(View::Server),
                None => rest.strip_prefix("/p/").and_then(name).map(View::Profile),
            },
        }
    }

    /// Builds a text unique to each view: no name has a space.
    fn key(&self) -> String {
        match self {
            View::Discovery => "discovery".to_owned(),
            View::All => "all".to_owned(),
            View::Server(name) => ["server ", name].concat(),
            View::Profile(name) => ["profile ", name].concat(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_at_most_one_view() {
        let server = |name: &str| Some(View::Server(name.to_owned()));
        for (path, view) in [
            ("/mcp", Some(View::Discovery)),
            ("/mcp/all", Some(View::All)),
            ("/mcp/s/files", server("files")),
            ("/mcp/s/my%20files", server("my files")),
            ("/mcp/s/a%2Fb", server("a/b")),
            ("/mcp/p/reader", Some(View::Profile("reader".to_owned()))),
            ("/mcp/", None),
            ("/mcp/s/", None),
            ("/mcp/p/", None),
            ("/mcp/s/a/b", None),
            ("/mcp/s/%", None),
            ("/mcp/s/%ff", None),
            ("/mcpx", None),
            ("/mcp/x", None),
            ("/api/v1/status", None),
        ] {
            assert_eq!(View::at(path), view, "{path}");
        }
    }
}
