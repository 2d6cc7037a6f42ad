//! Reads an untrusted file found in the folder. All of its faults are reported, but only settings
//! that narrow are applied. Keys are allowed by name, so that a new key is ignored until it is
//! listed here.

use super::super::members::Section;
use super::super::report::Report;
use super::super::source;
use super::super::{
    AutoApprove, Config, Faults, Note, ProfileConfig, Redact, ServerConfig, ServerOrigin,
    ToolRules, Transport, keys, profile,
};
use super::{section, server, top};
use text::document::{Content, Location, Member, Node, Syntax};

const UNTRUSTED: &str = "ignored: an untrusted file in the folder may only restrict; run \
                         `countersign config trust` to apply all of it";

const PROFILE_TAKEN: &str = "ignored: your own configuration has a profile with this name";

const STAYS_QUARANTINED: &str = "ignored: a server from an untrusted file stays quarantined until \
                                 a person approves it";

const REFERENCES: &str = "references to your variables and secrets are plain text in an untrusted \
                          file; run `countersign config trust` to hand the values over";

/// Members that take effect in an entry for one of the user's own servers.
const NARROWING: [&str; 3] = ["name", "enabled_tools", "disabled_tools"];

/// Limits on the names to redact and their length: together they become one automaton, which an
/// untrusted file must not make large.
const REDACT_KEYS_MAX: usize = 100;
const REDACT_KEY_CHARS_MAX: usize = 100;

/// Names in one list: every tool of the server is compared with them.
const TOOL_NAMES_MAX: usize = 1_000;

/// The effective settings of such a file.
pub(in crate::config) struct FolderConfig {
    /// Servers that the user's own configuration does not have.
    pub(in crate::config) servers: Vec<ServerConfig>,
    /// Tool lists for servers that it has.
    pub(in crate::config) narrowed: Vec<(String, ToolRules)>,
    pub(in crate::config) profiles: Vec<ProfileConfig>,
    pub(in crate::config) redact: Redact,
    pub(in crate::config) notes: Vec<Note>,
}

pub(in crate::config) fn found(text: &str, own: &Config) -> Result<FolderConfig, Faults> {
    let mut report = Report::default();
    let redact = Redact { keys: Vec::new(), patterns: Vec::new() };
    let mut found = FolderConfig {
        servers: Vec::new(),
        narrowed: Vec::new(),
        profiles: Vec::new(),
        redact,
        notes: Vec::new(),
    };
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
            "$schema" | "redact" => {}
            "mcpServers" => ignore_in_servers(&entry.node, own, report),
            "profiles" => ignore_profiles(&entry.node, own, report),
            _ => report.ignore(&entry, UNTRUSTED),
        }
    }
}

fn ignore_in_servers(node: &Node<'_>, own: &Config, report: &mut Report) {
    for (name, node) in named(node) {
        if own.server(name).is_none() {
            continue;
        }
        for entry in members(&node).filter(|entry| !NARROWING.contains(&entry.name)) {
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
    let Some(top) = Section::open(root, &keys::TOP, report) else { return };
    // Read for its faults; only the redaction is kept.
    let mut checked = Config::default();
    top::network(&mut checked, &top, report);
    top::numbers(&mut checked, &top, report);
    top.read("plugins", report, section::plugins);
    top::sections(&mut checked, &top, report);
    found.redact = checked.redact;
    check_redaction(&found.redact, &top, own, report);
    servers(found, &top, own, report);
    let mut known = profile::known(own);
    known.extend(found.servers.iter().map(|server| server.name.as_str()));
    found.profiles = profile::all(&top, &known, report);
    found.profiles.retain(|profile| own.profile(&profile.name).is_none());
    found.profiles.iter_mut().for_each(|profile| profile.origin = ServerOrigin::Found);
}

fn servers(found: &mut FolderConfig, top: &Section<'_>, own: &Config, report: &mut Report) {
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

fn check_lists(members: &Section<'_>, report: &mut Report) {
    for entry in ["enabled_tools", "disabled_tools"].iter().filter_map(|key| members.get(key)) {
        if let Content::List(list) = &entry.node.tree.content
            && list.len() > TOOL_NAMES_MAX
        {
            let fault = format!("an untrusted file may name at most {TOOL_NAMES_MAX} tools");
            report.fault(&entry.node.location, fault);
        }
    }
}

fn untrusted(mut server: ServerConfig, members: &Section<'_>, report: &mut Report) -> ServerConfig {
    let asks_trust = !server.quarantined;
    if let Some(entry) = members.get("quarantined")
        && asks_trust
    {
        report.ignore(entry, STAYS_QUARANTINED);
    }
    if let Some(entry) = members.get("auto_approve")
        && server.auto_approve != AutoApprove::None
    {
        report.ignore(entry, UNTRUSTED);
    }
    if let Transport::Stdio { inherit_env, .. } = &mut server.transport
        && std::mem::take(inherit_env)
        && let Some(entry) = members.get("inherit_env")
    {
        report.ignore(entry, UNTRUSTED);
    }
    if server.targets.take().is_some()
        && let Some(entry) = members.get("targets")
    {
        report.ignore(entry, UNTRUSTED);
    }
    if server.take_literally() {
        report.note(&members.location, REFERENCES);
    }
    server.origin = ServerOrigin::Found;
    server.quarantined = true;
    server.auto_approve = AutoApprove::None;
    server
}

/// Checks that the redaction can be built together with the user's own.
fn check_redaction(redact: &Redact, top: &Section<'_>, own: &Config, report: &mut Report) {
    let Some(entry) = top.get("redact") else { return };
    let long = |key: &String| key.chars().count() > REDACT_KEY_CHARS_MAX;
    if redact.keys.len() > REDACT_KEYS_MAX || redact.keys.iter().any(long) {
        let bound = format!("{REDACT_KEYS_MAX} keys of {REDACT_KEY_CHARS_MAX} characters");
        report.fault(&entry.node.location, format!("an untrusted file may add at most {bound}"));
        return;
    }
    section::check_together(own, redact, &entry.node, report);
}
