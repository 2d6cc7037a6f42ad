//! The sections of the file, other than servers. Each reader applies the file's values to the given
//! defaults.

use serde_json::{Map, Value};

use super::super::members::{Section, entries, set};
use super::super::report::Report;
use super::super::{
    AnchorConfig, Config, Durability, IntentDeclaration, Ledger, OnFailure, OtlpProtocol, Payloads,
    PluginConfig, Redact, SearchConfig, SecretsKey, Telemetry, TlsFiles, WorkspaceConfig, keys,
    scalar, transport,
};
use redact::Redactor;
use text::document::{Content, Member, Node, ScalarKind};

const SHA256_HEX_CHARS: usize = 64;

pub(super) fn plugins(node: &Node<'_>, report: &mut Report) -> Option<Vec<PluginConfig>> {
    let entries = entries(node, report)?;
    Some(entries.iter().filter_map(|entry| plugin(entry, report)).collect())
}

pub(super) fn tls(tls: &mut Option<TlsFiles>, top: &Section<'_>, report: &mut Report) {
    let Some(members) = top.section("tls", report) else { return };
    match (members.text("cert", report), members.text("key", report)) {
        (Some(cert), Some(key)) => *tls = Some(TlsFiles { cert, key }),
        _ => report.fault(&members.location, "needs 'cert' and 'key', both PEM files"),
    }
}

fn plugin(entry: &Member<'_>, report: &mut Report) -> Option<PluginConfig> {
    check_name(entry, report);
    let members = Section::open(&entry.node, &keys::PLUGIN, report)?;
    Some(PluginConfig {
        name: entry.name.to_owned(),
        path: members.text("path", report),
        config: members.read("config", report, json_object).unwrap_or_default(),
        env: members.read("env", report, transport::env).unwrap_or_default(),
        sha256: members.read("sha256", report, sha256),
    })
}

pub(in crate::config) fn check_name(entry: &Member<'_>, report: &mut Report) {
    if let Some(fault) = scalar::name_fault(entry.name) {
        report.fault(&entry.key, fault);
    }
}

fn sha256(node: &Node<'_>, report: &mut Report) -> Option<String> {
    let text = report.take(node.text())?;
    let hex = text.len() == SHA256_HEX_CHARS && text.chars().all(|c| c.is_ascii_hexdigit());
    if !hex {
        report.fault(&node.location, "expected a SHA-256 of 64 hex digits");
    }
    hex.then(|| text.to_ascii_lowercase())
}

pub(super) fn workspace(workspace: &mut WorkspaceConfig, top: &Section<'_>, report: &mut Report) {
    let Some(members) = top.section("workspace", report) else { return };
    set(&mut workspace.enabled, members.flag("enabled", report));
    set(&mut workspace.root, members.text("root", report));
    set(&mut workspace.write, members.flag("write", report));
    set(&mut workspace.shell, members.flag("shell", report));
    set(&mut workspace.allow_outside, members.flag("allow_outside", report));
}

pub(super) fn intent(intent: &mut IntentDeclaration, top: &Section<'_>, report: &mut Report) {
    let Some(members) = top.section("intent_declaration", report) else { return };
    let strict = members.flag("strict_server_validation", report);
    set(&mut intent.strict_server_validation, strict);
}

pub(super) fn search(search: &mut SearchConfig, top: &Section<'_>, report: &mut Report) {
    let Some(members) = top.section("search", report) else { return };
    set(&mut search.learned, members.flag("learned", report));
}

pub(super) fn ledger(ledger: &mut Ledger, top: &Section<'_>, report: &mut Report) {
    let Some(members) = top.section("ledger", report) else { return };
    set(&mut ledger.durability, members.choice("durability", Durability::named, report));
    set(&mut ledger.payloads, members.choice("payloads", Payloads::named, report));
    set(&mut ledger.on_failure, members.choice("on_failure", OnFailure::named, report));
    let activity_days = members.count("activity_retention_days", report);
    set(&mut ledger.activity_retention_days, activity_days);
    set(&mut ledger.max_records, members.count("max_records", report));
    set(&mut ledger.max_size_mb, members.count("max_size_mb", report));
    let receipt_days = members.count("receipt_retention_days", report);
    set(&mut ledger.receipt_retention_days, receipt_days);
    if let Some(anchor) = members.read("anchor", report, anchor) {
        ledger.anchor = Some(anchor);
    }
}

