//! The story of a run's steps: what each agent wrote and called, in order, and what commands
//! printed.

use admin::view::{AgentText, StepCall, StepEntry};
use jiff::Zoned;

use crate::command::activity::target;
use crate::output::status::{spoken, with_code};
use crate::output::{cut, local_time, milliseconds, plain};

/// The width of names and targets, which can be of any length; the JSON has them in full.
const WIDTH: usize = 80;

/// Returns the story of each step that has one.
pub(super) fn stories(steps: &[StepEntry], now: &Zoned) -> Vec<String> {
    let story = |step: &StepEntry| {
        let lines = lines(step, now);
        (!lines.is_empty()).then(|| format!("{}\n{}", head(step), lines.join("\n")))
    };
    steps.iter().filter_map(story).collect()
}

fn head(step: &StepEntry) -> String {
    let provider = step.provider.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    let attempt =
        if step.attempt > 1 { format!(", attempt {}", step.attempt) } else { String::new() };
    plain(&format!(
        "step {}: {}{provider}{attempt}, {}",
        step.number,
        step.state,
        spoken(&step.status)
    ))
}

fn lines(step: &StepEntry, now: &Zoned) -> Vec<String> {
    let mut lines: Vec<String> =
        items(step).into_iter().flat_map(|item| item_lines(&item, now)).collect();
    let hidden = step.calls_total.unwrap_or(0).saturating_sub(calls(step).len() as u64);
    if hidden > 0 {
        lines.insert(0, format!("  … {hidden} earlier calls: see 'countersign activity list'"));
    }
    // The output of an agent is its last text.
    let is_told = step.kind == "agent" && !texts(step).is_empty();
    let stdout = step.output.as_ref().and_then(Option::as_deref).filter(|_| !is_told);
    let stderr = step.stderr.as_ref().and_then(Option::as_deref);
    for (name, text) in [("stdout", stdout), ("stderr", stderr)] {
        let text = text.unwrap_or_default().trim_end();
        lines.extend(text.lines().map(|line| format!("  {name} | {}", plain(line))));
    }
    lines
}

/// Something that an agent did.
pub(super) enum Item<'a> {
    Text(&'a AgentText),
    Call(&'a StepCall),
}

impl Item<'_> {
    fn timestamp(&self) -> &str {
        match self {
            Item::Text(text) => &text.timestamp,
            Item::Call(call) => &call.timestamp,
        }
    }
}

/// Returns the texts and calls of a step in the order of their time.
pub(super) fn items(step: &StepEntry) -> Vec<Item<'_>> {
    let mut items: Vec<Item<'_>> = texts(step).iter().map(Item::Text).collect();
    items.extend(calls(step).iter().map(Item::Call));
    items.sort_by(|one, other| one.timestamp().cmp(other.timestamp()));
    items
}

fn texts(step: &StepEntry) -> &[AgentText] {
    step.texts.as_deref().unwrap_or_default()
}

fn calls(step: &StepEntry) -> &[StepCall] {
    step.calls.as_deref().unwrap_or_default()
}

fn item_lines(item: &Item<'_>, now: &Zoned) -> Vec<String> {
    let time = local_time(item.timestamp(), now);
    match item {
        Item::Call(call) => vec![format!("  {time}  {}", call_words(call))],
        Item::Text(text) => {
            let mark = if text.kind == "error" { "!" } else { ">" };
            let mut times = std::iter::once(time.clone())
                .chain(std::iter::repeat(" ".repeat(time.chars().count())));
            let line =
                |line| format!("  {}  {mark} {}", times.next().unwrap_or_default(), plain(line));
            text.text.trim_end().lines().map(line).collect()
        }
    }
}

fn call_words(call: &StepCall) -> String {
    let cells = [
        cut(&format!("{}:{}", call.server_name, call.tool_name), WIDTH),
        with_code(&call.status, call.error_code.as_deref()),
        milliseconds(call.duration_ms),
        cut(&target(call.target.as_ref()), WIDTH),
        call.id.clone(),
    ];
    plain(&cells.join("  "))
}
