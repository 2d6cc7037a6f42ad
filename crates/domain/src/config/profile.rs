//! `profiles`: subsets of servers and tools, checked against the configured servers.

use std::collections::BTreeSet;

use serde_json::json;

use super::declare::{Section, section};
use super::kind::{Optional, Shape, TEXTS};
use super::members::{Members, entries};
use super::name::{check_name, did_you_mean};
use super::report::Report;
use super::server::ServerOrigin;
use super::top::Config;
use crate::tool::{ToolName, WORKSPACE};
use text::document::{Member, shown};

section! {
    /// A subset of the servers and tools, served at `/mcp/p/<name>`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProfileConfig at "profiles.<name>" {
        Hot servers: Vec<String> = Vec::new(), TEXTS, "Servers of the profile. Required.";
        // `None` allows all tools of the servers.
        Hot tools: Option<Vec<ToolName>> = None, Optional(TOOL_NAMES),
            "The only tools included, as `server:tool`.";
        Hot exclude: Vec<ToolName> = Vec::new(), TOOL_NAMES, "Tools to exclude, as `server:tool`.";
    }
    and {
        name: String = String::new();
        origin: ServerOrigin = ServerOrigin::Own;
    }
}

const TOOL_NAMES: Shape<Vec<ToolName>> = Shape {
    words: "list of strings",
    read: |node, report| {
        let mut tools = Vec::new();
        for item in report.take(node.items("a list of strings"))? {
            let Some(text) = report.take(item.text()) else { continue };
            match ToolName::parse(text) {
                Ok(tool) => tools.push(tool),
                Err(_) => {
                    let fault = format!("expected 'server:tool', found {}", shown(text));
                    report.fault(&item.location, fault);
                }
            }
        }
        Some(tools)
    },
    show: |value| Some(json!(value.iter().map(ToolName::to_string).collect::<Vec<_>>())),
};

/// Returns the names that a profile can refer to: servers, plugins and the built-in tools.
pub(super) fn known(config: &Config) -> BTreeSet<&str> {
    let servers = config.servers.iter().map(|server| server.name.as_str());
    let plugins = config.plugins.iter().map(|plugin| plugin.name.as_str());
    servers.chain(plugins).chain([WORKSPACE]).collect()
}

pub(super) fn all(
    top: &Members<'_>,
    known: &BTreeSet<&str>,
    report: &mut Report,
) -> Vec<ProfileConfig> {
    let entries = top.read("profiles", report, entries).unwrap_or_default();
    entries.iter().filter_map(|entry| profile(entry, known, report)).collect()
}

fn profile(
    entry: &Member<'_>,
    known: &BTreeSet<&str>,
    report: &mut Report,
) -> Option<ProfileConfig> {
    check_name(entry, report);
    let members = Members::open(&entry.node, ProfileConfig::TABLE, report)?;
    if members.get("servers").is_none() {
        report.fault(&entry.key, "a profile needs 'servers'");
    }
    let mut profile = ProfileConfig { name: entry.name.to_owned(), ..ProfileConfig::default() };
    profile.set(&members, report);
    note_unknown(&members, known, report);
    note_unlisted(&profile, &members, report);
    Some(profile)
}

/// Adds notes on unknown servers. They are not faults, because a server may be added at run time.
fn note_unknown(members: &Members<'_>, known: &BTreeSet<&str>, report: &mut Report) {
    let Some(entry) = members.get("servers") else { return };
    // A value that is not a list of strings has already been reported.
    for item in entry.node.items("a list of strings").into_iter().flatten() {
        let Ok(name) = item.text() else { continue };
        // Searching for near names is expensive, and a dropped note does not show them.
        if !known.contains(&name) && report.keeps_note(&item.location) {
            let near = did_you_mean(name, known.iter().copied());
            report.note(&item.location, format!("no server is named {}{near}", shown(name)));
        }
    }
}

/// Adds notes on tools of servers that the profile does not have.
fn note_unlisted(profile: &ProfileConfig, members: &Members<'_>, report: &mut Report) {
    let servers: BTreeSet<&str> = profile.servers.iter().map(String::as_str).collect();
    for entry in ["tools", "exclude"].iter().filter_map(|name| members.get(name)) {
        for item in entry.node.items("a list of strings").into_iter().flatten() {
            let Some(Ok(tool)) = item.text().ok().map(ToolName::parse) else { continue };
            if !servers.contains(tool.server.as_str()) {
                let server = shown(&tool.server);
                let note = format!("{server} is not listed in the profile's 'servers'");
                report.note(&item.location, note);
            }
        }
    }
}
