//! The words for what a run does.

use std::time::Duration;

use super::super::moment::SeenCall;
use crate::output::status::with_code;
use crate::output::{milliseconds, plain};

/// Names an attempt at a state.
pub(super) fn name(state: &str, provider: Option<&str>, attempt: u32) -> String {
    let provider = provider.map(|it| format!(" ({it})")).unwrap_or_default();
    let attempt = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
    plain(&format!("{state}{provider}{attempt}"))
}

/// Describes a call: its tool, what it touches, and how it ended.
pub(super) fn call_words(call: &SeenCall) -> String {
    // The built-in tools need no server's name.
    let tool = match call.server.as_str() {
        "workspace" => call.tool.clone(),
        server => format!("{server}:{}", call.tool),
    };
    let target = call.target.as_ref().map(|target| format!(" {target}")).unwrap_or_default();
    let outcome = match (call.is_over(), &call.error_code) {
        (false, _) => "running".to_owned(),
        (true, None) if call.status == "success" => "ok".to_owned(),
        (true, code) => with_code(&call.status, code.as_deref()),
    };
    let took = call.duration_ms.map(|took| format!(", {}", milliseconds(Some(took))));
    plain(&format!("{tool}{target}  {outcome}{}", took.unwrap_or_default()))
}

pub(super) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

pub(super) fn dollars(cost: f64) -> String {
    format!("${cost:.4}")
}

pub(super) fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f32()),
        seconds => format!("{}:{:02} min", seconds / 60, seconds % 60),
    }
}
