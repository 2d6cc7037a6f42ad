//! The screen of a run: a tree of its steps, with the calls and texts of each. Pure: moments, a
//! size and a time in, lines out. No control character of a text reaches a line.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::output::plain;
use crate::output::status::{spoken, with_code};

use super::moment::{EndedStep, Moment, RunFinish, SeenCall, StepStart, probe_words};

/// Items of a step that are kept for the screen; `runs show` has all of them.
const ITEMS_MAX: usize = 100;

/// Bytes of one text that are kept for the screen.
const TEXT_BYTES_MAX: usize = 8 * 1024;

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

struct LiveStep {
    name: String,
    /// The name of its state, for lines that mix several steps.
    state: String,
    is_branch: bool,
    is_command: bool,
    since: Duration,
    calls: u64,
    turns: u32,
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    items: VecDeque<Item>,
    dropped: u64,
    /// The text since the last line, for a reader without a screen.
    line: String,
}

enum Item {
    Text(String),
    Error(String),
    Call(SeenCall),
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
        let step = LiveStep {
            name: name(&start.state, start.provider.as_deref(), start.attempt),
            state: start.state.clone(),
            is_branch,
            is_command: start.kind == "command",
            since: now,
            calls: 0,
            turns: 0,
            tokens: None,
            cost_usd: None,
            items: VecDeque::new(),
            dropped: 0,
            line: String::new(),
        };
        self.steps.insert(start.step, step);
        lines
    }

    /// Takes in what a running step does.
    fn note(&mut self, moment: &Moment) {
        let step = match moment {
            Moment::Text { step, .. } | Moment::Error { step, .. } | Moment::Usage { step, .. } => {
                self.steps.get_mut(step)
            }
            Moment::Call(call) => self.steps.get_mut(&call.step),
            Moment::Run(_)
            | Moment::StepBegan(_)
            | Moment::Probe { .. }
            | Moment::StepEnded(_)
            | Moment::End(_) => None,
        };
        if let Some(step) = step {
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

impl LiveStep {
    fn indent(&self) -> &'static str {
        if self.is_branch { "  " } else { "" }
    }

    fn facts(&self, now: Duration) -> String {
        let mut facts = vec![elapsed(now.saturating_sub(self.since))];
        facts.push(counted(self.calls, "call"));
        facts.extend((self.turns > 0).then(|| counted(self.turns.into(), "turn")));
        facts.extend(self.tokens.map(|tokens| format!("{tokens} tokens")));
        facts.extend(self.cost_usd.map(dollars));
        facts.join(", ")
    }

    fn note(&mut self, moment: &Moment) {
        match moment {
            Moment::Text { text, begins, .. } => self.text(text, *begins),
            Moment::Error { message, .. } => self.push(Item::Error(message.clone())),
            Moment::Call(call) => self.call(call),
            Moment::Usage { turns, tokens, cost_usd, .. } => {
                self.turns = *turns;
                self.tokens = tokens.or(self.tokens);
                self.cost_usd = cost_usd.or(self.cost_usd);
            }
            Moment::Run(_)
            | Moment::StepBegan(_)
            | Moment::Probe { .. }
            | Moment::StepEnded(_)
            | Moment::End(_) => {}
        }
    }

    fn text(&mut self, piece: &str, begins: bool) {
        match self.items.back_mut() {
            Some(Item::Text(text)) if !begins => {
                text.push_str(piece);
                if text.len() > TEXT_BYTES_MAX {
                    let from = text.ceil_char_boundary(text.len() - TEXT_BYTES_MAX / 2);
                    *text = format!("…{}", &text[from..]);
                }
            }
            _ => self.push(Item::Text(piece.to_owned())),
        }
    }

    fn call(&mut self, call: &SeenCall) {
        let known = self.items.iter_mut().rev().find_map(|item| match item {
            Item::Call(known) if known.id == call.id => Some(known),
            Item::Call(_) | Item::Text(_) | Item::Error(_) => None,
        });
        match known {
            Some(known) => *known = call.clone(),
            None => {
                self.calls += 1;
                self.push(Item::Call(call.clone()));
            }
        }
    }

    fn push(&mut self, item: Item) {
        if self.items.len() == ITEMS_MAX {
            self.items.pop_front();
            self.dropped += 1;
        }
        self.items.push_back(item);
    }
}

/// Returns the lines of a text, each with the name of its step.
fn labelled<'a>(name: &'a str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    text.lines().map(move |line| format!("{} | {}", plain(name), plain(line)))
}

/// Divides lines among steps that have so many to show: one after the other, until all have enough.
fn shares(wanted: &[usize], mut left: usize) -> Vec<usize> {
    let mut shares = vec![0; wanted.len()];
    while left > 0 && shares != wanted {
        for (share, wanted) in shares.iter_mut().zip(wanted) {
            if left > 0 && *share < *wanted {
                *share += 1;
                left -= 1;
            }
        }
    }
    shares
}

fn name(state: &str, provider: Option<&str>, attempt: u32) -> String {
    let provider = provider.map(|it| format!(" ({it})")).unwrap_or_default();
    let attempt = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
    plain(&format!("{state}{provider}{attempt}"))
}

/// Describes a call: its tool, what it touches, and how it ended.
fn call_words(call: &SeenCall) -> String {
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
    let took =
        call.duration_ms.map(|took| format!(", {}", crate::output::milliseconds(Some(took))));
    plain(&format!("{tool}{target}  {outcome}{}", took.unwrap_or_default()))
}

fn call_tint(call: &SeenCall) -> Tint {
    match call.status.as_str() {
        "success" => Tint::Faint,
        "pending" => Tint::Plain,
        _ => Tint::Bad,
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn dollars(cost: f64) -> String {
    format!("${cost:.4}")
}

fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f32()),
        seconds => format!("{}:{:02} min", seconds / 60, seconds % 60),
    }
}

/// Wraps text at words, with every hidden character visible.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for line in text.lines() {
        let (mut line, mut width) = (plain(line), 0);
        while let Some(at) = line.char_indices().find_map(|(at, c)| {
            width += columns_of(c);
            (width > columns).then_some(at)
        }) {
            let at = at.max(line.chars().next().map_or(0, char::len_utf8));
            // A word that fills most of the line is broken.
            let space = if line[at..].starts_with(' ') {
                Some(at)
            } else {
                line[..at].rfind(' ').filter(|space| *space > at / 2)
            };
            let rest = line.split_off(space.map_or(at, |space| space + 1));
            lines.push(line.trim_end().to_owned());
            (line, width) = (rest, 0);
        }
        lines.push(line);
    }
    lines
}

/// Cuts a line to a width.
fn cut(line: &str, columns: usize) -> String {
    let mut width = 0;
    let fits = |c: char| {
        width += columns_of(c);
        width <= columns
    };
    if line.chars().all(fits) {
        return line.to_owned();
    }
    let mut width = 1;
    let kept = line.chars().take_while(|c| {
        width += columns_of(*c);
        width <= columns
    });
    kept.chain(['…']).collect()
}

/// Returns the columns that a terminal gives a character.
fn columns_of(character: char) -> usize {
    match u32::from(character) {
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe4f | 0xff00..=0xff60 | 0xffe0..=0xffe6 => 2,
        0x1f300..=0x1faff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
