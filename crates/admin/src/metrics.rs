//! `GET /metrics`: the gate's counters as Prometheus text (format 0.0.4).

use std::fmt::Display;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use domain::policy::Lock;
use domain::tool::Class;
use gateway::Gateway;
use gateway::metrics::{DURATION_BUCKETS, Metrics};

use crate::Admin;

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn show(State(admin): State<Admin>) -> Response {
    let mut page = Page::default();
    page.gauge("process_start_time_seconds", "Start time of the gate, in Unix time.");
    page.sample("", &[], admin.started_at.as_millisecond() as f64 / 1000.0);
    page.gauge("countersign_build_info", "Version of the gate.");
    page.sample("", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    calls(&mut page, admin.gateway.metrics());
    durations(&mut page, admin.gateway.metrics());
    servers(&mut page, &admin.gateway);
    ledger(&mut page, &admin.gateway.store().ledger());
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], page.text).into_response()
}

fn calls(page: &mut Page, metrics: &Metrics) {
    page.counter("countersign_calls_total", "Ended calls, by outcome.");
    for calls in metrics.calls() {
        let class = calls.class.map_or("", Class::as_str);
        let labels = [("server", &*calls.server), ("class", class), ("outcome", calls.status)];
        page.sample("", &labels, calls.count);
    }
    page.counter("countersign_refusals_total", "Calls refused or failed, by error code.");
    for (code, count) in metrics.codes() {
        page.sample("", &[("code", code.as_str())], count);
    }
    page.gauge("countersign_mcp_sessions", "Open sessions of MCP clients.");
    page.sample("", &[], metrics.sessions());
}

fn durations(page: &mut Page, metrics: &Metrics) {
    let name = "countersign_call_duration_seconds";
    page.head(name, "histogram", "Duration of forwarded calls.");
    for durations in metrics.durations() {
        let class = durations.class.as_str();
        let mut upto = 0;
        for (place, count) in durations.counts.iter().enumerate() {
            upto += count;
            let end = DURATION_BUCKETS.get(place);
            let end = end.map_or("+Inf".to_owned(), |end| end.as_secs_f64().to_string());
            page.sample("_bucket", &[("class", class), ("le", &end)], upto);
        }
        page.sample("_sum", &[("class", class)], durations.sum.as_secs_f64());
        page.sample("_count", &[("class", class)], upto);
    }
}

fn servers(page: &mut Page, gateway: &Gateway) {
    let catalog = gateway.catalog();
    page.gauge("countersign_upstream_state", "1 for the current state of each server.");
    for server in catalog.servers() {
        page.sample("", &[("server", &server.name), ("state", server.state_word())], 1);
    }
    let locks: Vec<Lock> =
        catalog.servers().flat_map(|server| server.tools().map(|(_, lock)| lock)).collect();
    page.gauge("countersign_tools", "Tools by lock status.");
    for word in Lock::words() {
        let count = locks.iter().filter(|lock| lock.as_str() == word).count();
        page.sample("", &[("status", word)], count);
    }
}

fn ledger(page: &mut Page, ledger: &store::LedgerHealth) {
    page.counter("countersign_ledger_entries_total", "Entries committed to the ledger.");
    page.sample("", &[], ledger.committed);
    page.gauge("countersign_ledger_unfiled", "Entries committed but not yet signed and filed.");
    page.sample("", &[], ledger.committed.saturating_sub(ledger.filed));
    page.gauge("countersign_ledger_queue", "Entries in memory that wait to be written.");
    page.sample("", &[], ledger.queue);
    page.counter("countersign_ledger_failures_total", "Failed attempts to write the ledger.");
    page.sample("", &[], ledger.failures);
    page.gauge("countersign_ledger_failing", "1 while the ledger cannot be written.");
    page.sample("", &[], u8::from(ledger.fault.is_some()));
}

/// The text so far, and the metric that samples belong to.
#[derive(Default)]
struct Page {
    text: String,
    metric: &'static str,
}

impl Page {
    fn counter(&mut self, metric: &'static str, help: &str) {
        self.head(metric, "counter", help);
    }

    fn gauge(&mut self, metric: &'static str, help: &str) {
        self.head(metric, "gauge", help);
    }

    fn head(&mut self, metric: &'static str, kind: &str, help: &str) {
        self.metric = metric;
        self.text.push_str(&format!("# HELP {metric} {help}\n# TYPE {metric} {kind}\n"));
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(self.metric);
        self.text.push_str(suffix);
        for (place, (name, value)) in labels.iter().enumerate() {
            self.text.push(if place == 0 { '{' } else { ',' });
            self.text.push_str(&format!("{name}=\"{}\"", escaped(value)));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.text.push_str(&format!("{end} {value}\n"));
    }
}

/// Escapes the characters that have a meaning inside quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_stay_within_their_quotes() {
        let mut page = Page::default();
        page.gauge("m", "What it is.");
        page.sample("", &[("a", "x\"} 1\n\\"), ("b", "")], 0.25);
        page.sample("_sum", &[], 7);
        let expected = "# HELP m What it is.\n# TYPE m gauge\n\
            m{a=\"x\\\"} 1\\n\\\\\",b=\"\"} 0.25\nm_sum 7\n";
        assert_eq!(page.text, expected);
    }
}
