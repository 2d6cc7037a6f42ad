//! Applies an untrusted `./countersign.json` found in the folder to the user's own configuration.
//! It can only narrow: opening an unknown folder must not run its code or apply its rules. All of its
//! faults are reported; a key takes effect only where its declaration allows it.

use super::declare::Section;
use super::keys::{Found, Table};
use super::members::Members;
use super::profile::{self, ProfileConfig};
use super::redact::Redact;
use super::report::Report;
use super::server::{self, ServerConfig, ServerOrigin};
use super::source;
use super::tool_rules::ToolRules;
use super::top::{Config, ParsedConfig};
use super::{Faults, Note};
use text::document::{Content, Location, Member, Node, Syntax};

#[cfg(test)]
mod tests;

const UNTRUSTED: &str = "ignored: an untrusted file in the folder may only restrict; run \
                         `countersign config trust` to apply all of it";

const PROFILE_TAKEN: &str = "ignored: your own configuration has a profile with this name";

const STAYS_QUARANTINED: &str = "ignored: a server from an untrusted file stays quarantined until \
                                 a person approves it";

const REFERENCES: &str = "references to your variables and secrets are plain text in an untrusted \
                          file; run `countersign config trust` to hand the values over";

/// Limits on the names to redact and their length: together they become one automaton, which an
/// untrusted file must not make large.
const REDACT_KEYS_MAX: usize = 100;
const REDACT_KEY_CHARS_MAX: usize = 100;

/// Names in one list: every tool of the server is compared with them.
const TOOL_NAMES_MAX: usize = 1_000;

/// Applies a found file to the user's own configuration: new servers (quarantined), lists that
/// narrow the tools of the user's servers, profiles, redaction. A file with faults changes nothing.
/// The notes refer to the found file.
pub fn overlay(own: Config, found: &str) -> Result<ParsedConfig, Faults> {
    let found = folder_config(found, &own)?;
    let mut config = own;
    for (name, rules) in found.narrowed {
        narrow(&mut config, &name, rules);
    }
    config.servers.extend(found.servers);
    config.profiles.extend(found.profiles);
    config.redact.add(found.redact);
    Ok(ParsedConfig { config, notes: found.notes })
}

fn narrow(config: &mut Config, name: &str, rules: ToolRules) {
    for server in config.servers.iter_mut().filter(|server| server.name == name) {
        let tools = std::mem::take(&mut server.tools);
        server.tools = tools.narrowed(rules.clone());
    }
}

/// The effective settings of such a file.
#[derive(Default)]
struct FolderConfig {
    /// Servers that the user's own configuration does not have.
    servers: Vec<ServerConfig>,
    /// Tool lists for servers that it has.
    narrowed: Vec<(String, ToolRules)>,
    profiles: Vec<ProfileConfig>,
    redact: Redact,
    notes: Vec<Note>,
}

fn folder_config(text: &str, own: &Config) -> Result<FolderConfig, Faults> {
    let mut report = Report::default();
    let mut found = FolderConfig::default();
    match source::tree(text) {
        Ok(tree) => {
            let root = Node::root(&tree, Syntax::Json);
            // First, so that ignored members produce no other notes.
            ignore(&root, own, &mut report);
            read(&mut found, &root, own, &mut report);
        }
        Err(unreadable) => report.fault(&Location::root(unreadable.mark), unreadable.message),
    }
    found.notes = report.finish()?;
    Ok(found)
}

/// Adds a note on every member without effect. The reader reports faults in the shape.
fn ignore(root: &Node<'_>, own: &Config, report: &mut Report) {
    for entry in members(root) {
        match entry.name {
            "mcpServers" => ignore_in_servers(&entry.node, own, report),
            "profiles" => ignore_profiles(&entry.node, own, report),
            name if narrows(Config::TABLE, name) => {}
            _ => report.ignore(&entry, UNTRUSTED),
        }
    }
}

/// Reports whether a key takes effect on what is the user's own.
fn narrows(table: &Table, key: &str) -> bool {
    table.key(key).is_some_and(|key| key.found == Found::Narrows)
}

fn ignore_in_servers(node: &Node<'_>, own: &Config, report: &mut Report) {
    for (name, node) in named(node) {
        if own.server(name).is_none() {
            continue;
        }
        for entry in members(&node).filter(|entry| !narrows(ServerConfig::TABLE, entry.name)) {
            report.ignore(&entry, UNTRUSTED);
        }
    }
}

