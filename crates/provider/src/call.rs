//! A call on its way through the gate.

use std::sync::Arc;

use domain::caller::{self, Caller};
use domain::intent::Declaration;
use domain::json::Object;
use domain::tool::{Class, ToolName};
use mcp::message::Raw;

#[derive(Clone, Debug)]
pub struct Call {
    /// Unique over all time and processes (UUIDv7).
    pub id: String,
    pub caller: Arc<Caller>,
    /// The client program, as it named itself.
    pub client: Option<Arc<str>>,
    pub session: Option<Arc<str>>,
    /// The id of the request that asked for it: JSON-RPC or HTTP.
    pub request_id: Option<String>,
    pub surface: Surface,
    pub tool: ToolName,
    /// Read once; the text is what is forwarded.
    pub arguments: Object,
    pub declared: Declared,
    /// Members of the request's params beside `name` and `arguments`, passed on as they are.
    pub other: Vec<(String, Raw)>,
}

/// What the caller declared.
#[derive(Clone, Debug)]
pub enum Declared {
    Nothing,
    Variant(Class, Box<Declaration>),
}

/// Through which door a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// `/mcp` and `countersign mcp`: the two-key tools.
    Discovery,
    /// `/mcp/all` and `/mcp/s/<server>`: the servers' own tools, without a declared intent.
    Passthrough,
    /// `countersign wrap`: one server, whose messages are passed on as they are.
    Wrap,
    Rest,
    Cli,
    /// A step of a workflow: the agent in it, or a command.
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

    /// What a token must be good for to come through here; the other doors are not for tokens.
    pub fn granted(self) -> Option<caller::TokenSurface> {
        match self {
            Surface::Discovery => Some(caller::TokenSurface::Discovery),
            Surface::Passthrough => Some(caller::TokenSurface::Passthrough),
            Surface::Wrap | Surface::Rest | Surface::Cli | Surface::Run => None,
        }
    }

    /// The record's `source`.
    pub fn source(self) -> &'static str {
        match self {
            Surface::Discovery | Surface::Passthrough | Surface::Wrap => "mcp",
            Surface::Rest => "api",
            Surface::Cli => "cli",
            Surface::Run => "run",
        }
    }
}
