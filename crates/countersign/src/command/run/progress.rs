//! The progress of a run for a person: a line for each step that ends, and on a terminal a status
//! line for running steps.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use runner::surroundings::CallCount;
use store::run::{RunEnd, RunRecord, StepRecord, StepStatus};
use tokio::task::AbortHandle;

use crate::cli::RunFormat;
use crate::output;

/// The interval between updates of the status line.
const INTERVAL: Duration = Duration::from_millis(500);

/// Returns to the beginning of a line and clears it.
const CLEAR: &str = "\r\x1b[K";

pub(super) struct Progress {
    under_way: Option<Arc<Mutex<UnderWay>>>,
    ticking: Option<AbortHandle>,
    is_terminal: bool,
}

type UnderWay = BTreeMap<u32, Working>;

struct Working {
    name: String,
    since: Instant,
    calls: Option<CallCount>,
}

impl Progress {
    pub(super) fn new(format: RunFormat) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        let under_way = (format == RunFormat::Text).then(Arc::<Mutex<UnderWay>>::default);
        let ticking = under_way.clone().filter(|_| is_terminal).map(|under_way| {
            let ticking = async move {
                loop {
                    tokio::time::sleep(INTERVAL).await;
                    let under_way = under_way.lock().unwrap_or_else(PoisonError::into_inner);
                    let words: Vec<String> = under_way.values().map(Working::words).collect();
                    if !words.is_empty() {
                        let _ = write!(std::io::stderr(), "{CLEAR}{}", words.join(" | "));
                    }
                }
            };
            tokio::spawn(ticking).abort_handle()
        });
        Progress { under_way, ticking, is_terminal }
    }

    fn change(&self, change: impl FnOnce(&mut UnderWay)) {
        if let Some(under_way) = &self.under_way {
            change(&mut under_way.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn line(&self, text: &str) {
        if self.under_way.is_some() {
            if self.is_terminal {
                let _ = write!(std::io::stderr(), "{CLEAR}");
            }
            output::note(text);
        }
    }

    pub(super) fn step_began(&self, step: &StepRecord) {
        let working = Working { name: name(step), since: Instant::now(), calls: None };
        self.change(|under_way| drop(under_way.insert(step.number, working)));
    }

    pub(super) fn step_at_work(&self, step: &StepRecord, calls: CallCount) {
        self.change(|under_way| {
            if let Some(working) = under_way.get_mut(&step.number) {
                working.calls = Some(calls);
            }
        });
    }

    pub(super) fn step_ended(&self, step: &StepRecord, calls: u64) {
        let mut took = Duration::ZERO;
        self.change(|under_way| {
            if let Some(working) = under_way.remove(&step.number) {
                took = working.since.elapsed();
            }
        });
        let mark = match step.status {
            StepStatus::Success => "ok",
            StepStatus::Failure => "failed",
            StepStatus::TimedOut => "timed out",
            StepStatus::Cancelled => "cancelled",
            StepStatus::Running | StepStatus::Interrupted => "?",
        };
        let mut text = format!("{mark:<9}  {}  {}", name(step), elapsed(took));
        if calls > 0 {
            text.push_str(&format!(", {}", counted(calls)));
        }
        if let Some(tokens) = step.tokens {
            text.push_str(&format!(", {tokens} tokens"));
        }
        if let (Some(code), Some(error)) = (&step.error_code, &step.error) {
            text.push_str(&format!("\n           {code}: {}", output::plain(error)));
        }
        self.line(&text);
    }

    pub(super) fn run_ended(&self, run: &RunRecord, end: &RunEnd) {
        if let Some(ticking) = &self.ticking {
            ticking.abort();
        }
        self.line(&format!("{:<9}  run {}", end.status.as_str(), run.id));
    }
}

impl Working {
    fn words(&self) -> String {
        let calls = self.calls.as_ref().map_or(0, |calls| calls());
        format!("{}  {}, {}", self.name, elapsed(self.since.elapsed()), counted(calls))
    }
}

fn name(step: &StepRecord) -> String {
    let provider = step.provider.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    let attempt =
        if step.attempt > 1 { format!(", attempt {}", step.attempt) } else { String::new() };
    format!("{}{provider}{attempt}", output::plain(&step.state))
}

fn counted(calls: u64) -> String {
    if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") }
}

fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f32()),
        seconds => format!("{}:{:02} min", seconds / 60, seconds % 60),
    }
}
