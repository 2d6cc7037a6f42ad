//! `mcpServers`: a map, or a list of objects with `name`, as clients write it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::super::members::{Section, entries, give, set};
use super::super::report::Report;
use super::super::{
    AutoApprove, LoginScope, OAuthGrant, ServerConfig, ServerOrigin, Sharing, Start, ToolRules,
    Transport, keys, scalar, targets, transport,
};
use super::oauth;
use crate::tool::WORKSPACE;
use text::document::{Content, Location, Node, shown};

/// Members that describe the connection to a server; an entry with one of them must be complete.
const REACHING: [&str; 11] = [
    "command",
    "args",
    "env",
    "inherit_env",
    "cwd",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "transport",
    "type",
];

/// Each server is a process or a connection with its own tasks.
pub(super) const SERVERS_MAX: usize = 1_000;

pub(super) fn all(node: &Node<'_>, listen: SocketAddr, report: &mut Report) -> Vec<ServerConfig> {
    let mut servers = Vec::new();
    each(node, report, &mut |name, members, report| {
        servers.extend(server(name, members, listen, report));
    });
    if servers.len() > SERVERS_MAX {
        report
            .fault(&node.location, format!("too many servers: at most {SERVERS_MAX} are allowed"));
    }
    servers
}

/// A callback for one server, with its name, its members, and the report for their faults.
pub(super) type Visit<'v> = dyn FnMut(&str, &Section<'_>, &mut Report) + 'v;

/// Visits every server, in a map or a list.
pub(super) fn each(node: &Node<'_>, report: &mut Report, visit: &mut Visit<'_>) {
    match node.tree.content {
        Content::List(_) => listed(node, report, visit),
        Content::Map(_) => mapped(node, report, visit),
        Content::Scalar(_) => {
            report.take(Err(node.mismatch("an object of servers by name, or a list")))
        }
    };
}

fn mapped(node: &Node<'_>, report: &mut Report, visit: &mut Visit<'_>) -> Option<()> {
    for entry in entries(node, report)? {
        check_name(entry.name, &entry.key, report);
        let Some(members) = Section::open(&entry.node, &keys::SERVER, report) else { continue };
        if let Some(name) = members.get("name") {
            report.note(&name.key, "ignored: the server's name is its key");
        }
        visit(entry.name, &members, report);
    }
    Some(())
}

fn listed(node: &Node<'_>, report: &mut Report, visit: &mut Visit<'_>) -> Option<()> {
    let mut names = HashSet::new();
    for item in report.take(node.items("a list of servers"))? {
        let Some(members) = Section::open(&item, &keys::SERVER, report) else { continue };
        let name = match members.get("name") {
            Some(entry) => report.take(entry.node.text()).map(|name| (name, &entry.node.location)),
            None => {
                report.fault(&members.location, "a server in a list needs a 'name'");
                None
            }
        };
        if let Some((name, location)) = name {
            check_name(name, location, report);
            if !names.insert(name) {
                report.fault(location, format!("another server is already named {}", shown(name)));
            }
        }
        visit(name.map_or("", |(name, _)| name), &members, report);
    }
    Some(())
}

fn check_name(name: &str, location: &Location, report: &mut Report) {
    if let Some(fault) = scalar::name_fault(name) {
        report.fault(location, fault);
    } else if name == WORKSPACE {
        let fault = "this name is reserved for the built-in tools; choose another";
        report.fault(location, fault);
    }
}

pub(super) fn server(
    name: &str,
    members: &Section<'_>,
    listen: SocketAddr,
    report: &mut Report,
) -> Option<ServerConfig> {
    let mut server = ServerConfig::new(name, Transport::stdio(""));
    let transport = transport::read(members, listen, report);
    settings(&mut server, members, report);
    server.transport = transport?;
    check_login(&server, members, report);
    Some(server)
}