fn anchor(node: &Node<'_>, report: &mut Report) -> Option<AnchorConfig> {
    let found = match &node.tree.content {
        Content::List(_) => AnchorConfig::Command(scalar::texts(node, report)?),
        _ => AnchorConfig::File(report.take(node.text())?.to_owned()),
    };
    let is_empty = match &found {
        AnchorConfig::File(path) => path.is_empty(),
        AnchorConfig::Command(words) => words.first().is_none_or(String::is_empty),
    };
    if is_empty {
        report.fault(&node.location, "expected a file, or a command and its arguments");
    }
    (!is_empty).then_some(found)
}

pub(super) fn redact(redact: &mut Redact, top: &Section<'_>, report: &mut Report) {
    let Some(members) = top.section("redact", report) else { return };
    set(&mut redact.keys, members.texts("keys", report));
    set(&mut redact.patterns, members.read("patterns", report, patterns));
}

fn patterns(node: &Node<'_>, report: &mut Report) -> Option<Vec<String>> {
    let patterns = scalar::texts(node, report)?;
    if let Err(faults) = Redactor::new(&[], &patterns) {
        for fault in faults {
            report.fault(&node.location, fault.to_string());
        }
        return None;
    }
    Some(patterns)
}

/// Checks that the patterns of two files can still be built into one redaction.
pub(super) fn check_together(own: &Config, more: &Redact, node: &Node<'_>, report: &mut Report) {
    let patterns = [own.redact.patterns.as_slice(), &more.patterns].concat();
    for fault in Redactor::new(&[], &patterns).err().into_iter().flatten() {
        report.fault(&node.location, format!("combined with your own patterns: {fault}"));
    }
}

pub(super) fn secrets(key: &mut SecretsKey, top: &Section<'_>, report: &mut Report) {
    let Some(members) = top.section("secrets", report) else { return };
    set(key, members.read("key", report, secrets_key));
}

fn secrets_key(node: &Node<'_>, report: &mut Report) -> Option<SecretsKey> {
    let Content::Map(_) = &node.tree.content else {
        let word = report.take(node.text())?;
        let named = SecretsKey::named(word);
        return named.or_else(|| scalar::no_choice(node, word, SecretsKey::NAMES, report));
    };
    let members = Section::open(node, &keys::KEY_COMMAND, report)?;
    let words = members.texts("command", report).unwrap_or_default();
    let program = words.first().map(String::as_str).unwrap_or_default();
    if program.is_empty() || (program.contains('/') && !program.starts_with('/')) {
        let fault =
            "expected \"command\" with a program in PATH or an absolute path, and its arguments";
        report.fault(&node.location, fault);
        return None;
    }
    Some(SecretsKey::Command(words))
}

pub(super) fn telemetry(telemetry: &mut Telemetry, top: &Section<'_>, report: &mut Report) {
    let Some(members) = top.section("telemetry", report) else { return };
    set(&mut telemetry.exporter, members.read("exporter", report, exporter));
    set(&mut telemetry.service_name, members.text("service_name", report));
    set(&mut telemetry.protocol, members.choice("protocol", OtlpProtocol::named, report));
}

fn exporter(node: &Node<'_>, report: &mut Report) -> Option<String> {
    let text = report.take(node.text())?;
    if !text.is_empty() && !transport::is_http_url(text) {
        report.fault(&node.location, "expected an http or https URL, or \"\"");
    }
    Some(text.to_owned())
}

fn json_object(node: &Node<'_>, report: &mut Report) -> Option<Map<String, Value>> {
    let entries = entries(node, report)?;
    Some(entries.iter().map(|entry| (entry.name.to_owned(), json(&entry.node, report))).collect())
}

/// Converts a value to JSON. The depth of the tree is limited, and so is the recursion.
fn json(node: &Node<'_>, report: &mut Report) -> Value {
    match &node.tree.content {
        Content::Map(_) => json_object(node, report).map(Value::Object).unwrap_or_default(),
        Content::List(_) => {
            let items = report.take(node.items("a list"));
            items.into_iter().flatten().map(|item| json(&item, report)).collect()
        }
        Content::Scalar(scalar) => {
            if scalar.kind == ScalarKind::Number(None) {
                report.fault(&node.location, "not a number that JSON can represent");
            }
            node.tree.to_json()
        }
    }
}
