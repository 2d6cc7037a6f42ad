//! One upstream server: an entry of `mcpServers`.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::declare::{Section, keys, section};
use super::keys::{ForeignKey, Key, KeyTreatment};
use super::kind::{Choice, Count, Described, FLAG, Nested, Optional};
use super::members::Members;
use super::oauth::OAuth;
use super::render::arranged;
use super::report::Report;
use super::targets::Targets;
use super::template::ConfigTemplate;
use super::tool_rules::ToolRules;
use super::top::TIMEOUT;
use super::transport::{self, REMOTE_KEYS, StdioTransport, Transport};
use crate::choice;
use text::document::{Node, shown};
use touch::targets::TargetMapping;

mod entries;

pub(super) use entries::{SERVERS_MAX, all, each, laid_over, narrowing, server};

/// Concurrent calls to one server; beyond this the calls queue in the server, not in the gate.
const CONCURRENT: Count = Count(1..=10_000);

const NAME: &[Key] = keys! {
    Reconnect (Narrows) name, "string",
        "The server's name; only in a list of servers, which has no keys.";
};

section! {
    /// One entry of `mcpServers`. Its `Debug` hides likely secrets.
    #[derive(Clone, PartialEq)]
    pub struct ServerConfig at "mcpServers.<name>",
        after(NAME, StdioTransport::KEYS, REMOTE_KEYS),
        foreign(transport::FOREIGN, FOREIGN),
        then(set_others)
    {
        Reconnect enabled: bool = true, FLAG,
            "If false, the server is not started and its tools are hidden.";
        Hot quarantined: bool = false, FLAG,
            "If true, its tools are listed as locked until a person approves the server.";
        Reconnect untrusted, "true or false",
            "If true, the server is not started before a person approves it, nor after a change until it \
             is approved again. `connect --import` sets it for servers that somebody else may have \
             defined.";
        Hot (Narrows) enabled_tools, Described::optional("list of strings"),
            "The only tools allowed; cannot be combined with `disabled_tools`.";
        Hot (Narrows) disabled_tools, Described::optional("list of strings"),
            "Tools to lock; all others are allowed.";
        Hot (Trusted) auto_approve: AutoApprove = AutoApprove::None, Choice,
            "Which tools need no approval: none, new ones, or new and changed ones.";
        Reconnect sharing: Sharing = Sharing::Auto, Choice,
            "Whether callers share one connection.";
        Reconnect start: Start = Start::Eager, Choice,
            "Connect at start, or when a search, a list or a call first needs the server.";
        Hot arguments: ArgumentCheck = ArgumentCheck::Strict, Choice,
            "Whether arguments that do not match a tool's input schema are refused, or only warned of: for \
             servers that accept more than they declare.";
        Hot call_timeout: Option<Duration> = None, Optional(TIMEOUT),
            "Replaces the top-level `call_timeout` for this server.";
        Reconnect max_concurrent: Option<NonZeroU32> = None, Optional(CONCURRENT),
            "The most concurrent calls.";
        Reconnect login: LoginScope = LoginScope::Shared, Choice,
            "Whether all callers share one sign-in, or each agent token has its own; see \
             [sign-in](sign-in.md).";
        Reconnect oauth: Option<OAuth> = None, Optional(Nested),
            "How to sign in to the server, where the gate cannot find out; see [sign-in](sign-in.md).";
        Reconnect pin: bool = false, FLAG,
            "Quarantines the server if the file that `command` starts changes.";
        Hot (Trusted) targets: Option<Arc<TargetMapping>> = None, Optional(Targets),
            "Which resources its calls touch; see [targets](targets.md).";
    }
    and {
        name: String = String::new();
        origin: ServerOrigin = ServerOrigin::Own;
        transport: Transport = Transport::stdio("");
        /// `enabled_tools` and `disabled_tools`, from one file or several combined.
        tools: ToolRules = ToolRules::All;
    }
}

const APPROVED_HERE: KeyTreatment =
    KeyTreatment::Ignored("tools are approved in Countersign (see 'auto_approve')");
const DISPLAY_ONLY: KeyTreatment = KeyTreatment::Ignored("display only");
const GALLERY: KeyTreatment = KeyTreatment::Ignored("metadata of a client's gallery");

const FOREIGN: &[ForeignKey] = &[
    ("disabled", KeyTreatment::ReadAs("the opposite of 'enabled'")),
    ("autoApprove", APPROVED_HERE),
    ("alwaysAllow", APPROVED_HERE),
    ("trust", APPROVED_HERE),
    ("timeout", KeyTreatment::Ignored("clients differ on its unit; use 'call_timeout'")),
    ("envFile", KeyTreatment::Ignored("Countersign reads no env file; put the variables in 'env'")),
    ("description", DISPLAY_ONLY),
    ("title", DISPLAY_ONLY),
    ("icon", DISPLAY_ONLY),
    ("tags", DISPLAY_ONLY),
    ("version", GALLERY),
    ("gallery", GALLERY),
    ("dev", KeyTreatment::Ignored("setting of a client's development mode")),
];

