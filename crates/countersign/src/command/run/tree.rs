//! The screen of a run: a tree of its steps, with the calls and texts of each. Pure: moments, a
//! size and a time in, lines out. No control character of a text reaches a line.

mod layout;
mod step;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use self::layout::{cut, shares, wrap};
use self::step::{Item, LiveStep, TEXT_BYTES_MAX};
use self::words::{call_words, counted, dollars, elapsed, name};
use super::moment::{EndedStep, Moment, RunFinish, SeenCall, StepStart, probe_words};
use crate::output::plain;
use crate::output::status::spoken;

/// Lines of one text that stay when its step has ended.
const TEXT_LINES_KEPT: usize = 3;

/// Lines of stderr that are shown of a step that failed.
const STDERR_LINES: usize = 10;

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// The use of colours in lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Yes,
    No,
}

/// The steps that are running, and what is needed to show how they ended.
pub(crate) struct Tree {
    colour: Colour,
    steps: BTreeMap<u32, LiveStep>,
    /// The parallel state whose branches were shown last.
    branch_of: Option<String>,
}

/// The colour of a line.
#[derive(Clone, Copy)]
enum Tint {
    Plain,
    Good,
    Bad,
    Faint,
}

impl Tree {
    pub(crate) fn new(colour: Colour) -> Tree {
        Tree { colour, steps: BTreeMap::new(), branch_of: None }
    }

    /// Takes in a moment; returns the lines that it adds to what stays on the screen.
    pub(crate) fn on(&mut self, moment: &Moment, size: Size, now: Duration) -> Vec<String> {
        match moment {
            Moment::StepBegan(start) => self.began(start, now),
            Moment::StepEnded(end) => self.ended(end, size, now),
            Moment::End(finish) => vec![self.finish(finish)],
            Moment::Probe { agent, version, .. } => {
                let words = probe_words(agent.as_deref().unwrap_or("the agent"), version);
                vec![self.line(Tint::Faint, &words, size)]
            }
            Moment::Run(run) => match &run.resumed_from {
                Some(id) => vec![self.tinted(Tint::Faint, &format!("goes on from run {id}"))],
                None => Vec::new(),
            },
            Moment::Text { .. } | Moment::Error { .. } | Moment::Call(_) | Moment::Usage { .. } => {
                self.note(moment);
                Vec::new()
            }
        }
    }

    /// Takes in a moment; returns the lines of it for a reader without a screen.
    pub(crate) fn lines(&mut self, moment: &Moment, now: Duration) -> Vec<String> {
        let wide = Size { columns: usize::MAX, rows: usize::MAX };
        match moment {
            Moment::Text { step, text, begins } => self.text_lines(*step, text, *begins),
            Moment::Error { step, message } => self.step_lines(*step, &format!("error: {message}")),
            Moment::Call(call) => {
                self.note(moment);
                let is_shown = call.is_over() && self.shows_calls(call.step);
                if is_shown { self.step_lines(call.step, &call_words(call)) } else { Vec::new() }
            }
            Moment::StepEnded(end) => {
                let mut lines = self.step_lines(end.step, "");
                if let Some(step) = self.steps.get_mut(&end.step) {
                    step.items.clear();
                    step.dropped = 0;
                }
                lines.extend(self.on(moment, wide, now));
                lines
            }
            Moment::Run(_)
            | Moment::StepBegan(_)
            | Moment::Probe { .. }
            | Moment::Usage { .. }
            | Moment::End(_) => self.on(moment, wide, now),
        }
    }

    /// Returns the lines that a piece of text completes.
    fn text_lines(&mut self, step: u32, piece: &str, begins: bool) -> Vec<String> {
        let mut lines = if begins { self.step_lines(step, "") } else { Vec::new() };
        let Some(step) = self.steps.get_mut(&step) else { return lines };
        step.line.push_str(piece);
        let end = match step.line.rfind('\n') {
            _ if step.line.len() > TEXT_BYTES_MAX => step.line.len(),
            Some(last) => last + 1,
            None => 0,
        };
        let rest = step.line.split_off(end);
        let whole = std::mem::replace(&mut step.line, rest);
        lines.extend(labelled(&step.state, &whole));
        lines
    }

