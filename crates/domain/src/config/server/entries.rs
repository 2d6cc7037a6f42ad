//! `mcpServers`: a map, or a list of objects with `name`, as clients write it.

use std::collections::HashSet;
use std::net::SocketAddr;

use super::{LoginScope, ServerConfig, Sharing};
use crate::config::declare::Section;
use crate::config::members::{Members, entries};
use crate::config::name::name_fault;
use crate::config::oauth::OAuthGrant;
use crate::config::report::Report;
use crate::config::tool_rules::ToolRules;
use crate::config::transport::{self, RemoteTransport, Transport};
use crate::tool::WORKSPACE;
use text::document::{Content, Location, Node, shown};

/// Each server is a process or a connection with its own tasks.
pub(in crate::config) const SERVERS_MAX: usize = 1_000;

pub(in crate::config) fn all(
    node: &Node<'_>,
    listen: SocketAddr,
    report: &mut Report,
) -> Vec<ServerConfig> {
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
pub(in crate::config) type Visit<'v> = dyn FnMut(&str, &Members<'_>, &mut Report) + 'v;

/// Visits every server, in a map or a list.
pub(in crate::config) fn each(node: &Node<'_>, report: &mut Report, visit: &mut Visit<'_>) {
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
        let Some(members) = Members::open(&entry.node, ServerConfig::TABLE, report) else {
            continue;
        };
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
        let Some(members) = Members::open(&item, ServerConfig::TABLE, report) else { continue };
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
    if let Some(fault) = name_fault(name) {
        report.fault(location, fault);
    } else if name == WORKSPACE {
        let fault = "this name is reserved for the built-in tools; choose another";
        report.fault(location, fault);
    }
}

pub(in crate::config) fn server(
    name: &str,
    members: &Members<'_>,
    listen: SocketAddr,
    report: &mut Report,
) -> Option<ServerConfig> {
    let transport = transport::read(members, listen, report);
    let mut server = ServerConfig::new(name, Transport::stdio(""));
    server.set(members, report);
    server.transport = transport?;
    check_login(&server, members, report);
    Some(server)
}

/// Rejects a sign-in of each token where none can sign in, or where callers share a connection.
fn check_login(server: &ServerConfig, members: &Members<'_>, report: &mut Report) {
    if server.login != LoginScope::PerToken {
        return;
    }
    let is_token = |(name, _): &(String, _)| name.eq_ignore_ascii_case("authorization");
    let is_machine = server.oauth.as_ref().is_some_and(|it| it.grant == OAuthGrant::Machine);
    let fault = match &server.transport {
        Transport::Stdio(_) => "\"per_token\" needs 'url'",
        Transport::Remote(RemoteTransport { headers, .. }) if headers.iter().any(is_token) => {
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
pub(in crate::config) fn laid_over(
    own: &ServerConfig,
    members: &Members<'_>,
    listen: SocketAddr,
    report: &mut Report,
) -> Option<ServerConfig> {
    let is_another = members.names().any(transport::is_part);
    let mut server = if is_another {
        server(&own.name, members, listen, report)?
    } else {
        let mut server = ServerConfig { tools: ToolRules::All, ..own.clone() };
        server.set(members, report);
        check_login(&server, members, report);
        server
    };
    server.tools = own.tools.clone().narrowed(server.tools);
    Some(server)
}

/// Reads the tool lists of an entry that only narrows an existing server; its connection need not
/// be repeated.
pub(in crate::config) fn narrowing(
    members: &Members<'_>,
    listen: SocketAddr,
    report: &mut Report,
) -> ToolRules {
    let reaches = |name: &&str| members.get(name).is_some();
    if reaches(&"command") || transport::ADDRESSES.iter().any(reaches) {
        transport::read(members, listen, report);
    }
    let mut server = ServerConfig::new("", Transport::stdio(""));
    server.set(members, report);
    server.tools
}
