//! A call on its way through the gate.

use std::sync::Arc;

use domain::caller::{self, Caller};
use domain::intent::Declaration;
use domain::method::Method;
use domain::policy::Addressee;
use domain::tool::{Class, ToolName};
use mcp::message::Raw;
use text::json::Object;

#[derive(Clone, Debug)]
pub struct Call {
    /// Unique across processes and time (UUIDv7).
    pub id: String,
    pub caller: Arc<Caller>,
    /// The client program's name, as it reported it.
    pub client: Option<Arc<str>>,
    pub session: Option<Arc<str>>,
    /// The id of the JSON-RPC or HTTP request that made the call.
    pub request_id: Option<String>,
    pub surface: Surface,
    pub method: Method,
    /// The tool, or for another method than `tools/call` the method itself.
    pub tool: ToolName,
    /// The arguments of a tool, or the params of another method without `_meta`. Parsed once; the
    /// original text is forwarded.
    pub arguments: Object,
    pub declared: Declared,
    /// The other members of the request's params, forwarded unchanged.
    pub other: Vec<(String, Raw)>,
}

/// The intent that the caller declared.
#[derive(Clone, Debug)]
pub enum Declared {
    Nothing,
    Variant(Class, Box<Declaration>),
}

/// The entry point through which a call arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// `/mcp` and `countersign mcp`: the two-key tools.
    Discovery,
    /// `/mcp/all` and `/mcp/s/<server>`: the servers' own tools, without a declared intent.
    Passthrough,
    /// `countersign wrap`: one server, whose messages are forwarded unchanged.
    Wrap,
    Rest,
    Cli,
    /// A workflow step: its agent or a command.
    Run,
}

impl Surface {
    pub fn as_str(self) -> &'static str {
        match self {
            Surface::Discovery => "discovery",
            Surface::Passthrough => "passthrough",
            Surface::Wrap => "wrap",
            Surface::Rest => "rest",
            Surface::Cli => "cli",
            Surface::Run => "run",
        }
    }

    /// Returns the surface that a token must grant for calls through this entry point, or `None`
    /// where tokens are not accepted.
    pub fn granted(self) -> Option<caller::TokenSurface> {
        match self {
            Surface::Discovery => Some(caller::TokenSurface::Discovery),
            Surface::Passthrough => Some(caller::TokenSurface::Passthrough),
            Surface::Wrap | Surface::Rest | Surface::Cli | Surface::Run => None,
        }
    }

    /// Returns who reads a refusal.
    pub fn addressee(self) -> Addressee {
        match self {
            Surface::Discovery => Addressee::Discovery,
            Surface::Passthrough | Surface::Wrap | Surface::Run => Addressee::Passthrough,
            Surface::Rest | Surface::Cli => Addressee::Person,
        }
    }

    /// Returns the record's `source`.
    pub fn source(self) -> &'static str {
        match self {
            Surface::Discovery | Surface::Passthrough | Surface::Wrap => "mcp",
            Surface::Rest => "api",
            Surface::Cli => "cli",
            Surface::Run => "run",
        }
    }
}