    /// Returns the line of text that a step has begun, and the lines of another text.
    fn step_lines(&mut self, step: u32, text: &str) -> Vec<String> {
        let step = self.steps.get_mut(&step);
        let (name, begun) = match step {
            Some(step) => (step.state.clone(), std::mem::take(&mut step.line)),
            None => Default::default(),
        };
        labelled(&name, &begun).chain(labelled(&name, text)).collect()
    }

    /// Returns the lines of text that steps have begun, if nothing more is to come for now.
    pub(crate) fn begun_lines(&mut self) -> Vec<String> {
        let steps: Vec<u32> = self.steps.keys().copied().collect();
        steps.into_iter().flat_map(|step| self.step_lines(step, "")).collect()
    }

    /// Draws what is running, in at most one line less than the screen has.
    pub(crate) fn frame(&self, size: Size, now: Duration) -> Vec<String> {
        let room = size.rows.saturating_sub(1).max(1);
        let shown = if self.steps.len() > room { room - 1 } else { self.steps.len() };
        let items: Vec<Vec<String>> =
            self.steps.values().take(shown).map(|step| self.items(step, size)).collect();
        let lengths: Vec<usize> = items.iter().map(Vec::len).collect();
        let shares = shares(&lengths, room.saturating_sub(self.steps.len()));
        let mut lines = Vec::new();
        for ((step, items), share) in self.steps.values().zip(items).zip(shares) {
            let words = format!("{}{}  {}", step.indent(), step.name, step.facts(now));
            lines.push(self.line(Tint::Plain, &words, size));
            let from = items.len() - share;
            lines.extend(items.into_iter().skip(from));
        }
        if self.steps.len() > shown {
            let more = format!("… {} more running", self.steps.len() - shown);
            lines.push(self.line(Tint::Faint, &more, size));
        }
        lines
    }

    fn began(&mut self, start: &StepStart, now: Duration) -> Vec<String> {
        let branch_of = start.root.clone().filter(|root| *root != start.state);
        let mut lines = Vec::new();
        if let Some(root) = &branch_of
            && self.branch_of.as_ref() != Some(root)
        {
            lines.push(format!("{:<9}  {}", "parallel", plain(root)));
        }
        let is_branch = branch_of.is_some();
        self.branch_of = branch_of;
        let step = LiveStep::began(start, is_branch, now);
        self.steps.insert(start.step, step);
        lines
    }

    /// Takes in what a running step does.
    fn note(&mut self, moment: &Moment) {
        let step = match moment {
            Moment::Text { step, .. } | Moment::Error { step, .. } | Moment::Usage { step, .. } => {
                step
            }
            Moment::Call(call) => &call.step,
            Moment::Run(_)
            | Moment::StepBegan(_)
            | Moment::Probe { .. }
            | Moment::StepEnded(_)
            | Moment::End(_) => return,
        };
        if let Some(step) = self.steps.get_mut(step) {
            step.note(moment);
        }
    }

    fn shows_calls(&self, step: u32) -> bool {
        self.steps.get(&step).is_some_and(|step| !step.is_command)
    }

    fn ended(&mut self, end: &EndedStep, size: Size, now: Duration) -> Vec<String> {
        let step = self.steps.remove(&end.step);
        let (indent, since) = match &step {
            Some(step) => (step.indent(), now.saturating_sub(step.since)),
            None => ("", Duration::ZERO),
        };
        let took = end.duration_ms.map_or(since, Duration::from_millis);
        let (mark, tint) = match end.status.as_str() {
            "success" => ("ok", Tint::Good),
            status @ ("failure" | "timed_out") => (spoken(status), Tint::Bad),
            other => (spoken(other), Tint::Plain),
        };
        let name = name(&end.state, end.provider.as_deref(), end.attempt);
        let mut facts = vec![elapsed(took)];
        facts.extend((end.calls > 0).then(|| counted(end.calls, "call")));
        facts.extend(end.tokens.map(|tokens| format!("{tokens} tokens")));
        facts.extend(end.cost_usd.map(dollars));
        let mark = self.tinted(tint, &format!("{mark:<9}"));
        let mut lines = vec![format!("{indent}{mark}  {name}  {}", facts.join(", "))];
        lines.extend(step.map(|step| self.kept_items(&step, size)).unwrap_or_default());
        if let (Some(code), Some(error)) = (&end.error_code, &end.error_message) {
            lines.push(format!("{indent}           {code}: {}", plain(error)));
        }
        if end.status != "success" {
            let stderr = end.stderr.as_deref().unwrap_or_default();
            let told: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
            let from = told.len().saturating_sub(STDERR_LINES);
            let shown = told[from..].iter();
            lines.extend(shown.map(|line| format!("{indent}           stderr | {}", plain(line))));
        }
        lines
    }

