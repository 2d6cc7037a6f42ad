//! Applies a `./countersign.json` that the user has trusted to the user's own configuration.

use super::declare::Section;
use super::fault::Faults;
use super::members::{Members, put};
use super::profile;
use super::report::Report;
use super::server::{self, ServerConfig};
use super::source;
use super::top::{Config, ParsedConfig};
use text::document::{Location, Node, Syntax};

#[cfg(test)]
mod tests;

/// Applies a trusted file to the user's own configuration as if it were the user's own. Its values
/// replace existing ones: key by key; servers, plugins and profiles by name. As with an untrusted
/// file, tool lists narrow and redaction is added. A file with faults changes nothing. The notes
/// refer to the trusted file.
pub fn lay_over(own: Config, trusted: &str) -> Result<ParsedConfig, Faults> {
    let mut report = Report::default();
    let mut config = own;
    match source::tree(trusted) {
        Ok(tree) => read(&mut config, &Node::root(&tree, Syntax::Json), &mut report),
        Err(unreadable) => report.fault(&Location::root(unreadable.mark), unreadable.message),
    }
    let notes = report.finish()?;
    Ok(ParsedConfig { config, notes })
}

fn read(config: &mut Config, root: &Node<'_>, report: &mut Report) {
    let Some(top) = Members::open(root, Config::TABLE, report) else { return };
    let has_default_workspace = config.has_default_workspace();
    let own_redact = std::mem::take(&mut config.redact);
    config.set(&top, report);
    servers(config, &top, report);
    if has_default_workspace {
        config.set_default_workspace(&top);
    }
    if let Some(entry) = top.get("redact") {
        own_redact.check_together(&config.redact, &entry.node, report);
    }
    let more = std::mem::replace(&mut config.redact, own_redact);
    config.redact.add(more);
    for profile in profile::all(&top, &profile::known(config), report) {
        put(&mut config.profiles, profile, |profile| &profile.name);
    }
}

fn servers(config: &mut Config, top: &Members<'_>, report: &mut Report) {
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
