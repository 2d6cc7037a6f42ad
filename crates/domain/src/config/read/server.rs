//! `mcpServers`: a map, or a list of objects with `name`, as clients write it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use jsonc_parser::ast::Value;

use super::super::{AutoApprove, OAuth, Server, Sharing, Start, Transport, keys};
use super::node::{Members, Node, Place, shown};
use super::report::Report;
use super::{scalar, set, transport};

/// The built-in tools are served under this name.
const RESERVED_NAME: &str = "workspace";

/// Each server is a process or a connection with its own tasks.
const SERVERS_MAX: usize = 1_000;

pub(super) fn all(node: &Node<'_>, listen: SocketAddr, report: &mut Report) -> Vec<Server> {
    let servers = match node.value {
        Value::Array(_) => listed(node, listen, report),
        Value::Object(_) => mapped(node, listen, report),
        _ => node.wrong("an object of servers by name, or a list", report),
    };
    let servers = servers.unwrap_or_default();
    if servers.len() > SERVERS_MAX {
        report.fault(&node.place, format!("more than {SERVERS_MAX} servers"));
    }
    servers
}

fn mapped(node: &Node<'_>, listen: SocketAddr, report: &mut Report) -> Option<Vec<Server>> {
    let mut servers = Vec::new();
    for entry in node.entries(report)? {
        check_name(entry.name, &entry.key, report);
        let Some(members) = Members::open(&entry.node, &keys::SERVER, report) else { continue };
        if let Some(name) = members.get("name") {
            report.note(&name.key, "ignored: the server's name is its key");
        }
        servers.extend(server(entry.name, &members, listen, report));
    }
    Some(servers)
}

fn listed(node: &Node<'_>, listen: SocketAddr, report: &mut Report) -> Option<Vec<Server>> {
    let mut servers = Vec::new();
    let mut names = HashSet::new();
    for item in node.items("a list of servers", report)? {
        let Some(members) = Members::open(&item, &keys::SERVER, report) else { continue };
        let name = match members.get("name") {
            Some(entry) => entry.node.text(report).map(|name| (name, &entry.node.place)),
            None => {
                report.fault(&members.place, "a server in a list needs a 'name'");
                None
            }
        };
        if let Some((name, place)) = name {
            check_name(name, place, report);
            if !names.insert(name) {
                report.fault(place, format!("another server is named {} already", shown(name)));
            }
        }
        let name = name.map_or("", |(name, _)| name);
        servers.extend(server(name, &members, listen, report));
    }
    Some(servers)
}

fn check_name(name: &str, place: &Place, report: &mut Report) {
    if let Some(fault) = scalar::name_fault(name) {
        report.fault(place, fault);
    } else if name == RESERVED_NAME {
        let fault = "this name is reserved for the built-in tools; choose another";
        report.fault(place, fault);
    }
}

fn server(
    name: &str,
    members: &Members<'_>,
    listen: SocketAddr,
    report: &mut Report,
) -> Option<Server> {
    let mut server = Server::new(name, Transport::stdio(""));
    let transport = transport::read(members, listen, report);
    set(&mut server.enabled, enabled(members, report));
    set(&mut server.quarantined, members.flag("quarantined", report));
    tools(&mut server, members, report);
    set(&mut server.auto_approve, members.choice("auto_approve", AutoApprove::named, report));
    set(&mut server.sharing, members.choice("sharing", Sharing::named, report));
    set(&mut server.start, members.choice("start", Start::named, report));
    server.call_timeout = members.span("call_timeout", report);
    server.max_concurrent = members.count("max_concurrent", report).and_then(NonZeroU32::new);
    server.oauth = members.section("oauth", report).map(|members| OAuth {
        client_id: members.text("client_id", report),
        scopes: members.texts("scopes", report).unwrap_or_default(),
    });
    server.transport = transport?;
    Some(server)
}

/// `enabled`, or its opposite as other clients write it.
fn enabled(members: &Members<'_>, report: &mut Report) -> Option<bool> {
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

fn tools(server: &mut Server, members: &Members<'_>, report: &mut Report) {
    if let (Some(_), Some(disabled)) = (members.get("enabled_tools"), members.get("disabled_tools"))
    {
        let fault = "not together with 'enabled_tools'; keep one of them";
        report.fault(&disabled.key, fault);
    }
    server.enabled_tools = members.texts("enabled_tools", report);
    server.disabled_tools = members.texts("disabled_tools", report).unwrap_or_default();
}
