//! `profiles`: subsets of servers and tools, checked against the configured servers.

use std::collections::BTreeSet;

use super::members::{Section, entries};
use super::read::check_name;
use super::report::Report;
use super::scalar::did_you_mean;
use super::{Config, ProfileConfig, ServerOrigin, keys};
use crate::tool::{ToolName, WORKSPACE};
use text::document::{Member, Node, shown};

/// Returns the names that a profile can refer to: servers, plugins and the built-in tools.
pub(super) fn known(config: &Config) -> BTreeSet<&str> {
    let servers = config.servers.iter().map(|server| server.name.as_str());
    let plugins = config.plugins.iter().map(|plugin| plugin.name.as_str());
    servers.chain(plugins).chain([WORKSPACE]).collect()
}

pub(super) fn all(
    top: &Section<'_>,
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
    let members = Section::open(&entry.node, &keys::PROFILE, report)?;
    if members.get("servers").is_none() {
        report.fault(&entry.key, "a profile needs 'servers'");
    }
    let servers = members.texts("servers", report).unwrap_or_default();
    note_unknown(&members, known, report);
    let among: BTreeSet<&str> = servers.iter().map(String::as_str).collect();
    let mut tools = |name| {
        let read = |node: &Node<'_>, report: &mut Report| tools(node, &among, report);
        members.read(name, report, read)
    };
    let (only, exclude) = (tools("tools"), tools("exclude").unwrap_or_default());
    let name = entry.name.to_owned();
    Some(ProfileConfig { name, origin: ServerOrigin::Own, servers, tools: only, exclude })
}

/// Adds notes on unknown servers. They are not faults, because a server may be added at run time.
fn note_unknown(members: &Section<'_>, known: &BTreeSet<&str>, report: &mut Report) {
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

fn tools(node: &Node<'_>, servers: &BTreeSet<&str>, report: &mut Report) -> Option<Vec<ToolName>> {
    let mut tools = Vec::new();
    for item in report.take(node.items("a list of strings"))? {
        let Some(text) = report.take(item.text()) else { continue };
        let Ok(tool) = ToolName::parse(text) else {
            report.fault(&item.location, format!("expected 'server:tool', found {}", shown(text)));
            continue;
        };
        if !servers.contains(tool.server.as_str()) {
            let server = shown(&tool.server);
            report
                .note(&item.location, format!("{server} is not listed in the profile's 'servers'"));
        }
        tools.push(tool);
    }
    Some(tools)
}
