//! Reads a folder's file that the user has trusted: every key takes effect, applied to the user's
//! own configuration. Restrictions still only narrow, so trusting a file never opens what the
//! user's own lists lock.

use super::super::members::Section;
use super::super::report::Report;
use super::super::source;
use super::super::{Config, Faults, ParsedConfig, ServerConfig, keys, profile};
use super::{section, server, top};
use text::document::{Location, Node, Syntax};

pub(in crate::config) fn trusted(text: &str, own: Config) -> Result<ParsedConfig, Faults> {
    let mut report = Report::default();
    let mut config = own;
    match source::tree(text) {
        Ok(tree) => read(&mut config, &Node::root(&tree, Syntax::Json), &mut report),
        Err(unreadable) => report.fault(&Location::root(unreadable.mark), unreadable.message),
    }
    let notes = report.finish()?;
    Ok(ParsedConfig { config, notes })
}

fn read(config: &mut Config, root: &Node<'_>, report: &mut Report) {
    let Some(top) = Section::open(root, &keys::TOP, report) else { return };
    let own = config.clone();
    top::network(config, &top, report);
    top::numbers(config, &top, report);
    servers(config, &top, report);
    for plugin in top.read("plugins", report, section::plugins).unwrap_or_default() {
        put(&mut config.plugins, plugin, |plugin| &plugin.name);
    }
    // Unless set explicitly, the built-in tools are enabled only if nothing else is configured.
    if own.workspace.enabled == own.is_bare() {
        config.workspace.enabled = config.is_bare();
    }
    let mut hidden = std::mem::take(&mut config.redact);
    top::sections(config, &top, report);
    if let Some(entry) = top.get("redact") {
        section::check_together(&own, &config.redact, &entry.node, report);
    }
    hidden.add(std::mem::take(&mut config.redact));
    config.redact = hidden;
    for profile in profile::all(&top, &profile::known(config), report) {
        put(&mut config.profiles, profile, |profile| &profile.name);
    }
}

fn servers(config: &mut Config, top: &Section<'_>, report: &mut Report) {
    let Some(entry) = top.get("mcpServers") else { return };
    let mut given: Vec<ServerConfig> = Vec::new();
    server::each(&entry.node, report, &mut |name, members, report| {
        given.extend(match config.server(name) {
            Some(own) => server::laid_over(own, members, config.listen, report),
            None => server::server(name, members, config.listen, report),
        });
    });
    for server in given {
        put(&mut config.servers, server, |server| &server.name);
    }
    if config.servers.len() > server::SERVERS_MAX {
        let fault = format!(
            "too many servers: at most {} are allowed, including your own",
            server::SERVERS_MAX
        );
        report.fault(&entry.node.location, fault);
    }
}

/// Replaces the item of the same name, or appends.
fn put<T>(list: &mut Vec<T>, item: T, name: impl Fn(&T) -> &String) {
    match list.iter_mut().find(|known| name(known) == name(&item)) {
        Some(known) => *known = item,
        None => list.push(item),
    }
}
