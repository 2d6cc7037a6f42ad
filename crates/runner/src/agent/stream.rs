//! Reads an agent program's output line by line: text, tokens, cost, errors, and the calls of its
//! own tools, which reveal a bypass of the gate. Lines that are not events are skipped. Exit codes
//! are ignored here; they mislead.

use serde_json::Value;

use crate::agent::program::Provider;
use crate::agent::report::{AgentEvent, AgentFailure, AgentReport, ReportBuilder};
use crate::agent::{claude, codex, gemini, opencode};

/// Longer lines are skipped. These lines hold tool results, and ours may have some MiB.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads the lines of one run.
#[derive(Debug)]
pub struct Stream {
    provider: Provider,
    report: ReportBuilder,
}

impl Stream {
    pub fn new(provider: Provider) -> Stream {
        Stream { provider, report: ReportBuilder::default() }
    }

    pub fn line(&mut self, line: &str) -> Vec<AgentEvent> {
        if line.len() > LINE_BYTES_MAX {
            return Vec::new();
        }
        let Ok(event @ Value::Object(_)) = serde_json::from_str::<Value>(line) else {
            return Vec::new();
        };
        match self.provider {
            Provider::Claude => claude::line(&event, &mut self.report),
            Provider::Gemini => gemini::line(&event, &mut self.report),
            Provider::Codex => codex::line(&event, &mut self.report),
            Provider::OpenCode => opencode::line(&event, &mut self.report),
        }
    }

    /// Returns the report, once the output has ended.
    pub fn end(self) -> Result<AgentReport, AgentFailure> {
        self.report.finish()
    }
}

#[cfg(test)]
mod denials;
#[cfg(test)]
mod tests;