/// The origin of a server or profile. Only the user's own are trusted from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
    /// The user's own configuration.
    Own,
    /// A file in the folder, or an entry of the user's own file that is `untrusted`.
    Found,
    /// Added at run time.
    Added,
}

impl ServerConfig {
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self { name: name.into(), transport, ..Self::default() }
    }

    /// Returns every text that may have placeholders.
    pub fn templates(&self) -> impl Iterator<Item = &ConfigTemplate> {
        let oauth = self.oauth.iter().flat_map(OAuth::templates);
        self.transport.templates().into_iter().chain(oauth)
    }

    /// Makes text of all placeholders. Reports if there were any.
    pub(super) fn take_literally(&mut self) -> bool {
        let in_transport = self.transport.take_literally();
        self.oauth.as_mut().is_some_and(OAuth::take_literally) | in_transport
    }

    /// Returns the entry as in a file.
    pub(super) fn shown(&self) -> Map<String, Value> {
        // Only one of them: both together would be a fault in a file.
        let (key, tools) = match &self.tools {
            ToolRules::Only(tools) => ("enabled_tools", json!(tools)),
            ToolRules::Except(tools) => ("disabled_tools", json!(tools)),
            ToolRules::All => ("disabled_tools", json!([])),
        };
        let untrusted = json!(self.origin == ServerOrigin::Found);
        let mut settings = Map::from_iter([(key.into(), tools), ("untrusted".into(), untrusted)]);
        settings.extend(self.show());
        let mut shown = self.transport.show();
        let first = ["enabled", "quarantined", "untrusted"];
        shown.extend(arranged(settings, &first, Self::TABLE));
        shown
    }
}

choice! {
    /// The tools of a server that need no manual approval.
    AutoApprove {
        None = "none",
        /// New tools; a changed one still requires review.
        New = "new",
        All = "all",
    }
}

choice! {
    /// The sharing of one connection between callers.
    Sharing { Auto = "auto", Shared = "shared", PerClient = "per_client" }
}

choice! {
    /// The reaction to arguments that do not match the tool's input schema.
    ArgumentCheck { Strict = "strict", Warn = "warn" }
}

choice! {
    /// The callers that one sign-in to a server is for.
    LoginScope { Shared = "shared", PerToken = "per_token" }
}

choice! {
    /// The time at which a server is connected.
    Start {
        Eager = "eager",
        /// At its first call.
        Lazy = "lazy",
    }
}

/// Sets the fields whose keys do not have the same name.
fn set_others(server: &mut ServerConfig, members: &Members<'_>, report: &mut Report) {
    set_disabled(server, members, report);
    if let Some(is_untrusted) = members.flag("untrusted", report) {
        server.origin = if is_untrusted { ServerOrigin::Found } else { ServerOrigin::Own };
    }
    if let Some(tools) = tools(members, report) {
        server.tools = tools;
    }
}

/// Reads `disabled`, which other clients write.
fn set_disabled(server: &mut ServerConfig, members: &Members<'_>, report: &mut Report) {
    let Some(disabled) = members.flag("disabled", report) else { return };
    let enabled = members.get("enabled").map(|entry| entry.node.flag());
    match (enabled, members.get("disabled")) {
        (Some(Ok(enabled)), Some(entry)) if enabled == disabled => {
            report.fault(&entry.key, format!("contradicts 'enabled': {enabled}; keep one of them"));
        }
        (Some(_), _) => {}
        (None, _) => server.enabled = !disabled,
    }
}

fn tools(members: &Members<'_>, report: &mut Report) -> Option<ToolRules> {
    let enabled = members.read("enabled_tools", report, tool_names);
    let disabled = members.read("disabled_tools", report, tool_names);
    if let (Some(_), Some(entry)) = (members.get("enabled_tools"), members.get("disabled_tools")) {
        report.fault(&entry.key, "cannot be combined with 'enabled_tools'; keep one of them");
    }
    let disabled = disabled.filter(|names| !names.is_empty());
    let set = |names: Vec<String>| names.into_iter().collect();
    let enabled = enabled.map(|names| ToolRules::Only(set(names)));
    enabled.or_else(|| disabled.map(|names| ToolRules::Except(set(names))))
}

/// Reads tool names and reports slips that are easy to make and hard to see.
fn tool_names(node: &Node<'_>, report: &mut Report) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    for item in report.take(node.items("a list of strings"))? {
        let Some(name) = report.take(item.text()) else { continue };
        if name.trim().is_empty() {
            report.note(&item.location, "ignored: a tool name cannot be empty");
        } else if !seen.insert(name) {
            report.note(&item.location, format!("{} is listed twice", shown(name)));
        } else {
            names.push(name.to_owned());
        }
    }
    Some(names)
}