    fn finish(&self, finish: &RunFinish) -> String {
        let tint = if finish.status == "success" { Tint::Good } else { Tint::Bad };
        format!(
            "{}  run {}",
            self.tinted(tint, &format!("{:<9}", spoken(&finish.status))),
            finish.id
        )
    }

    fn items(&self, step: &LiveStep, size: Size) -> Vec<String> {
        step.items.iter().flat_map(|item| self.item(step, item, size, usize::MAX)).collect()
    }

    /// Returns the lines of a step's items that stay when it has ended.
    fn kept_items(&self, step: &LiveStep, size: Size) -> Vec<String> {
        let more = (step.dropped > 0).then(|| {
            let words = format!("{}  … {} more before", step.indent(), step.dropped);
            self.line(Tint::Faint, &words, size)
        });
        let kept = |item| self.item(step, item, size, TEXT_LINES_KEPT);
        more.into_iter().chain(step.items.iter().flat_map(kept)).collect()
    }

    /// Returns the lines of an item: a text is wrapped, and shown up to a number of lines.
    fn item(&self, step: &LiveStep, item: &Item, size: Size, lines_max: usize) -> Vec<String> {
        let indent = step.indent();
        match item {
            Item::Call(_) if step.is_command => Vec::new(),
            Item::Call(call) => {
                let words = format!("{indent}  {}", call_words(call));
                vec![self.line(call_tint(call), &words, size)]
            }
            Item::Error(message) => {
                vec![self.line(Tint::Bad, &format!("{indent}  error: {message}"), size)]
            }
            Item::Text(text) => {
                let wrapped = wrap(text, size.columns.saturating_sub(4 + indent.len()));
                let more = wrapped.len().saturating_sub(lines_max);
                let shown = wrapped.iter().take(lines_max);
                let mut lines: Vec<String> =
                    shown.map(|line| format!("{indent}  > {line}")).collect();
                if more > 0 {
                    let words = format!("{indent}  > … {}", counted(more as u64, "more line"));
                    lines.push(self.line(Tint::Faint, &words, size));
                }
                lines
            }
        }
    }

    fn line(&self, tint: Tint, words: &str, size: Size) -> String {
        let indent: String = words.chars().take_while(|c| *c == ' ').collect();
        let words = cut(&plain(words.trim_start()), size.columns.saturating_sub(indent.len()));
        format!("{indent}{}", self.tinted(tint, &words))
    }

    fn tinted(&self, tint: Tint, words: &str) -> String {
        let code = match (self.colour, tint) {
            (Colour::No, _) | (Colour::Yes, Tint::Plain) => return words.to_owned(),
            (Colour::Yes, Tint::Good) => 32,
            (Colour::Yes, Tint::Bad) => 31,
            (Colour::Yes, Tint::Faint) => 2,
        };
        format!("\x1b[{code}m{words}\x1b[0m")
    }
}

/// Returns the lines of a text, each with the name of its step.
fn labelled<'a>(name: &'a str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    text.lines().map(move |line| format!("{} | {}", plain(name), plain(line)))
}

fn call_tint(call: &SeenCall) -> Tint {
    match call.status.as_str() {
        "success" => Tint::Faint,
        "pending" => Tint::Plain,
        _ => Tint::Bad,
    }
}

#[cfg(test)]
mod tests;
