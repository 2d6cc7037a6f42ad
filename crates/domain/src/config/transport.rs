//! The connection to a server. Everything that differs between transports is here: their keys, words
//! and parts. Other modules treat a transport by its parts.

use serde_json::{Map, Value, json};

use super::declare::{Section, keys, section};
use super::keys::{ForeignKey, Key, KeyTreatment};
use super::kind::{Described, FLAG, Kind, Optional, Shape, TEXT, as_json};
use super::secret;
use super::template::ConfigTemplate;
use super::values::{ARGUMENTS, HEADERS, VARIABLES};
use crate::choice;

mod read;

pub(super) use read::{is_http_url, read};

/// The word for a transport over stdin and stdout.
const STDIO: &str = "stdio";

/// The name that Gemini CLI gives to an address whose transport is not HTTP+SSE.
const HTTP_ADDRESS: &str = "httpUrl";

/// The members of a server that hold an address.
pub(super) const ADDRESSES: [&str; 3] = ["url", HTTP_ADDRESS, "serverUrl"];

/// The keys of other clients that describe a connection.
pub(super) const FOREIGN: &[ForeignKey] = &[
    ("type", KeyTreatment::ReadAs("'transport'")),
    (HTTP_ADDRESS, KeyTreatment::ReadAs("'url' with transport \"http\"")),
    ("serverUrl", KeyTreatment::ReadAs("'url'")),
];

/// The connection to a server.
#[derive(Clone, PartialEq)]
pub enum Transport {
    Stdio(StdioTransport),
    Remote(RemoteTransport),
}

section! {
    /// A program, which is not run through a shell.
    #[derive(Clone, PartialEq)]
    pub struct StdioTransport at "mcpServers.<name>" {
        // Found on `PATH` or by its path.
        Reconnect command: String = String::new(), TEXT,
            "The program to start: a single program, not a command line.";
        Reconnect args: Vec<ConfigTemplate> = Vec::new(), ARGUMENTS, "Arguments of the program.";
        Reconnect env: Vec<(String, ConfigTemplate)> = Vec::new(), VARIABLES,
            "Environment variables of the program.";
        // Except the gate's own variables.
        Reconnect (Trusted) inherit_env: bool = false, FLAG,
            "Inherits the gate's whole environment, not only the usual variables.";
        Reconnect cwd: Option<String> = None, Optional(FOLDER),
            "The working directory of the program.";
    }
}

/// A server at a URL.
#[derive(Clone, PartialEq)]
pub struct RemoteTransport {
    pub protocol: RemoteProtocol,
    /// `http` or `https`, unless the URL starts with a variable: then the code that expands it must
    /// check.
    pub url: ConfigTemplate,
    pub headers: Vec<(String, ConfigTemplate)>,
}

/// The keys of a [`RemoteTransport`], and the one that selects a transport.
pub(super) const REMOTE_KEYS: &[Key] = keys! {
    Reconnect url, "`http` or `https` url, `${env:NAME}` and `${secret:NAME}` allowed",
        "The server's URL; replaces `command`.";
    Reconnect headers: Vec<(String, ConfigTemplate)>, HEADERS,
        "HTTP headers sent with every request to `url`.";
    Reconnect transport, Described::from("`\"stdio\"`, `\"http\"` or `\"sse\"`"),
        "If absent: stdio with `command`; sse for a `url` that ends in `/sse`, otherwise http.";
};

choice! {
    /// The protocol of a server at a URL.
    RemoteProtocol {
        /// Streamable HTTP.
        Http = "http",
        /// The HTTP+SSE transport of protocol version 2024-11-05.
        Sse = "sse",
    }
}

