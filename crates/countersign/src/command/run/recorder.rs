//! Records a run in the store as it progresses, and shows it. Secrets are removed first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use runner::agent::AgentEvent;
use runner::environment::{SessionList, Watch};
use store::run::{RunEnd, RunRecord, RunSource, StateOutcome, StepRecord, StepText};
use workflow::StepOutcome;

use super::live::Live;
use super::moment::{EndedStep, Moment, RunFinish, RunStart, StepStart};
use super::writes::{Writes, Written};

/// Bytes of a step's texts that are kept.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Texts of a step that are kept.
const TEXTS_MAX: u32 = 200;

pub(super) struct Recorder {
    writes: Writes,
    steps: Mutex<Vec<EndedStep>>,
    texts: Mutex<HashMap<u32, StepTexts>>,
    live: Live,
    source: RunSource,
}

impl Recorder {
    pub(super) fn new(writes: Writes, source: RunSource, live: Live) -> Recorder {
        let (steps, texts) = (Mutex::default(), Mutex::default());
        Recorder { writes, steps, texts, live, source }
    }

    /// Shows a remark to the person.
    pub(super) fn remark(&self, text: &str) {
        self.live.remark(text);
    }

    /// Shows the end of the run.
    pub(super) fn finish(&self, finish: RunFinish) {
        self.live.show(Moment::End(finish));
    }

    /// Waits until all is shown and written. Returns the steps, in the order in which they ended.
    pub(super) async fn end(&self, written: Written) -> Vec<EndedStep> {
        self.live.end().await;
        self.writes.close();
        let _ = written.await;
        std::mem::take(&mut *lock(&self.steps))
    }

    /// Adds to the texts of a step, and writes those that are complete.
    fn heard(&self, step: &StepRecord, hear: impl FnOnce(&mut StepTexts)) {
        let mut all = lock(&self.texts);
        let texts = all.entry(step.number).or_default();
        hear(texts);
        let ready = std::mem::take(&mut texts.ready);
        if ready.is_empty() {
            return;
        }
        let (run, number) = (step.run.clone(), step.number);
        self.writes.send(move |store, redactor| {
            let ready: Vec<StepText> =
                ready.into_iter().map(|text| text.redacted(redactor)).collect();
            store.state().add_step_texts(&run, number, &ready)
        });
    }
}

impl Watch for Recorder {
    fn run_began(&self, run: &RunRecord) {
        self.live.show(Moment::Run(RunStart::from(run)));
        let (run, source) = (run.clone(), self.source.clone());
        self.writes.send(move |store, redactor| {
            let state = store.state();
            state.begin_run(&run)?;
            if let Some(from) = &run.resumed_from {
                state.copy_outcomes(from, &run.id)?;
            }
            state.set_run_source(&run.id, &source.redacted(redactor))
        });
    }

    fn run_ended(&self, run: &RunRecord, end: &RunEnd) {
        let (id, end) = (run.id.clone(), end.clone());
        self.writes
            .send(move |store, redactor| store.state().end_run(&id, &end.redacted(redactor)));
    }

    fn step_began(&self, step: &StepRecord) {
        self.live.show(Moment::StepBegan(StepStart::from(step)));
        let step = step.clone();
        self.writes.send(move |store, _| store.state().begin_step(&step));
    }

    fn step_at_work(&self, step: &StepRecord, sessions: SessionList) {
        self.live.follow(&step.run, step.number, sessions);
    }

    fn step_said(&self, step: &StepRecord, event: &AgentEvent) {
        let number = step.number;
        self.heard(step, |texts| texts.hear(event));
        let moment = match event {
            AgentEvent::Probed { version } => Moment::Probe {
                step: Some(number),
                agent: step.provider.clone(),
                version: version.clone(),
            },
            AgentEvent::Text(text) => {
                let begins = lock(&self.texts).get_mut(&number).is_some_and(StepTexts::begins);
                Moment::Text { step: number, text: text.clone(), begins }
            }
            AgentEvent::Error(message) => Moment::Error { step: number, message: message.clone() },
            AgentEvent::Usage(usage) => Moment::Usage {
                step: number,
                turns: usage.turns,
                tokens: usage.tokens,
                cost_usd: usage.cost_usd,
            },
            AgentEvent::Native { name, .. } => {
                let message = format!("called its own tool '{name}'");
                Moment::Error { step: number, message }
            }
            AgentEvent::Model(_)
            | AgentEvent::TextBegins
            | AgentEvent::TextEnds
            | AgentEvent::Called { .. }
            | AgentEvent::Refused { .. } => return,
        };
        self.live.show(moment);
    }

