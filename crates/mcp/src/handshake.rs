//! `initialize`, from both ends: the client's request and the server's response.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::error::ErrorObject;
use crate::fault::explain;
use crate::limits::{CLIENT_CAPABILITIES_BYTES_MAX, CLIENT_NAME_BYTES_MAX, WELCOME_BYTES_MAX};
use crate::message::{Raw, Request, raw, to_raw};
use crate::object::{ObjectMembers, quote};
use crate::peer::{Ask, Peer, RequestError};
use crate::version::Version;

/// A client's `initialize` parameters.
#[derive(Clone, Debug)]
pub struct ClientHello {
    pub version: Version,
    pub client_name: String,
    pub client_version: String,
    /// The capabilities as sent.
    pub capabilities: Raw,
    /// Each of them, with what the client declares about it.
    by_name: Vec<(String, String)>,
}

impl ClientHello {
    /// Returns the client's declaration of a capability, such as `sampling`, as JSON.
    pub fn capability(&self, name: &str) -> Option<&str> {
        let declared = self.by_name.iter().find(|(known, _)| known == name);
        declared.map(|(_, json)| json.as_str())
    }
}

/// A server's description of itself.
#[derive(Clone, Debug)]
pub struct ServerHello {
    /// `serverInfo`: name, version and any other members a server sends.
    pub info: Raw,
    pub capabilities: Raw,
    pub instructions: Option<String>,
}

impl ServerHello {
    pub fn new(name: &str, version: &str, capabilities: Raw) -> ServerHello {
        let info = to_raw(&json!({"name": name, "version": version}));
        ServerHello { info, capabilities, instructions: None }
    }
}

/// The server's end: parses the request, agrees on a revision, and writes the response.
pub fn accept(
    request: &Request,
    peer: &Peer,
    server: &ServerHello,
) -> Result<(ClientHello, Raw), ErrorObject> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        protocol_version: String,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(default)]
        client_info: ClientInfo,
    }
    #[derive(Default, Deserialize)]
    struct ClientInfo {
        #[serde(default)]
        name: String,
        #[serde(default)]
        version: String,
    }
    let params: Params<'_> = request.params()?;
    if params.capabilities.is_some_and(|json| json.get().len() > CLIENT_CAPABILITIES_BYTES_MAX) {
        let message =
            format!("initialize: capabilities over {CLIENT_CAPABILITIES_BYTES_MAX} bytes");
        return Err(ErrorObject::invalid_params(message));
    }
    let version = Version::negotiate(&params.protocol_version);
    peer.agree_on(version);
    let capabilities = params.capabilities.map_or_else(|| raw("{}".to_owned()), ToOwned::to_owned);
    let members = ObjectMembers::parse(&capabilities).unwrap_or_default();
    let by_name = members.iter().map(|(name, json)| (name.to_owned(), json.to_owned())).collect();
    let hello = ClientHello {
        version: peer.version().unwrap_or(version),
        client_name: short(params.client_info.name),
        client_version: short(params.client_info.version),
        capabilities,
        by_name,
    };
    let answer = answer(hello.version, server);
    Ok((hello, answer))
}

/// Cuts a name or version that is too long, and frees the rest.
fn short(text: String) -> String {
    text[..text.floor_char_boundary(CLIENT_NAME_BYTES_MAX)].to_owned()
}

fn answer(version: Version, server: &ServerHello) -> Raw {
    let mut members = ObjectMembers::default();
    members.set("protocolVersion", quote(version.as_str()));
    members.set("capabilities", server.capabilities.get());
    members.set("serverInfo", server.info.get());
    if let Some(instructions) = &server.instructions {
        members.set("instructions", quote(instructions));
    }
    members.write()
}

/// A server's response to our `initialize`.
#[derive(Clone, Debug)]
pub struct Welcome {
    pub version: Version,
    /// The whole result, unchanged.
    pub result: Raw,
    pub instructions: Option<String>,
}

impl Welcome {
    /// `serverInfo`, unchanged.
    pub fn info(&self) -> Option<Raw> {
        let members = ObjectMembers::parse(&self.result).ok()?;
        members.get("serverInfo").map(|info| raw(info.to_owned()))
    }

    /// Returns the capabilities that the server declares, as JSON.
    pub fn capabilities(&self) -> Option<String> {
        let members = ObjectMembers::parse(&self.result).ok()?;
        members.get("capabilities").map(str::to_owned)
    }

    /// Returns the server's declaration of a capability, such as `prompts`, as JSON.
    pub fn capability(&self, name: &str) -> Option<String> {
        let capabilities = self.capabilities()?;
        let members: ObjectMembers<'_> = serde_json::from_str(&capabilities).ok()?;
        members.get(name).map(str::to_owned)
    }

    /// The name that the server gives itself.
    pub fn server_name(&self) -> Option<String> {
        server_name(&self.result)
    }
}

/// Returns the name that a server gives itself in its response to `initialize`, cut if it is too
/// long.
pub fn server_name(result: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        server_info: ServerInfo,
    }
    #[derive(Deserialize)]
    struct ServerInfo {
        name: String,
    }
    let answer: Answer = serde_json::from_str(result.get()).ok()?;
    Some(short(answer.server_info.name)).filter(|name| !name.is_empty())
}

#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("initialize: {0}")]
    Request(#[from] RequestError),
    #[error("initialize: invalid response: {}", explain(.0))]
    Answer(#[from] serde_json::Error),
    #[error("initialize: the answer has {0} bytes, more than {WELCOME_BYTES_MAX}")]
    TooLarge(usize),
    #[error("initialize: the server uses protocol {0}, which is not supported")]
    Version(String),
}

/// The client's end: sends the request, checks the revision, and confirms with `initialized`.
pub async fn initialize(
    peer: &Peer,
    client_info: &serde_json::Value,
    capabilities: &RawValue,
    timeout: Duration,
) -> Result<Welcome, HandshakeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        protocol_version: String,
        #[serde(default)]
        instructions: Option<String>,
    }
    let mut params = ObjectMembers::default();
    params.set("protocolVersion", quote(Version::LATEST.as_str()));
    params.set("capabilities", capabilities.get());
    params.set("clientInfo", client_info.to_string());
    let result = peer.request(Ask::new("initialize", Some(params.write()), timeout)).await?;
    if result.get().len() > WELCOME_BYTES_MAX {
        return Err(HandshakeError::TooLarge(result.get().len()));
    }
    let answer: Answer = serde_json::from_str(result.get())?;
    let version = Version::parse(&answer.protocol_version)
        .ok_or(HandshakeError::Version(answer.protocol_version))?;
    peer.agree_on(version);
    peer.notify("notifications/initialized", None).await.map_err(RequestError::from)?;
    Ok(Welcome { version, result, instructions: answer.instructions })
}
