//! The connection to a server: selects stdio, http or sse and checks its settings. Values of `env`
//! and `headers` never appear in messages: they may be secrets.

use std::collections::HashSet;
use std::net::SocketAddr;

use super::defaults;
use super::keys::{ADDRESSES, HTTP_ADDRESS};
use super::members::{Section, entries};
use super::report::Report;
use super::scalar;
use super::{ConfigTemplate, Transport, secret};
use text::document::{Member, Node};

/// Variables that make a program load code; sometimes intended, never by accident.
const RISKY_VARIABLES: &[&str] = &[
    "BASH_ENV",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "JAVA_TOOL_OPTIONS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "PERL5OPT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYOPT",
];

/// Prefix of our own variables, with which a server could be made to act as the gate.
const OWN_VARIABLES: &str = "COUNTERSIGN_";

/// Headers that the protocol sets on each request.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

const WORDS: &[&str] = &["stdio", "http", "sse"];

#[derive(Clone, Copy, PartialEq)]
enum Wire {
    Stdio,
    Http,
    Sse,
}

pub(super) fn read(
    members: &Section<'_>,
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
fn address<'s, 'a>(members: &'s Section<'a>, report: &mut Report) -> Option<&'s Member<'a>> {
    let mut given = ADDRESSES.iter().filter_map(|name| members.get(name));
    let first = given.next()?;
    for other in given {
        let fault = format!("a server has one address: keep this or '{}'", first.name);
        report.fault(&other.key, fault);
    }
    Some(first)
}

/// Reads `transport`, or the `type` of other clients.
fn stated(members: &Section<'_>, report: &mut Report) -> Option<Wire> {
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
        "stdio" => Some(Wire::Stdio),
        "http" | "streamable-http" | "streamableHttp" => Some(Wire::Http),
        "sse" => Some(Wire::Sse),
        other => scalar::no_choice(node, other, WORDS, report),
    }
}

fn stdio(
    entry: &Member<'_>,
    members: &Section<'_>,
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
    let command = report.take(entry.node.text());
    let args = members.read("args", report, templates).unwrap_or_default();
    note_visible(members, &args, report);
    let env = members.read("env", report, env).unwrap_or_default();
    let cwd = members.read("cwd", report, filled);
    let inherit_env = members.flag("inherit_env", report).unwrap_or_default();
    check_command(entry, command?, &args, report);
    Some(Transport::Stdio { command: command?.to_owned(), args, env, cwd, inherit_env })
}

fn remote(
    entry: &Member<'_>,
    members: &Section<'_>,
    stated: Option<Wire>,
    listen: SocketAddr,
    report: &mut Report,
) -> Option<Transport> {
    note_idle(members, &["args", "env", "inherit_env", "cwd"], "url", report);
    let headers = members.read("headers", report, headers).unwrap_or_default();
    let is_token =
        |(name, _): &(String, ConfigTemplate)| name.eq_ignore_ascii_case("authorization");
    if let Some(oauth) = members.get("oauth").filter(|_| headers.iter().any(is_token)) {
        let fault = "cannot be combined with the header 'Authorization'; keep one of them";
        report.fault(&oauth.key, fault);
    }
    let url = template(&entry.node, report)?;
    check_url(entry, &url, listen, report);
    let implied = || if entry.name == HTTP_ADDRESS { Wire::Http } else { guessed(&url) };
    match stated.unwrap_or_else(implied) {
        Wire::Http => Some(Transport::Http { url, headers }),
        Wire::Sse => Some(Transport::Sse { url, headers }),
        Wire::Stdio => {
            report
                .fault(&entry.key, "'url' cannot be used with transport \"stdio\"; use 'command'");
            None
        }
    }
}

fn guessed(url: &ConfigTemplate) -> Wire {
    let path = url.text().split(['?', '#']).next().unwrap_or_default();
    if path.trim_end_matches('/').ends_with("/sse") { Wire::Sse } else { Wire::Http }
}

/// Notes a secret among the arguments, which every user of the machine can list.
fn note_visible(members: &Section<'_>, args: &[ConfigTemplate], report: &mut Report) {
    if let Some(entry) = members.get("args")
        && secret::is_in_args(args)
    {
        report.note(&entry.key, secret::VISIBLE_SECRET);
    }
}

