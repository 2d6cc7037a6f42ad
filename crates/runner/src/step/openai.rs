//! A step whose model is called by this process: limited by the step's timeout, and ended at once
//! when the step is cancelled.

use domain::Code;
use tokio::time::Instant;
use workflow::{ResolvedAgent, Status, StepOutcome};

use crate::agent::{AgentEvent, AgentTools, Isolation, WorkUsage};
use crate::gate::GateRequest;
use crate::openai::{self, ConversationCost, ConversationError, ModelSettings, Task};
use crate::step::agent::{isolation, tools};
use crate::step::attempt::{Failure, Work};
use crate::step::limits::Limits;

impl Work<'_> {
    pub(super) async fn converse(&mut self, agent: &ResolvedAgent) -> Result<StepOutcome, Failure> {
        let attempt = self.attempt;
        if agent.prompt.trim().is_empty() {
            return Err(Failure::new(Code::InvalidArguments, "the prompt is empty"));
        }
        let settings =
            ModelSettings::new(&agent.options, &attempt.around.env).map_err(|faults| {
                let messages: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
                Failure::new(Code::InvalidArguments, messages.join("; "))
            })?;
        let (proxy, _) = attempt.asked();
        let tools = tools(&proxy);
        let request = attempt.gate_request(agent, proxy, self.trace.clone())?;
        // Otherwise the model would see the key in the output of the first command that prints its
        // environment.
        let request = GateRequest { withheld: vec![openai::KEY_VARIABLE.to_owned()], ..request };
        let gate = self.open(request).await?;
        self.record.isolation = Some(isolation(tools, &Isolation::Full).to_owned());
        self.record.model = Some(settings.model.clone());
        if let Some(warning) = settings.warning() {
            tracing::warn!(step = attempt.state, "{warning}");
        }
        let within = attempt.within();
        let (limits, record) = (Limits::of(&agent.options), self.record.clone());
        let on_answer = |text: &str, usage: &WorkUsage| {
            let watch = &attempt.around.watch;
            watch.step_said(&record, &AgentEvent::Usage(*usage));
            if !text.is_empty() {
                watch.step_said(&record, &AgentEvent::TextBegins);
                watch.step_said(&record, &AgentEvent::Text(text.to_owned()));
                watch.step_said(&record, &AgentEvent::TextEnds);
            }
            let exceeded = limits.exceeded(usage);
            exceeded.map_or(Ok(()), |words| Err(ConversationError::new(Code::AgentLimit, words)))
        };
        let task = Task {
            settings: &settings,
            system_prompt: agent.system_prompt.as_deref(),
            prompt: &agent.prompt,
            gate: (tools != AgentTools::None).then(|| gate.connect()),
            deadline: Instant::now() + within,
            on_answer: &on_answer,
        };
        let mut spent = ConversationCost::default();
        let made = tokio::select! {
            made = tokio::time::timeout(within, openai::converse(task, &mut spent)) => match made {
                Ok(Ok(text)) => Ok(text),
                Ok(Err(failed)) => Err(Failure::new(failed.code, failed.message)),
                Err(_) => Err(Failure::timed_out(within)),
            },
            () = attempt.cancel.cancelled() => Err(Failure::cancelled()),
        };
        self.record.cost_usd = spent.cost_usd;
        if let Some(model) = spent.model {
            self.record.model = Some(model);
        }
        let outcome = StepOutcome { tokens: spent.tokens, ..StepOutcome::new(Status::Success) };
        match made {
            Ok(output) => Ok(StepOutcome { output, ..outcome }),
            Err(failure) => {
                let status = failure.outcome.status;
                Err(failure.with(StepOutcome { status, ..outcome }))
            }
        }
    }
}
