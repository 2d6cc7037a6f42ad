//! Selects the transport of a server and checks its settings.

use std::net::SocketAddr;

use super::{
    ADDRESSES, HTTP_ADDRESS, RemoteProtocol, RemoteTransport, STDIO, StdioTransport, Transport,
};
use crate::config::declare::Section;
use crate::config::kind::{Kind, no_choice};
use crate::config::members::Members;
use crate::config::report::Report;
use crate::config::template::ConfigTemplate;
use crate::config::values::{HEADERS, template};
use crate::config::{network, secret};
use text::document::{Member, Node};

/// The word of a transport.
#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Stdio,
    Remote(RemoteProtocol),
}

pub(in crate::config) fn read(
    members: &Members<'_>,
    listen: SocketAddr,
    report: &mut Report,
) -> Option<Transport> {
    let stated = stated(members, report);
    match (members.get("command"), address(members, report)) {
        (Some(command), None) => stdio(command, members, stated, report),
        (None, Some(url)) => remote(url, members, stated, listen, report),
        (Some(_), Some(url)) => {
            let name = url.name;
            let fault = format!("a server takes 'command' or '{name}', not both; remove one");
            report.fault(&url.key, fault);
            None
        }
        (None, None) => {
            report.fault(&members.location, "a server needs 'command' (stdio) or 'url' (http)");
            None
        }
    }
}

/// Returns `url`, or the member that other clients call it by.
fn address<'s, 'a>(members: &'s Members<'a>, report: &mut Report) -> Option<&'s Member<'a>> {
    let mut given = ADDRESSES.iter().filter_map(|name| members.get(name));
    let first = given.next()?;
    for other in given {
        let fault = format!("a server has one address: keep this or '{}'", first.name);
        report.fault(&other.key, fault);
    }
    Some(first)
}

/// Reads `transport`, or the `type` of other clients.
fn stated(members: &Members<'_>, report: &mut Report) -> Option<Wire> {
    let ours = members.read("transport", report, word);
    let theirs = members.read("type", report, word);
    if let (Some(entry), Some(ours), Some(theirs)) = (members.get("type"), ours, theirs)
        && ours != theirs
    {
        report.fault(&entry.key, "contradicts 'transport'; keep one of them");
    }
    ours.or(theirs)
}

fn word(node: &Node<'_>, report: &mut Report) -> Option<Wire> {
    match report.take(node.text())? {
        STDIO => Some(Wire::Stdio),
        "streamable-http" | "streamableHttp" => Some(Wire::Remote(RemoteProtocol::Http)),
        other => match RemoteProtocol::named(other) {
            Some(protocol) => Some(Wire::Remote(protocol)),
            None => no_choice(node, other, &[&[STDIO], RemoteProtocol::NAMES].concat(), report),
        },
    }
}

fn stdio(
    entry: &Member<'_>,
    members: &Members<'_>,
    stated: Option<Wire>,
    report: &mut Report,
) -> Option<Transport> {
    if stated.is_some_and(|wire| wire != Wire::Stdio) {
        report.fault(
            &entry.key,
            "'command' requires transport \"stdio\"; use 'url' for other transports",
        );
    }
    note_idle(members, &["headers", "oauth"], "command", report);
    let mut program = StdioTransport::default();
    program.set(members, report);
    note_visible(members, &program.args, report);
    if !entry.node.is_text() {
        return None;
    }
    check_command(entry, &program, report);
    Some(Transport::Stdio(program))
}

fn remote(
    entry: &Member<'_>,
    members: &Members<'_>,
    stated: Option<Wire>,
    listen: SocketAddr,
    report: &mut Report,
) -> Option<Transport> {
    let idle = StdioTransport::KEYS.iter().map(|key| key.name);
    note_idle(members, &idle.collect::<Vec<_>>(), "url", report);
    let headers = members.read("headers", report, |node, report| HEADERS.read(node, report));
    let headers = headers.unwrap_or_default();
    let is_token = |(name, _): &(String, _)| name.eq_ignore_ascii_case("authorization");
    if let Some(oauth) = members.get("oauth").filter(|_| headers.iter().any(is_token)) {
        let fault = "cannot be combined with the header 'Authorization'; keep one of them";
        report.fault(&oauth.key, fault);
    }
    let url = template(&entry.node, report)?;
    check_url(entry, &url, listen, report);
    let protocol = match stated {
        Some(Wire::Remote(protocol)) => protocol,
        Some(Wire::Stdio) => {
            let fault = "'url' cannot be used with transport \"stdio\"; use 'command'";
            report.fault(&entry.key, fault);
            return None;
        }
        None if entry.name == HTTP_ADDRESS => RemoteProtocol::Http,
        None => RemoteProtocol::implied(&url),
    };
    Some(Transport::Remote(RemoteTransport { protocol, url, headers }))
}

/// Notes a secret among the arguments, which every user of the machine can list.
fn note_visible(members: &Members<'_>, args: &[ConfigTemplate], report: &mut Report) {
    if let Some(entry) = members.get("args")
        && secret::is_in_args(args)
    {
        report.note(&entry.key, secret::VISIBLE_SECRET);
    }
}

fn note_idle(members: &Members<'_>, names: &[&str], with: &str, report: &mut Report) {
    for entry in names.iter().filter_map(|name| members.get(name)) {
        report.note(&entry.key, format!("ignored: has no effect with '{with}'"));
    }
}

fn check_command(entry: &Member<'_>, program: &StdioTransport, report: &mut Report) {
    let (location, command) = (&entry.node.location, program.command.as_str());
    if command.trim().is_empty() {
        report.fault(location, "the command must not be empty");
    } else if command.contains('\0') {
        report.fault(location, "the command must not contain a NUL character");
    } else if is_countersign(command, &program.args) {
        report.fault(
            location,
            "this command is Countersign itself, which would call itself endlessly",
        );
    } else if command.contains(['|', '&', ';', '<', '>', '$', '`']) {
        report
            .note(location, "no shell runs this command, so shell characters are taken literally");
    } else if command.contains(char::is_whitespace) && !command.contains(['/', '\\']) {
        report
            .note(location, "expected a program, not a command line; put its arguments in 'args'");
    } else if command.contains('/') && !command.starts_with('/') && !command.contains(['\\', ':']) {
        report
            .note(location, "a relative path depends on the directory Countersign is started from");
    }
}

fn is_countersign(command: &str, args: &[ConfigTemplate]) -> bool {
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let program = program.strip_suffix(".exe").unwrap_or(program);
    let verb = args.iter().map(ConfigTemplate::text).find(|arg| !arg.starts_with('-'));
    program == "countersign" && matches!(verb, Some("mcp" | "serve"))
}

fn check_url(entry: &Member<'_>, url: &ConfigTemplate, listen: SocketAddr, report: &mut Report) {
    if url.starts_with_placeholder() {
        return;
    }
    if !is_http_url(url.text()) {
        report.fault(&entry.node.location, "expected an http or https URL");
    } else if is_own(url.text(), listen) {
        let fault = "this is Countersign's own address; it would call itself endlessly";
        report.fault(&entry.node.location, fault);
    }
}

fn is_own(url: &str, listen: SocketAddr) -> bool {
    let rest = url.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    host == listen.to_string() || network::hosts(listen.port()).contains(&host)
}

/// Reports whether text is `http://` or `https://` with a host and only characters valid in a URL.
pub(in crate::config) fn is_http_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let unfit =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\\' | '"' | '<' | '>');
    is_http && !host.is_empty() && !host.starts_with(':') && !text.contains(unfit)
}
