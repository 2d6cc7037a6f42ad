//! Values with placeholders: texts, arguments, variables and headers. The values of variables and
//! headers never appear in messages: they may be secrets.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::kind::Shape;
use super::members::entries;
use super::report::Report;
use super::secret;
use super::template::ConfigTemplate;
use text::document::Node;

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

/// A secret text.
pub(super) const TEMPLATE: Shape<ConfigTemplate> = Shape {
    words: "string, `${env:NAME}` and `${secret:NAME}` allowed",
    read: template,
    show: |value| Some(json!(secret::named("secret", value.text()))),
};

/// The arguments of a program.
pub(super) const ARGUMENTS: Shape<Vec<ConfigTemplate>> = Shape {
    words: "list of strings, `${env:NAME}` and `${secret:NAME}` allowed",
    read: |node, report| {
        let items = report.take(node.items("a list of strings"))?;
        Some(items.filter_map(|item| template(&item, report)).collect())
    },
    show: |value| Some(json!(secret::args(value))),
};

/// The environment variables of a program.
pub(super) const VARIABLES: Shape<Vec<(String, ConfigTemplate)>> = Shape {
    words: "names to strings, `${env:NAME}` and `${secret:NAME}` allowed",
    read: variables,
    show: |value| {
        let shown = |(name, value): &(String, ConfigTemplate)| {
            (name.clone(), Value::from(secret::named(name, value.text())))
        };
        Some(value.iter().map(shown).collect())
    },
};

/// The headers of a request.
pub(super) const HEADERS: Shape<Vec<(String, ConfigTemplate)>> =
    Shape { words: VARIABLES.words, read: headers, show: VARIABLES.show };

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

fn variables(node: &Node<'_>, report: &mut Report) -> Option<Vec<(String, ConfigTemplate)>> {
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
