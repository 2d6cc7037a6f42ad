//! What an agent program says of its work, line by line: text, tokens, cost, faults, and the calls
//! of its own tools, by which a way past the gate is noticed. Lines that are no events are passed
//! over. Exit codes are not looked at here; they mislead.

use serde_json::Value;

use crate::agent::program::Provider;
use crate::agent::report::{AgentEvent, AgentFailure, AgentReport, ReportBuilder};
use crate::agent::{claude, codex, gemini, opencode};

/// A longer line is passed over. Tool results are in these lines, and ours may have some MiB.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads one run's lines.
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

    /// What it all came to, once the output is at its end.
    pub fn end(self) -> Result<AgentReport, AgentFailure> {
        self.report.finish()
    }
}

#[cfg(test)]
mod tests;
