//! The built-in table of well-known servers, read once from its data file. A server is known by the
//! name that it gives itself; that name decides what its arguments mean and nothing else.

use std::sync::LazyLock;

use serde::Deserialize;

use super::Target;
use super::mapping::{RuleResource, TargetRule, ToolPattern};
use super::template::TargetTemplate;
use address::KnownAddress;

mod address;
#[cfg(test)]
mod tests;

static DATA: &str = include_str!("table/servers.json");

static TABLE: LazyLock<Vec<KnownServer>> = LazyLock::new(|| {
    let servers: Vec<RawServer> = serde_json::from_str(DATA).expect("the tests read the data");
    servers.into_iter().map(KnownServer::from).collect()
});

/// A server of the table.
#[derive(Debug)]
pub struct KnownServer {
    /// The word in the origin of a plan: `github` in `builtin:github`.
    pub key: String,
    pub title: String,
    /// The public repository that the facts are from.
    pub source: String,
    /// The names that it gives itself, in lower case.
    pub info: Vec<String>,
    /// The system of its resources, for a service that exists only once.
    pub system: Option<String>,
    pub(super) rules: Vec<KnownRule>,
    addresses: Vec<KnownAddress>,
}

/// A rule of the table.
#[derive(Debug)]
pub(super) struct KnownRule {
    /// The system of what it names, if it is not that of the server.
    pub(super) system: Option<String>,
    pub(super) rule: TargetRule,
    /// Arguments that look like names, and that the tools of a rule without a resource have.
    pub(super) with: Vec<String>,
}

/// Returns every server of the table, in the order of the file.
pub fn known_servers() -> &'static [KnownServer] {
    &TABLE
}

/// Returns the server that gives itself this name.
pub(super) fn find(info: &str) -> Option<&'static KnownServer> {
    let info = info.trim().to_ascii_lowercase();
    TABLE.iter().find(|server| server.info.contains(&info))
}

/// Returns the resource of a service that a page shows, from the page's address: an issue read on
/// the web is the issue that another call changes.
pub(super) fn shown_at(address: &Target) -> Option<Target> {
    TABLE.iter().find_map(|server| {
        let system = server.system.as_deref()?;
        server.addresses.iter().find_map(|known| known.resource(system, address.resource()))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    key: String,
    title: String,
    source: String,
    info: Vec<String>,
    #[serde(default)]
    system: Option<String>,
    rules: Vec<RawRule>,
    /// Addresses of pages, and the resources that they show.
    #[serde(default)]
    addresses: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    tools: String,
    #[serde(default)]
    system: Option<String>,
    resource: Option<Texts>,
    #[serde(default)]
    reads: Option<Texts>,
    #[serde(default)]
    with: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn templates(self) -> Vec<TargetTemplate> {
        let texts = match self {
            Texts::One(text) => vec![text],
            Texts::Several(texts) => texts,
        };
        let parse = |text: &String| TargetTemplate::parse(text).expect("the tests read the data");
        texts.iter().map(parse).collect()
    }
}

impl From<RawServer> for KnownServer {
    fn from(raw: RawServer) -> KnownServer {
        let RawServer { key, title, source, info, system, rules, addresses } = raw;
        let info = info.iter().map(|name| name.to_ascii_lowercase()).collect();
        let rules = rules.into_iter().map(KnownRule::from).collect();
        let addresses = addresses.iter().map(|(address, resource)| {
            KnownAddress::parse(address, resource).expect("the tests read the data")
        });
        KnownServer { key, title, source, info, system, rules, addresses: addresses.collect() }
    }
}

impl From<RawRule> for KnownRule {
    fn from(raw: RawRule) -> KnownRule {
        let rule = TargetRule {
            tools: ToolPattern::parse(&raw.tools).expect("the tests read the data"),
            resource: match raw.resource {
                Some(texts) => RuleResource::Named(texts.templates()),
                None => RuleResource::Nothing,
            },
            reads: raw.reads.map(Texts::templates).unwrap_or_default(),
        };
        KnownRule { system: raw.system, rule, with: raw.with }
    }
}