fn note_idle(members: &Section<'_>, names: &[&str], with: &str, report: &mut Report) {
    for entry in names.iter().filter_map(|name| members.get(name)) {
        report.note(&entry.key, format!("ignored: has no effect with '{with}'"));
    }
}

fn check_command(entry: &Member<'_>, command: &str, args: &[ConfigTemplate], report: &mut Report) {
    let location = &entry.node.location;
    if command.trim().is_empty() {
        report.fault(location, "the command must not be empty");
    } else if command.contains('\0') {
        report.fault(location, "the command must not contain a NUL character");
    } else if is_countersign(command, args) {
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
    host == listen.to_string() || defaults::hosts(listen.port()).contains(&host)
}

/// Reports whether text is `http://` or `https://` with a host and only characters valid in a URL.
pub(super) fn is_http_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let unfit =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\\' | '"' | '<' | '>');
    is_http && !host.is_empty() && !host.starts_with(':') && !text.contains(unfit)
}

/// Reads a non-empty string that can be passed to the system.
fn filled(node: &Node<'_>, report: &mut Report) -> Option<String> {
    let text = report.take(node.text())?;
    if text.is_empty() || text.contains('\0') {
        report.fault(&node.location, "expected a path");
    }
    Some(text.to_owned())
}

fn templates(node: &Node<'_>, report: &mut Report) -> Option<Vec<ConfigTemplate>> {
    let items = report.take(node.items("a list of strings"))?;
    Some(items.filter_map(|item| template(&item, report)).collect())
}

pub(super) fn template(node: &Node<'_>, report: &mut Report) -> Option<ConfigTemplate> {
    let text = report.take(node.text())?;
    if text.contains('\0') {
        report.fault(&node.location, "must not contain a NUL character");
    }
    match ConfigTemplate::parse(text) {
        Ok(template) => {
            note_unreplaced(node, &template, report);
            Some(template)
        }
        Err(malformed) => {
            report.fault(&node.location, malformed.to_string());
            None
        }
    }
}

/// Notes variables that only other clients replace; they reach the server unexpanded.
fn note_unreplaced(node: &Node<'_>, template: &ConfigTemplate, report: &mut Report) {
    if template.literals().any(|literal| literal.contains("${")) {
        report.note(
            &node.location,
            "only ${env:NAME} and ${secret:NAME} are replaced; any other '${…}' is passed on unchanged",
        );
    }
}

pub(super) fn env(node: &Node<'_>, report: &mut Report) -> Option<Vec<(String, ConfigTemplate)>> {
    let mut env = Vec::new();
    for entry in entries(node, report)? {
        let name = entry.name;
        if name.is_empty() || name.contains(['=', '\0']) {
            report.fault(&entry.key, "not a valid environment variable name");
        } else if name.starts_with(OWN_VARIABLES) {
            report
                .fault(&entry.key, "COUNTERSIGN_ variables are never passed to servers; remove it");
        } else if RISKY_VARIABLES.contains(&name) {
            report.note(
                &entry.key,
                "makes the server load extra code; make sure that you trust its source",
            );
        }
        env.extend(template(&entry.node, report).map(|value| (name.to_owned(), value)));
    }
    Some(env)
}

fn headers(node: &Node<'_>, report: &mut Report) -> Option<Vec<(String, ConfigTemplate)>> {
    let mut headers = Vec::new();
    let mut seen = HashSet::new();
    for entry in entries(node, report)? {
        let lower = entry.name.to_ascii_lowercase();
        if OWN_HEADERS.contains(&lower.as_str()) {
            report.note(&entry.key, "ignored: the protocol sets this header");
            continue;
        }
        if !is_header_name(&lower) {
            report.fault(&entry.key, "not a valid header name");
        } else if !seen.insert(lower) {
            report.fault(&entry.key, "duplicate header; keep one");
        }
        let Some(value) = template(&entry.node, report) else { continue };
        if value.text().contains(|c: char| c.is_control() && c != '\t') {
            report
                .fault(&entry.node.location, "a header value must not contain control characters");
        }
        headers.push((entry.name.to_owned(), value));
    }
    Some(headers)
}

fn is_header_name(name: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(is_token)
}