/// Reads all settings except the connection.
fn settings(server: &mut ServerConfig, members: &Section<'_>, report: &mut Report) {
    set(&mut server.enabled, enabled(members, report));
    set(&mut server.quarantined, members.flag("quarantined", report));
    if let Some(is_untrusted) = members.flag("untrusted", report) {
        server.origin = if is_untrusted { ServerOrigin::Found } else { ServerOrigin::Own };
    }
    set(&mut server.tools, tools(members, report));
    set(&mut server.auto_approve, members.choice("auto_approve", AutoApprove::named, report));
    set(&mut server.sharing, members.choice("sharing", Sharing::named, report));
    set(&mut server.start, members.choice("start", Start::named, report));
    give(&mut server.call_timeout, members.span("call_timeout", report));
    let concurrent = members.count("max_concurrent", report).and_then(NonZeroU32::new);
    give(&mut server.max_concurrent, concurrent);
    set(&mut server.login, members.choice("login", LoginScope::named, report));
    give(&mut server.oauth, oauth::read(members, report));
    set(&mut server.pin, members.flag("pin", report));
    give(&mut server.targets, targets::read(members, report).map(Arc::new));
}

/// Rejects a sign-in of each token where none can sign in, or where callers share a connection.
fn check_login(server: &ServerConfig, members: &Section<'_>, report: &mut Report) {
    if server.login != LoginScope::PerToken {
        return;
    }
    let is_token = |(name, _): &(String, _)| name.eq_ignore_ascii_case("authorization");
    let is_machine = server.oauth.as_ref().is_some_and(|it| it.grant == OAuthGrant::Machine);
    let fault = match &server.transport {
        Transport::Stdio { .. } => "\"per_token\" needs 'url'",
        Transport::Http { headers, .. } | Transport::Sse { headers, .. }
            if headers.iter().any(is_token) =>
        {
            "\"per_token\" cannot be combined with the header 'Authorization'"
        }
        _ if is_machine => "\"per_token\" cannot be combined with grant \"client_credentials\"",
        _ if server.sharing == Sharing::Shared => {
            "\"per_token\" cannot be combined with sharing \"shared\""
        }
        _ => return,
    };
    let named = ["login", "oauth", "sharing"].into_iter().find_map(|name| members.get(name));
    let location = named.map_or(&members.location, |entry| &entry.key);
    report.fault(location, fault);
}

/// Applies a trusted file's entry to an existing server: its values replace the existing ones,
/// except for the tool lists, which narrow.
pub(super) fn laid_over(
    own: &ServerConfig,
    members: &Section<'_>,
    listen: SocketAddr,
    report: &mut Report,
) -> Option<ServerConfig> {
    let is_another = REACHING.iter().any(|key| members.get(key).is_some());
    let mut server = if is_another {
        server(&own.name, members, listen, report)?
    } else {
        let mut server = ServerConfig { tools: ToolRules::All, ..own.clone() };
        settings(&mut server, members, report);
        check_login(&server, members, report);
        server
    };
    server.tools = own.tools.clone().narrowed(server.tools);
    Some(server)
}

/// Reads the tool lists of an entry that only narrows an existing server; its connection need not
/// be repeated.
pub(super) fn narrowing(
    members: &Section<'_>,
    listen: SocketAddr,
    report: &mut Report,
) -> ToolRules {
    let reaches = |name: &&str| members.get(name).is_some();
    if reaches(&"command") || keys::ADDRESSES.iter().any(reaches) {
        transport::read(members, listen, report);
    }
    let mut server = ServerConfig::new("", Transport::stdio(""));
    settings(&mut server, members, report);
    server.tools
}

/// Reads `enabled`, or `disabled` as other clients write it.
fn enabled(members: &Section<'_>, report: &mut Report) -> Option<bool> {
    let enabled = members.flag("enabled", report);
    let disabled = members.flag("disabled", report);
    if let (Some(entry), Some(enabled), Some(disabled)) =
        (members.get("disabled"), enabled, disabled)
        && enabled == disabled
    {
        report.fault(&entry.key, format!("contradicts 'enabled': {enabled}; keep one of them"));
    }
    enabled.or(disabled.map(|disabled| !disabled))
}

fn tools(members: &Section<'_>, report: &mut Report) -> Option<ToolRules> {
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
