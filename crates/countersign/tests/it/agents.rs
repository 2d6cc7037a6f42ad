//! The agent programs, each against a scripted model. In a workflow, everything they do goes through
//! the gate, and leaves record, receipt, span and log line; connected by a person, they find and use
//! the gate's tools in addition to their own. A real program takes seconds to start, and four of them
//! the whole machine: each has its run here, and most tests work with a scripted agent.

mod coexistence;
mod connected;
mod ending;
mod faults;
mod servers;
pub(crate) mod stage;
mod versions;
mod walk;

use serde_json::{Value, json};
use testkit::foreign;
use testkit::model::{ModelCall, Turn};
use testkit::otlp::Collector;
use testkit::program::{stderr, stdout};

use self::stage::{PROVIDERS, Stage};
use crate::ledger::records_when;

pub(crate) fn say(text: &str) -> Turn {
    Turn::Say(text.to_owned())
}

pub(crate) fn ours(tool: &str, arguments: Value) -> Turn {
    Turn::Call(vec![ModelCall::ours(tool, arguments)])
}

/// Read and Bash through the gate: a record with its receipt, a span under the step's, a log line.
pub(crate) async fn works_through_the_gate(provider: &str) {
    let collector = Collector::grpc().await;
    let turns = [
        ours("Read", json!({"path": "a.txt"})),
        ours("Bash", json!({"command": "echo from the shell > made.txt"})),
        say("all done"),
    ];
    let stage = Stage::unprobed(provider, turns).await;
    let flow = stage.flow(&json!({"enable": true}));
    let output = stage.run(&flow, &["-o", "json", "--otel-exporter", &collector.url]).await;
    let told = format!("{}\n{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(!told.contains("coexistence"), "{told}");
    let asked = stage.model.turns()[0].body.to_string();
    assert!(!asked.contains("Use only MCP tools"), "{asked}");
    let ran: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let step = &ran["steps"][0];
    assert_eq!(step["output"], "all done", "{told}");
    assert_eq!((&step["isolation"], &step["calls"]), (&json!("full"), &json!(2)), "{told}");
    assert!(step["tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{told}");
    let made = std::fs::read_to_string(stage.workspace().join("made.txt")).unwrap();
    assert_eq!(made, "from the shell\n");
    assert!(stage.model.results()[0].contains("one line"), "{:?}", stage.model.results());
    let probes = told.lines().filter(|line| line.contains(&format!("checking that {provider} ")));
    let is_probed = PROVIDERS.contains(&provider);
    assert_eq!(probes.count(), usize::from(is_probed), "{told}");

    let records = records_when(&stage.home(), |records| records.len() == 2).await;
    for (record, tool) in records.iter().zip(["Read", "Bash"]) {
        assert_eq!((&record["tool"], &record["status"]), (&json!(tool), &json!("success")));
        let name = format!("flow/task/{provider}");
        assert_eq!(record["token"], name, "{record}");
        assert!(record["receipt_id"].is_string(), "{record}");
        let lines: Vec<&str> = told.lines().filter(|line| line.contains("tool call")).collect();
        let line = format!("tool=workspace:{tool}");
        assert_eq!(lines.iter().filter(|it| it.contains(&line)).count(), 1, "{told}");
    }
    let target = json!({"system": "filesystem", "resource": stage.workspace().join("a.txt")});
    assert_eq!(records[0]["action"]["target"], target, "{}", records[0]);

    let spans = collector.spans(5).await;
    let span = |name: &str| {
        let found = spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no span {name} in {spans:#?}"))
    };
    let chain = ["workflow.run", "step.task", "agent.call", "tool.call.Read"];
    for pair in chain.windows(2) {
        assert_eq!(span(pair[1]).parent_id, span(pair[0]).span_id, "{pair:?}");
    }
    assert_eq!(span("tool.call.Bash").parent_id, span("agent.call").span_id);
    assert_eq!(span("agent.call").attributes["provider"], provider);
    assert_eq!(span("tool.call.Read").attributes["tool.source"], "builtin");
    stage.assert_nothing_left().await;
}

async fn real_program_works(provider: &str) {
    if !foreign::are_here_or_skipped() {
        return;
    }
    works_through_the_gate(provider).await;
}

#[tokio::test]
async fn claude_works_through_the_gate() {
    real_program_works("claude").await;
}

#[tokio::test]
async fn gemini_works_through_the_gate() {
    real_program_works("gemini").await;
}

#[tokio::test]
async fn codex_works_through_the_gate() {
    real_program_works("codex").await;
}

#[tokio::test]
async fn opencode_works_through_the_gate() {
    real_program_works("opencode").await;
}

#[test]
fn every_provider_that_starts_a_program_is_here() {
    let known: Vec<&str> = runner::agent::Provider::ALL.iter().map(|it| it.as_str()).collect();
    assert_eq!(known, PROVIDERS);
}
