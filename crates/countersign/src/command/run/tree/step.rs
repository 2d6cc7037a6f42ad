//! A running step: what its agent has said and done so far, within bounds.

use std::collections::VecDeque;
use std::time::Duration;

use super::super::moment::{Moment, SeenCall, StepStart};
use super::words::{counted, dollars, elapsed, name};

/// Items of a step that are kept for the screen; `runs show` has all of them.
pub(super) const ITEMS_MAX: usize = 100;

/// Bytes of one text that are kept for the screen.
pub(super) const TEXT_BYTES_MAX: usize = 8 * 1024;

/// One of the steps that are running.
#[derive(Default)]
pub(super) struct LiveStep {
    pub(super) name: String,
    /// The name of its state, for lines that mix several steps.
    pub(super) state: String,
    is_branch: bool,
    pub(super) is_command: bool,
    pub(super) since: Duration,
    pub(super) calls: u64,
    turns: u32,
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    pub(super) items: VecDeque<Item>,
    pub(super) dropped: u64,
    /// The text since the last line, for a reader without a screen.
    pub(super) line: String,
}

pub(super) enum Item {
    Text(String),
    Error(String),
    Call(SeenCall),
}

impl LiveStep {
    pub(super) fn began(start: &StepStart, is_branch: bool, now: Duration) -> LiveStep {
        LiveStep {
            name: name(&start.state, start.provider.as_deref(), start.attempt),
            state: start.state.clone(),
            is_branch,
            is_command: start.kind == "command",
            since: now,
            ..LiveStep::default()
        }
    }

    pub(super) fn indent(&self) -> &'static str {
        if self.is_branch { "  " } else { "" }
    }

    pub(super) fn facts(&self, now: Duration) -> String {
        let mut facts = vec![elapsed(now.saturating_sub(self.since))];
        facts.push(counted(self.calls, "call"));
        facts.extend((self.turns > 0).then(|| counted(self.turns.into(), "turn")));
        facts.extend(self.tokens.map(|tokens| format!("{tokens} tokens")));
        facts.extend(self.cost_usd.map(dollars));
        facts.join(", ")
    }

    pub(super) fn note(&mut self, moment: &Moment) {
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
