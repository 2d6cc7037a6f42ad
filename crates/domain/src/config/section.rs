//! The smaller sections of the file.

use serde_json::json;

use super::declare::section;
use super::kind::{Choice, FLAG, Shape, TEXT};
use super::members::Members;
use super::report::Report;
use super::secret;
use super::transport::is_http_url;
use crate::choice;

section! {
    /// The PEM files of the listener's certificate chain and private key.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TlsFiles at "tls", then(check_tls) {
        Restart cert: String = String::new(), TEXT, "PEM file with the certificate chain. Required.";
        Restart key: String = String::new(), TEXT, "PEM file with the private key. Required.";
    }
}

fn check_tls(_: &TlsFiles, members: &Members<'_>, report: &mut Report) {
    let is_text = |name| members.get(name).is_some_and(|entry| entry.node.is_text());
    if !is_text("cert") || !is_text("key") {
        report.fault(&members.location, "needs 'cert' and 'key', both PEM files");
    }
}

section! {
    /// The built-in tools, as the server `workspace`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WorkspaceConfig at "workspace" {
        // As if nothing else were configured; reading a file disables it when something is.
        Hot enabled: bool = true, FLAG,
            "By default true only while no server and no plugin is configured.";
        Hot root: String = ".".to_owned(), TEXT,
            "The folder the tools work in; `/` or the user's home must be named explicitly.";
        Hot write: bool = false, FLAG,
            "Offers `Write` and `Edit` in addition to `Read`, `Glob` and `Grep`.";
        Hot shell: bool = false, FLAG, "Offers `Bash`, which is not confined to the root.";
        Hot allow_outside: bool = false, FLAG,
            "Whether tools may access files outside the root; never the gate's own home.";
    }
}

section! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct IntentDeclaration at "intent_declaration" {
        Hot strict_server_validation: bool = true, FLAG,
            "Refuse a call that declares a milder intent than the tool's annotations; else warn.";
    }
}

section! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SearchConfig at "search" {
        Hot learned: bool = true, FLAG,
            "Count similarity in meaning beside words; see [search.md](search.md).";
    }
}

section! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Telemetry at "telemetry" {
        Restart exporter: String = String::new(), EXPORTER,
            "OTLP endpoint, `http` or `https`; if empty, the one set by `OTEL_*` variables.";
        Restart service_name: String = "countersign".to_owned(), TEXT, "The service name in spans.";
        Restart protocol: OtlpProtocol = OtlpProtocol::Grpc, Choice,
            "The OTLP protocol of the endpoint.";
    }
}

choice! {
    OtlpProtocol { Grpc = "grpc", Http = "http" }
}

const EXPORTER: Shape<String> = Shape {
    words: TEXT.words,
    read: |node, report| {
        let text = report.take(node.text())?;
        if !text.is_empty() && !is_http_url(text) {
            report.fault(&node.location, "expected an http or https URL, or \"\"");
        }
        Some(text.to_owned())
    },
    show: |value| Some(json!(secret::url(value))),
};
