//! From the tree of a text to the checked values. Every reader goes on after a fault, so that one
//! reading finds them all; what it then returns is never used.

use std::net::SocketAddr;
use std::num::NonZeroU32;

mod found;
mod node;
mod profile;
mod report;
mod scalar;
mod section;
mod server;
mod transport;
mod trusted;

pub(super) use self::found::found;
use self::node::{Members, Node, Place};
use self::report::Report;
pub use self::scalar::{duration, name_fault};
pub(super) use self::trusted::trusted;
use super::source::Source;
use super::{Config, Faults, Parsed, keys};

pub(super) fn parse(text: &str) -> Result<Parsed, Faults> {
    let source = Source::new(text);
    let mut report = Report::default();
    let config = match source.tree() {
        Ok(tree) => config(&Node::root(&tree), &mut report),
        Err(unreadable) => {
            report.fault(&Place::root(unreadable.at), unreadable.message);
            Config::default()
        }
    };
    let notes = report.finish(&source)?;
    Ok(Parsed { config, notes })
}

fn config(root: &Node<'_>, report: &mut Report) -> Config {
    let mut config = Config::default();
    let Some(top) = Members::open(root, &keys::TOP, report) else {
        return config;
    };
    network(&mut config, &top, report);
    let servers = top.get("mcpServers");
    config.servers =
        servers.map(|entry| server::all(&entry.node, config.listen, report)).unwrap_or_default();
    numbers(&mut config, &top, report);
    set(&mut config.plugins, top.read("plugins", report, section::plugins));
    config.workspace.enabled = config.is_bare();
    sections(&mut config, &top, report);
    config.profiles = profile::all(&top, &profile::known(&config), report);
    config
}

fn network(config: &mut Config, top: &Members<'_>, report: &mut Report) {
    set(&mut config.listen, top.read("listen", report, scalar::listen));
    note_reachable(top, config.listen, report);
    give(&mut config.allowed_hosts, top.read("allowed_hosts", report, scalar::hosts));
    give(&mut config.allowed_origins, top.read("allowed_origins", report, scalar::origins));
}

fn numbers(config: &mut Config, top: &Members<'_>, report: &mut Report) {
    // For editors, but a string all the same.
    top.text("$schema", report);
    set(&mut config.tools_limit, top.count("tools_limit", report));
    set(&mut config.tool_response_limit, top.count("tool_response_limit", report));
    set(&mut config.call_timeout, top.span("call_timeout", report));
    set(&mut config.connect_timeout, top.span("connect_timeout", report));
    set(&mut config.shutdown_timeout, top.span("shutdown_timeout", report));
    set(&mut config.refresh_interval, top.span("refresh_interval", report));
    set(&mut config.rate_limit, top.count("rate_limit", report).map(NonZeroU32::new));
}

fn sections(config: &mut Config, top: &Members<'_>, report: &mut Report) {
    section::workspace(&mut config.workspace, top, report);
    section::intent(&mut config.intent, top, report);
    section::ledger(&mut config.ledger, top, report);
    section::redact(&mut config.redact, top, report);
    section::telemetry(&mut config.telemetry, top, report);
    set(&mut config.store, top.read("store", report, section::store));
}

fn note_reachable(top: &Members<'_>, listen: SocketAddr, report: &mut Report) {
    if let Some(entry) = top.get("listen")
        && !listen.ip().is_loopback()
    {
        let own_hosts = top.get("allowed_hosts").is_some();
        let hint = if own_hosts { "" } else { "; name the host they use in 'allowed_hosts'" };
        report.note(&entry.key, format!("other machines can reach this address{hint}"));
    }
}

/// Keeps the default where the file says nothing.
fn set<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

/// The same for what has no default.
fn give<T>(slot: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *slot = value;
    }
}