    fn step_ended(&self, step: &StepRecord, calls: u64) {
        self.heard(step, StepTexts::complete);
        lock(&self.texts).remove(&step.number);
        let ended = EndedStep::of(step, calls);
        lock(&self.steps).push(ended.clone());
        let step = step.clone();
        self.writes.send(move |store, redactor| store.state().end_step(&step.redacted(redactor)));
        // Shown once it is written: a run that is killed afterwards continues after this step.
        self.live.show(Moment::StepEnded(Box::new(ended)));
    }

    fn state_settled(&self, run: &RunRecord, state: &str, outcome: &StepOutcome) {
        let outcome = StateOutcome {
            run: run.id.clone(),
            state: state.to_owned(),
            status: outcome.status.name().to_owned(),
            output: outcome.output.clone(),
            stderr: outcome.stderr.clone(),
            exit_code: outcome.exit_code,
            json: outcome.json.clone(),
            tokens: outcome.tokens,
            is_whole: !outcome.is_cut,
        };
        self.writes
            .send(move |store, redactor| store.state().set_outcome(&outcome.redacted(redactor)));
    }
}

/// The texts of a step's agent. A text is written once it is complete: a secret may arrive in
/// pieces.
#[derive(Default)]
struct StepTexts {
    now: String,
    since: Option<Timestamp>,
    ready: Vec<StepText>,
    position: u32,
    bytes: usize,
    has_begun: bool,
}

impl StepTexts {
    fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::TextBegins => {
                self.complete();
                self.has_begun = true;
            }
            AgentEvent::Text(piece) => {
                self.since.get_or_insert_with(Timestamp::now);
                let room = TEXT_BYTES_MAX.saturating_sub(self.bytes + self.now.len());
                self.now.push_str(&piece[..piece.floor_char_boundary(room)]);
            }
            AgentEvent::TextEnds | AgentEvent::Called { .. } => self.complete(),
            AgentEvent::Error(message) => {
                self.complete();
                self.keep("error", message.clone(), Timestamp::now());
            }
            AgentEvent::Native { name, .. } => {
                self.complete();
                let words = format!("called its own tool '{name}'");
                self.keep("error", words, Timestamp::now());
            }
            AgentEvent::Probed { .. }
            | AgentEvent::Model(_)
            | AgentEvent::Usage(_)
            | AgentEvent::Refused { .. } => {}
        }
    }

    fn complete(&mut self) {
        let (text, since) = (std::mem::take(&mut self.now), self.since.take());
        if let (false, Some(since)) = (text.is_empty(), since) {
            self.keep("text", text, since);
        }
    }

    fn keep(&mut self, kind: &str, text: String, at: Timestamp) {
        if self.position == TEXTS_MAX || self.bytes >= TEXT_BYTES_MAX {
            return;
        }
        self.position += 1;
        self.bytes += text.len();
        let kind = kind.to_owned();
        self.ready.push(StepText { position: self.position, at, kind, text });
    }

    /// Reports, once, that a new text has begun.
    fn begins(&mut self) -> bool {
        std::mem::take(&mut self.has_begun)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(events: &[AgentEvent]) -> Vec<(u32, String, String)> {
        let mut texts = StepTexts::default();
        events.iter().for_each(|event| texts.hear(event));
        texts.complete();
        let kept = std::mem::take(&mut texts.ready).into_iter();
        kept.map(|text| (text.position, text.kind, text.text)).collect()
    }

    fn says(text: &str) -> AgentEvent {
        AgentEvent::Text(text.to_owned())
    }

    #[test]
    fn a_text_is_kept_once_it_is_complete() {
        let call = AgentEvent::Called { id: "1".to_owned(), tool: "Read".to_owned() };
        let events = [
            AgentEvent::TextBegins,
            says("to"),
            says("gether"),
            call.clone(),
            call,
            AgentEvent::TextBegins,
            says("one"),
            AgentEvent::TextEnds,
            AgentEvent::TextBegins,
            says("two"),
            AgentEvent::Error("oh".to_owned()),
        ];
        let expected =
            [(1, "text", "together"), (2, "text", "one"), (3, "text", "two"), (4, "error", "oh")];
        let expected = expected.map(|(at, kind, text)| (at, kind.to_owned(), text.to_owned()));
        assert_eq!(heard(&events), expected);
    }

    #[test]
    fn the_texts_of_a_step_are_bounded() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        let kept = heard(&[says(&long), says(&long), AgentEvent::TextBegins, says("more")]);
        assert_eq!((kept.len(), kept[0].2.len()), (1, TEXT_BYTES_MAX));
        let many: Vec<AgentEvent> =
            (0..1_000).flat_map(|_| [AgentEvent::TextBegins, says("x")]).collect();
        assert_eq!(heard(&many).len(), TEXTS_MAX as usize);
    }
}
