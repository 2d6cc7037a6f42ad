//! Turns the tree of a text into checked values. Every reader continues after a fault, so that one
//! pass finds them all; its result is then discarded.

mod found;
mod oauth;
mod section;
mod server;
mod top;
mod trusted;

pub(super) use self::found::found;
pub(super) use self::section::check_name;
pub(super) use self::trusted::trusted;
use super::members::{Section, set};
use super::report::Report;
pub use super::scalar::name_fault;
use super::{Config, Faults, ParsedConfig, keys, profile, source};
use text::document::{Location, Node, Syntax};

/// Parses JSON with comments and trailing commas into a checked configuration.
pub fn parse(text: &str) -> Result<ParsedConfig, Faults> {
    let mut report = Report::default();
    let config = match source::tree(text) {
        Ok(tree) => config(&Node::root(&tree, Syntax::Json), &mut report),
        Err(unreadable) => {
            report.fault(&Location::root(unreadable.mark), unreadable.message);
            Config::default()
        }
    };
    let notes = report.finish()?;
    Ok(ParsedConfig { config, notes })
}

fn config(root: &Node<'_>, report: &mut Report) -> Config {
    let mut config = Config::default();
    let Some(top) = Section::open(root, &keys::TOP, report) else {
        return config;
    };
    top::network(&mut config, &top, report);
    let servers = top.get("mcpServers");
    config.servers =
        servers.map(|entry| server::all(&entry.node, config.listen, report)).unwrap_or_default();
    top::numbers(&mut config, &top, report);
    set(&mut config.plugins, top.read("plugins", report, section::plugins));
    config.workspace.enabled = config.is_bare();
    top::sections(&mut config, &top, report);
    config.profiles = profile::all(&top, &profile::known(&config), report);
    config
}
