//! `countersign runs watch`: follows a run of another process until it ends.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use admin::view::{RunEntry, RunPage, StepEntry};
use gateway::plan::Reach;
use http_body_util::BodyExt;

use super::PATH;
use super::story::{Item, items};
use crate::cli::LinesFormat;
use crate::command::run::{
    Colour, EndedStep, Moment, RunFinish, RunStart, SeenCall, StepStart, Tree,
};
use crate::control::{Control, encode};
use crate::exit::Failure;
use crate::output;
use crate::site::Site;
use crate::stop_signal::StopSignal;

/// The least time between two looks at the run.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(super) async fn run(
    site: &Site,
    id: Option<String>,
    format: LinesFormat,
) -> Result<(), Failure> {
    let mut stop = StopSignal::new()?;
    let mut watched = Watched::default();
    let watching = async {
        let mut id = id;
        loop {
            let look =
                async |control: &Control| follow(control, &mut id, &mut watched, format).await;
            if Control::with(site, Reach::Nothing, look).await? {
                return Ok(());
            }
            // This gate has stopped; the run itself may continue.
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        result = watching => result,
        () = stop.received() => Ok(()),
    }
}

/// Prints what happens until the run ends; returns false if the events ended before.
async fn follow(
    control: &Control,
    id: &mut Option<String>,
    watched: &mut Watched,
    format: LinesFormat,
) -> Result<bool, Failure> {
    // Opened before the first look, so that nothing is missed in between.
    let mut events = control.stream("/api/v1/events", &[]).await?;
    let id = match id {
        Some(id) => id.clone(),
        None => id.insert(newest(control).await?).clone(),
    };
    let mut tree = Tree::new(Colour::No);
    let start = Instant::now();
    loop {
        let run: RunEntry = output::read(&control.get(&format!("{PATH}/{}", encode(&id))).await?)?;
        for moment in watched.news(&run) {
            match format {
                LinesFormat::Jsonl => output::line(&moment.json_line())?,
                LinesFormat::Text => {
                    // The texts that come here are complete.
                    let lines = tree.lines(&moment, start.elapsed());
                    for line in lines.into_iter().chain(tree.begun_lines()) {
                        output::line(&line)?;
                    }
                }
            }
        }
        if run.status != "running" {
            return Ok(true);
        }
        tokio::time::sleep(LOOK_EVERY).await;
        match events.frame().await {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Ok(false),
        }
    }
}

/// Returns the newest run that is running.
async fn newest(control: &Control) -> Result<String, Failure> {
    let page = control.get(&format!("{PATH}?status=running&limit=1")).await?;
    let page: RunPage = output::read(&page)?;
    let run = page.runs.into_iter().next();
    run.map(|run| run.id).ok_or_else(|| {
        Failure::input("no run is running: name one, or see 'countersign runs list'")
    })
}

/// The part of a run that was already told.
#[derive(Default)]
struct Watched {
    has_begun: bool,
    steps: HashMap<u32, WatchedStep>,
}

#[derive(Default)]
struct WatchedStep {
    texts: usize,
    /// The status of each call.
    calls: HashMap<String, String>,
    has_ended: bool,
}

impl Watched {
    /// Returns what is new, in order.
    fn news(&mut self, run: &RunEntry) -> Vec<Moment> {
        let mut news = Vec::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            news.push(Moment::Run(began(run)));
        }
        for step in run.steps.iter().flatten() {
            let known = self.steps.entry(step.number).or_insert_with(|| {
                news.push(Moment::StepBegan(step_began(step)));
                WatchedStep::default()
            });
            news.extend(known.news(step));
        }
        if run.status != "running" {
            news.push(Moment::End(finished(run)));
        }
        news
    }
}

impl WatchedStep {
    fn news(&mut self, step: &StepEntry) -> Vec<Moment> {
        let (mut news, mut texts) = (Vec::new(), 0);
        for item in items(step) {
            match item {
                Item::Text(text) => {
                    texts += 1;
                    if texts > self.texts {
                        let (step, text_kind) = (step.number, text.kind.as_str());
                        news.push(match text_kind {
                            "error" => Moment::Error { step, message: text.text.clone() },
                            _ => Moment::Text { step, text: text.text.clone(), begins: true },
                        });
                    }
                }
                Item::Call(call) => {
                    let known = self.calls.insert(call.id.clone(), call.status.clone());
                    if known.as_ref() != Some(&call.status) {
                        news.push(Moment::Call(SeenCall {
                            step: step.number,
                            id: call.id.clone(),
                            server: call.server_name.clone(),
                            tool: call.tool_name.clone(),
                            target: call.target.as_ref().map(|target| target.resource.clone()),
                            status: call.status.clone(),
                            error_code: call.error_code.clone(),
                            duration_ms: call.duration_ms,
                        }));
                    }
                }
            }
        }
        self.texts = texts;
        if step.status != "running" && !std::mem::replace(&mut self.has_ended, true) {
            news.push(Moment::StepEnded(Box::new(step_ended(step))));
        }
        news
    }
}

fn began(run: &RunEntry) -> RunStart {
    RunStart {
        id: run.id.clone(),
        workflow: run.workflow.clone(),
        version: run.version.clone(),
        file: run.file.clone(),
        resumed_from: run.resumed_from.clone(),
        started_at: run.started_at.clone(),
    }
}

fn step_began(step: &StepEntry) -> StepStart {
    StepStart {
        step: step.number,
        state: step.state.clone(),
        root: step.root.clone(),
        kind: step.kind.clone(),
        attempt: step.attempt,
        provider: step.provider.clone(),
        started_at: step.started_at.clone(),
    }
}

fn step_ended(step: &StepEntry) -> EndedStep {
    EndedStep {
        step: step.number,
        state: step.state.clone(),
        kind: step.kind.clone(),
        attempt: step.attempt,
        provider: step.provider.clone(),
        model: step.model.clone(),
        isolation: step.isolation.clone(),
        status: step.status.clone(),
        duration_ms: step.duration_ms.map(|took| took as u64),
        exit_code: step.exit_code,
        calls: step.calls_total.unwrap_or(0),
        tokens: step.tokens,
        cost_usd: step.cost_usd,
        error_code: step.error_code.clone(),
        error_message: step.error_message.clone(),
        output: step.output.clone().flatten(),
        stderr: step.stderr.clone().flatten(),
    }
}

fn finished(run: &RunEntry) -> RunFinish {
    RunFinish {
        id: run.id.clone(),
        workflow: run.workflow.clone(),
        status: run.status.clone(),
        state: None,
        message: run.message.clone(),
        error_code: None,
        exit_code: run.exit_code,
    }
}
