//! The outcome of a step, limited in size.

use serde_json::Value;

use domain::choice;

/// Limit on each text of an outcome: as much as a model or a person can still read.
const KEPT_MAX_BYTES: usize = 1024 * 1024;

choice! {
    Status {
        Success = "success",
        Failure = "failure",
        TimedOut = "timeout",
        Cancelled = "cancelled",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepOutcome {
    pub status: Status,
    pub output: String,
    pub stderr: String,
    pub exit_code: Option<i32>,
    /// The value that `JSON.f` reads; if `None`, the output itself where it is JSON.
    pub json: Option<Value>,
    pub tokens: Option<u64>,
}

impl StepOutcome {
    pub fn new(status: Status) -> StepOutcome {
        let (output, stderr) = (String::new(), String::new());
        StepOutcome { status, output, stderr, exit_code: None, json: None, tokens: None }
    }

    /// Truncates the outcome's texts and parses its JSON, if any.
    pub(super) fn kept(mut self) -> StepOutcome {
        let is_json = |text: &str| text.starts_with('{') || text.starts_with('[');
        if self.json.is_none() && is_json(self.output.trim_start()) {
            self.json = Some(&self.output)
                .filter(|output| output.len() <= KEPT_MAX_BYTES)
                .and_then(|output| serde_json::from_str(output).ok());
        }
        self.output = cut(self.output);
        self.stderr = cut(self.stderr);
        self
    }
}

/// Keeps the start and the end of text that is too long.
fn cut(text: String) -> String {
    if text.len() <= KEPT_MAX_BYTES {
        return text;
    }
    let half = KEPT_MAX_BYTES / 2;
    let (head, tail) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half));
    format!("{}\n… {} bytes omitted …\n{}", &text[..head], tail - head, &text[tail..])
}
