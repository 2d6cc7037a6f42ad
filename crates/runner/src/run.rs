//! Drives a workflow's state machine: starts the steps it requests, and reports their outcomes to
//! it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use provider::{Span, SpanKind, TraceContext, Tracer, Value};
use store::run::{RunEnd, RunRecord, RunStatus, StepRecord, StepStatus};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use workflow::{Ending, Finish, Machine, MachineAction, MachineEvent, Status, StepOutcome};

use crate::environment::RunEnvironment;
use crate::step::{Attempt, AttemptResult};

/// The parameters of a run, besides the machine itself.
pub struct Order {
    /// A version 7 UUID.
    pub id: String,
    /// The file the workflow was read from.
    pub file: Option<String>,
    /// The run that this one continues.
    pub resumed_from: Option<String>,
    /// The parent of the run's span.
    pub parent: TraceContext,
}

/// Runs the workflow to its end. A cancelled run ends when everything it started has ended.
pub async fn run(
    around: &Arc<RunEnvironment>,
    order: Order,
    machine: Machine,
    cancel: CancellationToken,
) -> Finish {
    let span = around.tracer.as_ref().map(|tracer| run_span(&**tracer, &order, &machine));
    let trace = span.as_ref().map_or_else(|| order.parent.clone(), |span| span.context());
    let workflow = machine.workflow();
    let record = RunRecord {
        id: order.id,
        workflow: workflow.name.clone(),
        version: workflow.version.clone(),
        file: order.file,
        pid: std::process::id(),
        started_at: Timestamp::now(),
        ended_at: None,
        status: RunStatus::Running,
        message: None,
        exit_code: None,
        trace_id: trace.trace_id().map(str::to_owned),
        resumed_from: order.resumed_from,
    };
    around.watch.run_began(&record);
    let run =
        Run { around: around.clone(), record: record.clone(), trace, begun: AtomicU32::new(0) };
    let finish = run.drive(machine, cancel).await;
    if let Some(mut span) = span
        && finish.ending != Ending::Success
    {
        span.fail(finish.message.as_deref().unwrap_or(finish.ending.name()));
    }
    let status = match finish.ending {
        Ending::Success => RunStatus::Success,
        Ending::Failure => RunStatus::Failure,
        Ending::Cancelled => RunStatus::Cancelled,
    };
    let (message, exit_code) = (finish.message.clone(), Some(finish.exit_status));
    around.watch.run_ended(&record, &RunEnd { status, message, exit_code, at: Timestamp::now() });
    finish
}

fn run_span(tracer: &dyn Tracer, order: &Order, machine: &Machine) -> Box<dyn Span> {
    let workflow = machine.workflow();
    let mut span = tracer.start("workflow.run".into(), SpanKind::Internal, &order.parent);
    span.set("workflow.name", Value::Text(&workflow.name));
    span.set("workflow.version", Value::Text(workflow.version.as_deref().unwrap_or_default()));
    span.set("execution_id", Value::Text(&order.id));
    span
}

struct Run {
    around: Arc<RunEnvironment>,
    record: RunRecord,
    trace: TraceContext,
    /// The number of steps so far.
    begun: AtomicU32,
}

