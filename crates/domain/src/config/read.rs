//! Turns the tree of a text into checked values. Every reader continues after a fault, so that one
//! pass finds them all; its result is then discarded.

use super::declare::Section;
use super::fault::Faults;
use super::members::Members;
use super::report::Report;
use super::top::{Config, ParsedConfig};
use super::{profile, server, source};
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
    let Some(top) = Members::open(root, Config::TABLE, report) else {
        return config;
    };
    config.set(&top, report);
    if let Some(entry) = top.get("mcpServers") {
        config.servers = server::all(&entry.node, config.listen, report);
    }
    config.set_default_workspace(&top);
    config.profiles = profile::all(&top, &profile::known(&config), report);
    config
}