fn ignore_profiles(node: &Node<'_>, own: &Config, report: &mut Report) {
    for entry in members(node) {
        if own.profile(entry.name).is_some() {
            report.ignore(&entry, PROFILE_TAKEN);
        }
    }
}

/// Returns the servers of a map or a list that have names.
fn named<'a>(node: &Node<'a>) -> Vec<(&'a str, Node<'a>)> {
    let Ok(items) = node.items("a list of servers") else {
        return members(node).map(|entry| (entry.name, entry.node)).collect();
    };
    let mut servers = Vec::new();
    for item in items {
        let name = members(&item).find(|entry| entry.name == "name");
        let name = name.and_then(|entry| entry.node.text().ok());
        servers.extend(name.map(|name| (name, item)));
    }
    servers
}

/// Returns the members of an object; none for any other value.
fn members<'a>(node: &Node<'a>) -> impl Iterator<Item = Member<'a>> + use<'a> {
    node.entries().into_iter().flatten()
}

fn read(found: &mut FolderConfig, root: &Node<'_>, own: &Config, report: &mut Report) {
    let Some(top) = Members::open(root, Config::TABLE, report) else { return };
    // Read for its faults; only the redaction is kept.
    let mut checked = Config::default();
    checked.set(&top, report);
    found.redact = checked.redact;
    check_redaction(&found.redact, &top, own, report);
    servers(found, &top, own, report);
    let mut known = profile::known(own);
    known.extend(found.servers.iter().map(|server| server.name.as_str()));
    found.profiles = profile::all(&top, &known, report);
    found.profiles.retain(|profile| own.profile(&profile.name).is_none());
    found.profiles.iter_mut().for_each(|profile| profile.origin = ServerOrigin::Found);
}

fn servers(found: &mut FolderConfig, top: &Members<'_>, own: &Config, report: &mut Report) {
    let Some(entry) = top.get("mcpServers") else { return };
    server::each(&entry.node, report, &mut |name, members, report| {
        check_lists(members, report);
        if own.server(name).is_some() {
            let rules = server::narrowing(members, own.listen, report);
            found.narrowed.push((name.to_owned(), rules));
        } else if let Some(server) = server::server(name, members, own.listen, report) {
            found.servers.push(untrusted(server, members, report));
        }
    });
    if own.servers.len() + found.servers.len() > server::SERVERS_MAX {
        let fault = format!(
            "too many servers: at most {} are allowed, including your own",
            server::SERVERS_MAX
        );
        report.fault(&entry.node.location, fault);
    }
}

fn check_lists(members: &Members<'_>, report: &mut Report) {
    for entry in ["enabled_tools", "disabled_tools"].iter().filter_map(|key| members.get(key)) {
        if let Content::List(list) = &entry.node.tree.content
            && list.len() > TOOL_NAMES_MAX
        {
            let fault = format!("an untrusted file may name at most {TOOL_NAMES_MAX} tools");
            report.fault(&entry.node.location, fault);
        }
    }
}

fn untrusted(mut server: ServerConfig, members: &Members<'_>, report: &mut Report) -> ServerConfig {
    let asks_trust = !server.quarantined;
    if let Some(entry) = members.get("quarantined")
        && asks_trust
    {
        report.ignore(entry, STAYS_QUARANTINED);
    }
    for key in server.restrict().into_iter().chain(server.transport.restrict()) {
        if let Some(entry) = members.get(key) {
            report.ignore(entry, UNTRUSTED);
        }
    }
    if server.take_literally() {
        report.note(&members.location, REFERENCES);
    }
    server.origin = ServerOrigin::Found;
    server.quarantined = true;
    server
}

/// Checks that the redaction can be built together with the user's own.
fn check_redaction(redact: &Redact, top: &Members<'_>, own: &Config, report: &mut Report) {
    let Some(entry) = top.get("redact") else { return };
    let long = |key: &String| key.chars().count() > REDACT_KEY_CHARS_MAX;
    if redact.keys.len() > REDACT_KEYS_MAX || redact.keys.iter().any(long) {
        let bound = format!("{REDACT_KEYS_MAX} keys of {REDACT_KEY_CHARS_MAX} characters");
        report.fault(&entry.node.location, format!("an untrusted file may add at most {bound}"));
        return;
    }
    own.redact.check_together(redact, &entry.node, report);
}
