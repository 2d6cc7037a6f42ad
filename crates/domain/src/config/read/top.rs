//! The top-level keys of the file, other than servers, plugins and profiles. Each reader applies
//! the file's values to the given config.

use std::num::NonZeroU32;

use super::super::members::{Section, give, set};
use super::super::report::Report;
use super::super::{Config, scalar};
use super::section;

pub(super) fn network(config: &mut Config, top: &Section<'_>, report: &mut Report) {
    set(&mut config.listen, top.read("listen", report, scalar::listen));
    section::tls(&mut config.tls, top, report);
    set(&mut config.behind_proxy, top.flag("behind_proxy", report));
    set(&mut config.agent_token, top.flag("agent_token", report));
    note_reachable(top, config, report);
    give(&mut config.allowed_hosts, top.read("allowed_hosts", report, scalar::hosts));
    give(&mut config.allowed_origins, top.read("allowed_origins", report, scalar::origins));
}

pub(super) fn numbers(config: &mut Config, top: &Section<'_>, report: &mut Report) {
    // Only editors use it, but it must be a string.
    top.text("$schema", report);
    set(&mut config.tools_limit, top.count("tools_limit", report));
    set(&mut config.tool_response_limit, top.count("tool_response_limit", report));
    set(&mut config.call_timeout, top.span("call_timeout", report));
    set(&mut config.connect_timeout, top.span("connect_timeout", report));
    set(&mut config.shutdown_timeout, top.span("shutdown_timeout", report));
    set(&mut config.refresh_interval, top.span("refresh_interval", report));
    set(&mut config.rate_limit, top.count("rate_limit", report).map(NonZeroU32::new));
}

pub(super) fn sections(config: &mut Config, top: &Section<'_>, report: &mut Report) {
    section::workspace(&mut config.workspace, top, report);
    section::intent(&mut config.intent, top, report);
    section::search(&mut config.search, top, report);
    section::ledger(&mut config.ledger, top, report);
    section::redact(&mut config.redact, top, report);
    section::secrets(&mut config.secrets_key, top, report);
    section::telemetry(&mut config.telemetry, top, report);
}

/// Notes the address that other machines can reach; `serve` refuses it without TLS.
fn note_reachable(top: &Section<'_>, config: &Config, report: &mut Report) {
    let Some(entry) = top.get("listen").filter(|_| !config.listen.ip().is_loopback()) else {
        return;
    };
    let mut note = "other machines can reach this address".to_owned();
    if !config.is_protected() {
        note.push_str("; it is refused without 'tls' or 'behind_proxy'");
    }
    if top.get("allowed_hosts").is_none() {
        note.push_str("; add the host name they use to 'allowed_hosts'");
    }
    report.note(&entry.key, note);
}
