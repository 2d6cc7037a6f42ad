//! The outcome of a step, limited in size.

use serde_json::Value;

use domain::choice;

/// Limit on each text of an outcome. Of a longer one, the middle is left out: a model or a person
/// can still read the rest, but no command gets it.
pub const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;

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
    /// True if a text was too long and is not whole.
    pub is_cut: bool,
    /// True if it is unknown whether the attempt changed something: another one could do it a
    /// second time.
    pub is_unclear: bool,
}

impl StepOutcome {
    pub fn new(status: Status) -> StepOutcome {
        let (output, stderr) = (String::new(), String::new());
        let (exit_code, json, tokens) = (None, None, None);
        let (is_cut, is_unclear) = (false, false);
        StepOutcome { status, output, stderr, exit_code, json, tokens, is_cut, is_unclear }
    }

    /// Truncates the outcome's texts and parses its JSON, if any.
    pub(super) fn kept(mut self) -> StepOutcome {
        let is_json = |text: &str| text.starts_with('{') || text.starts_with('[');
        if self.json.is_none() && is_json(self.output.trim_start()) {
            self.json = Some(&self.output)
                .filter(|output| output.len() <= OUTPUT_BYTES_MAX)
                .and_then(|output| serde_json::from_str(output).ok());
        }
        self.is_cut |= self.output.len().max(self.stderr.len()) > OUTPUT_BYTES_MAX;
        self.output = cut(self.output);
        self.stderr = cut(self.stderr);
        self
    }
}

/// Keeps the start and the end of text that is too long.
fn cut(text: String) -> String {
    if text.len() <= OUTPUT_BYTES_MAX {
        return text;
    }
    let half = OUTPUT_BYTES_MAX / 2;
    let (head, tail) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half));
    format!("{}\n… {} bytes omitted …\n{}", &text[..head], tail - head, &text[tail..])
}