/// A part of a transport, by the treatment that it needs.
pub enum TransportPart<'a> {
    Text(&'a str),
    OptionalText(Option<&'a str>),
    Flag(bool),
    Url(&'a ConfigTemplate),
    Arguments(&'a [ConfigTemplate]),
    Variables(&'a [(String, ConfigTemplate)]),
    Headers(&'a [(String, ConfigTemplate)]),
}

impl Transport {
    /// Returns a program without arguments, variables or its own folder.
    pub fn stdio(command: impl Into<String>) -> Self {
        Self::Stdio(StdioTransport { command: command.into(), ..StdioTransport::default() })
    }

    /// Returns its word.
    pub fn name(&self) -> &'static str {
        match self {
            Transport::Stdio(_) => STDIO,
            Transport::Remote(remote) => remote.protocol.name(),
        }
    }

    /// Returns all that decides what is started or reached, by key.
    pub fn parts(&self) -> Vec<(&'static str, TransportPart<'_>)> {
        let mut parts = vec![("transport", TransportPart::Text(self.name()))];
        match self {
            Transport::Stdio(StdioTransport { command, args, env, inherit_env, cwd }) => {
                parts.extend([
                    ("command", TransportPart::Text(command)),
                    ("args", TransportPart::Arguments(args)),
                    ("cwd", TransportPart::OptionalText(cwd.as_deref())),
                    ("env", TransportPart::Variables(env)),
                    ("inherit_env", TransportPart::Flag(*inherit_env)),
                ]);
            }
            Transport::Remote(RemoteTransport { protocol: _, url, headers }) => parts.extend([
                ("url", TransportPart::Url(url)),
                ("headers", TransportPart::Headers(headers)),
            ]),
        }
        parts
    }

    /// Returns every text of it that may have placeholders.
    pub fn templates(&self) -> Vec<&ConfigTemplate> {
        match self {
            Transport::Stdio(stdio) => stdio.templates(),
            Transport::Remote(remote) => remote.templates(),
        }
    }

    /// Makes text of all placeholders. Reports if there were any.
    pub(super) fn take_literally(&mut self) -> bool {
        match self {
            Transport::Stdio(StdioTransport { args, env, .. }) => {
                literal_values(env) | literal(args)
            }
            Transport::Remote(RemoteTransport { url, headers, .. }) => {
                url.take_literally() | literal_values(headers)
            }
        }
    }

    /// Resets each key that only a trusted file may set. Returns the names of those that were set.
    pub(super) fn restrict(&mut self) -> Vec<&'static str> {
        match self {
            Transport::Stdio(stdio) => stdio.restrict(),
            Transport::Remote(_) => Vec::new(),
        }
    }

    /// Returns the members of a server's entry that describe it.
    pub(super) fn show(&self) -> Map<String, Value> {
        let mut shown = Map::from_iter([("transport".to_owned(), json!(self.name()))]);
        match self {
            Transport::Stdio(stdio) => shown.extend(stdio.show()),
            Transport::Remote(RemoteTransport { protocol: _, url, headers }) => {
                shown.insert("url".to_owned(), json!(secret::url(url.text())));
                shown.extend(HEADERS.show(headers).map(|headers| ("headers".to_owned(), headers)));
            }
        }
        shown
    }
}

impl StdioTransport {
    /// Returns every text of it that may have placeholders.
    pub fn templates(&self) -> Vec<&ConfigTemplate> {
        self.args.iter().chain(self.env.iter().map(|(_, value)| value)).collect()
    }
}

impl RemoteTransport {
    /// Returns every text of it that may have placeholders.
    pub fn templates(&self) -> Vec<&ConfigTemplate> {
        self.headers.iter().map(|(_, value)| value).chain([&self.url]).collect()
    }
}

impl RemoteProtocol {
    /// Returns the protocol that a URL implies.
    fn implied(url: &ConfigTemplate) -> RemoteProtocol {
        let path = url.text().split(['?', '#']).next().unwrap_or_default();
        if path.trim_end_matches('/').ends_with("/sse") {
            RemoteProtocol::Sse
        } else {
            RemoteProtocol::Http
        }
    }
}

fn literal<'a>(templates: impl IntoIterator<Item = &'a mut ConfigTemplate>) -> bool {
    templates.into_iter().fold(false, |any, template| template.take_literally() | any)
}

fn literal_values(values: &mut [(String, ConfigTemplate)]) -> bool {
    literal(values.iter_mut().map(|(_, value)| value))
}

/// Reports whether a key of a server's entry describes its connection; an entry with one must be
/// complete.
pub(super) fn is_part(key: &str) -> bool {
    let ours = StdioTransport::KEYS.iter().chain(REMOTE_KEYS).any(|ours| ours.name == key);
    ours || FOREIGN.iter().any(|(foreign, _)| *foreign == key)
}

/// A path that can be passed to the system.
const FOLDER: Shape<String> = Shape {
    words: TEXT.words,
    read: |node, report| {
        let text = report.take(node.text())?;
        if text.is_empty() || text.contains('\0') {
            report.fault(&node.location, "expected a path");
        }
        Some(text.to_owned())
    },
    show: as_json,
};