impl Run {
    async fn drive(&self, mut machine: Machine, cancel: CancellationToken) -> Finish {
        let mut under_way = JoinSet::new();
        let mut cancels: HashMap<String, CancellationToken> = HashMap::new();
        let mut actions = VecDeque::from(machine.on(MachineEvent::Begin));
        let mut is_cancelled = false;
        loop {
            while let Some(action) = actions.pop_front() {
                match action {
                    MachineAction::Start { state, attempt, after } => {
                        let cancel = CancellationToken::new();
                        cancels.insert(state.clone(), cancel.clone());
                        let step = self.step(&machine, &state, attempt, cancel);
                        under_way.spawn(async move { (state, step.make(after).await) });
                    }
                    MachineAction::Cancel { state } => {
                        if let Some(cancel) = cancels.get(&state) {
                            cancel.cancel();
                        }
                    }
                    MachineAction::Finish(finish) => return finish,
                }
            }
            tokio::select! {
                ended = under_way.join_next() => match ended {
                    Some(Ok((state, outcome))) => {
                        actions.extend(machine.on(MachineEvent::Ended { state, outcome }));
                        self.report_settled(&mut machine);
                    }
                    // A step that panicked leaves the machine waiting for it, so the run can only
                    // end.
                    Some(Err(error)) => return broken(&error.to_string()),
                    None => return broken("no step is running"),
                },
                () = cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    actions.extend(machine.on(MachineEvent::Cancel));
                }
            }
        }
    }

    fn report_settled(&self, machine: &mut Machine) {
        for state in machine.take_settled() {
            if let Some(outcome) = machine.outcome(&state) {
                self.around.watch.state_settled(&self.record, &state, outcome);
            }
        }
    }

    fn step(
        &self,
        machine: &Machine,
        state: &str,
        attempt: u32,
        cancel: CancellationToken,
    ) -> RecordedStep {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let known = machine.workflow().state(state);
        let agent = known.and_then(|state| state.agent());
        let kind = known.map_or("step", kind);
        let record = StepRecord {
            attempt,
            provider: agent.map(|agent| agent.provider.name().to_owned()),
            root: Some(machine.at().to_owned()),
            visit: machine.visits(),
            ..StepRecord::begun(&self.record.id, number, kind, state, Timestamp::now())
        };
        let attempt = Attempt {
            around: self.around.clone(),
            workflow: machine.workflow().clone(),
            state: state.to_owned(),
            resolved: machine.resolve(state),
            cancel: cancel.clone(),
        };
        RecordedStep {
            around: self.around.clone(),
            record,
            attempt,
            trace: self.trace.clone(),
            cancel,
        }
    }
}

fn kind(state: &workflow::State) -> &'static str {
    use workflow::StateKind;
    match state.kind {
        StateKind::Command(_) => "command",
        StateKind::Agent(_) => "agent",
        StateKind::Operation(_) => "operation",
        StateKind::Parallel(_) => "parallel",
        StateKind::Terminal(_) => "terminal",
    }
}

/// One attempt at a state, in the course of being recorded.
struct RecordedStep {
    around: Arc<RunEnvironment>,
    record: StepRecord,
    attempt: Attempt,
    trace: TraceContext,
    cancel: CancellationToken,
}

impl RecordedStep {
    async fn make(mut self, after: Duration) -> StepOutcome {
        tokio::select! {
            () = tokio::time::sleep(after) => {}
            () = self.cancel.cancelled() => return StepOutcome::new(Status::Cancelled),
        }
        self.record.started_at = Timestamp::now();
        self.around.watch.step_began(&self.record);
        let mut span = self.around.tracer.as_ref().map(|tracer| {
            let name = format!("step.{}", self.record.state).into();
            let mut span = tracer.start(name, SpanKind::Internal, &self.trace);
            span.set("step.name", Value::Text(&self.record.state));
            span.set("step.type", Value::Text(&self.record.kind));
            span
        });
        let trace = span.as_ref().map_or_else(|| self.trace.clone(), |span| span.context());
        let AttemptResult { outcome, calls } = self.attempt.make(&mut self.record, trace).await;
        self.record.ended_at = Some(Timestamp::now());
        self.record.exit_code = outcome.exit_code;
        self.record.tokens = outcome.tokens;
        self.record.status = match outcome.status {
            Status::Success => StepStatus::Success,
            Status::Failure => StepStatus::Failure,
            Status::TimedOut => StepStatus::TimedOut,
            Status::Cancelled => StepStatus::Cancelled,
        };
        if let Some(span) = &mut span
            && outcome.status != Status::Success
        {
            span.fail(self.record.error.as_deref().unwrap_or(outcome.status.name()));
        }
        self.around.watch.step_ended(&self.record, calls);
        outcome
    }
}

fn broken(why: &str) -> Finish {
    Finish {
        ending: Ending::Failure,
        state: String::new(),
        message: Some(format!("the run failed unexpectedly: {why}")),
        exit_status: workflow::EXIT_FAILURE,
        code: None,
    }
}
