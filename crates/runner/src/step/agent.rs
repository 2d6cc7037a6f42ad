//! An agent in a step: found, started with the gate as its source of tools, and judged by its
//! reports rather than by its exit code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::Code;
use provider::{Span, SpanKind, TraceContext, Value};
use store::run::StepRecord;
use workflow::{Demand, Proxy, ResolvedAgent, Status, StepOutcome};

use crate::agent::{
    AgentError, AgentEvent, AgentFailure, AgentReport, AgentRequest, AgentServer, AgentTools,
    InstalledAgent, Isolation, LINE_BYTES_MAX, Launch, Provider, Search, Stream, ToolCheck,
    prepare,
};
use crate::gate::{GateRequest, PluginGrant, StepGate};
use crate::process::{self, ProcessEnd, ProcessStart};
use crate::step::attempt::{Attempt, Failure, Work};
use crate::step::last_words::with_last_words;
use crate::step::limits::Limits;

impl Work<'_> {
    pub(super) async fn agent(&mut self, agent: &ResolvedAgent) -> Result<StepOutcome, Failure> {
        let mut span = self.attempt.around.tracer.as_ref().map(|tracer| {
            let mut span = tracer.start("agent.call".into(), SpanKind::Internal, &self.trace);
            span.set("provider", Value::Text(agent.provider.name()));
            span
        });
        if let Some(span) = &span {
            self.trace = span.context();
        }
        let made = self.ask(agent).await;
        if let Some(span) = &mut span {
            say(&mut **span, self.record, &made);
        }
        made
    }

    async fn ask(&mut self, agent: &ResolvedAgent) -> Result<StepOutcome, Failure> {
        let attempt = self.attempt;
        let Some(provider) = program(agent.provider) else {
            return self.converse(agent).await;
        };
        let (proxy, demand) = attempt.asked();
        let tools = tools(&proxy);
        let gate_request = attempt.gate_request(agent, proxy, self.trace.clone())?;
        let work = gate_request.root.clone();
        let gate = self.open(gate_request).await?;
        let installed = attempt.installed(provider, agent, tools, self.record).await?;
        let (program, args) = gate.server();
        let folders = StepFolders { work, private: gate.private().to_owned() };
        let server = AgentServer { program, args };
        let request = request(agent, server, tools, folders, gate.call_timeout());
        let launch = prepare(&installed, &request, &attempt.around.person).map_err(failed)?;
        self.record.isolation = Some(isolation(tools, &launch.isolation).to_owned());
        if let Some(warning) = launch.isolation.warning(provider) {
            if demand == Demand::Required {
                return Err(Failure::new(Code::ProxyUnsupportedProvider, warning));
            }
            tracing::warn!(step = attempt.state, "{warning}");
        }
        launch.write().map_err(|error| {
            Failure::new(Code::AgentFailed, format!("cannot write the step's files: {error}"))
        })?;
        let limits = Limits::of(&agent.options);
        let ran = attempt.listen(provider, &launch, limits, self.record).await?;
        self.judge(provider, tools, &*gate, ran).await
    }

    /// Determines the outcome of the agent's work, from its own report and from what the gate saw.
    async fn judge(
        &mut self,
        provider: Provider,
        tools: AgentTools,
        gate: &dyn StepGate,
        ran: ProgramRun,
    ) -> Result<StepOutcome, Failure> {
        let (report, cause) = match ran.report {
            Ok(report) => (report, None),
            Err(failed) => (*failed.report, Some(failed.cause.to_string())),
        };
        self.record.model = report.model;
        self.record.cost_usd = report.cost_usd;
        let outcome = StepOutcome {
            output: report.text,
            stderr: ran.stderr.clone(),
            exit_code: ran.code,
            tokens: report.tokens.map(|tokens| tokens.total),
            ..StepOutcome::new(Status::Success)
        };
        // Whether a call was refused is unknown if its program was ended first.
        let is_judged = tools == AgentTools::Only && ran.stopped.is_none();
        let passed = report.native.into_iter().filter(|call| is_judged && !call.refused);
        let passed: Vec<String> = passed.map(|call| call.name).collect();
        for tool in &passed {
            gate.bypassed(provider.as_str(), tool).await;
        }
        let program = provider.as_str();
        let failure = if let Some(stopped) = ran.stopped {
            stopped
        } else if let Some(tool) = passed.first() {
            let message = format!(
                "{program} bypassed the gate with its own tool '{tool}', which isolation should \
                 have disabled"
            );
            Failure::new(Code::AgentBypassed, message)
        } else if tools != AgentTools::None && !gate.was_listed() {
            let message =
                format!("{program} never listed the gate's tools: its MCP server did not start");
            Failure::new(Code::AgentFailed, with_last_words(message, &ran.stderr))
        } else if let Some(cause) = cause {
            Failure::new(Code::AgentFailed, with_last_words(cause, &ran.stderr))
        } else {
            return Ok(outcome);
        };
        let status = failure.outcome.status;
        Err(failure.with(StepOutcome { status, ..outcome }))
    }
}

impl Attempt {
    /// Builds the request for the gate of a step with an agent.
    pub(super) fn gate_request(
        &self,
        agent: &ResolvedAgent,
        proxy: Proxy,
        trace: TraceContext,
    ) -> Result<GateRequest, Failure> {
        Ok(GateRequest {
            agent: self.identity(agent.provider.name()),
            root: self.dir(agent.dir.as_deref())?,
            builtins: tools(&proxy) == AgentTools::Only,
            plugins: if proxy.enable { PluginGrant::of(&proxy.plugin_tools) } else { Vec::new() },
            servers: if proxy.enable { proxy.mcp_servers } else { Vec::new() },
            patience: Duration::ZERO,
            kept_bytes: None,
            withheld: Vec::new(),
            trace,
            cancel: self.cancel.clone(),
        })
    }

    /// Returns the step's settings for its agent's tools.
    pub(super) fn asked(&self) -> (Proxy, Demand) {
        let agent = self.workflow.state(&self.state).and_then(|state| state.agent());
        agent.map_or((Proxy::default(), Demand::Preferred), |agent| {
            (agent.proxy.clone(), agent.isolation)
        })
    }

    async fn installed(
        &self,
        provider: Provider,
        agent: &ResolvedAgent,
        tools: AgentTools,
        record: &StepRecord,
    ) -> Result<InstalledAgent, Failure> {
        let command = agent.options.command.as_deref();
        let command = command.map(|command| command_in(&self.around.dir, command));
        let path = self.around.env.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, path)| path.clone());
        let watch = &*self.around.watch;
        let notice = |found: &InstalledAgent| {
            watch.step_said(record, &AgentEvent::Probed { version: found.version().to_owned() });
        };
        let search = Search {
            command: command.as_deref(),
            path: path.as_deref(),
            supervisor: self.around.supervisor.as_deref(),
            // A program that keeps its own tools need not be probed.
            probes: self.around.probes.as_deref().filter(|_| tools == AgentTools::Only),
            notice: Some(&notice),
        };
        tokio::select! {
            found = InstalledAgent::detect(provider, &search) => found.map_err(failed),
            () = self.cancel.cancelled() => Err(Failure::cancelled()),
        }
    }

    /// Runs the agent's program to its end, or ends it at a limit. What it said until then is kept.
    async fn listen(
        &self,
        provider: Provider,
        launch: &Launch,
        limits: Limits,
        record: &StepRecord,
    ) -> Result<ProgramRun, Failure> {
        let start = ProcessStart {
            program: &launch.program,
            args: &launch.args,
            env: environment(&self.around.env, launch),
            dir: &launch.dir,
            stdin: launch.stdin.as_deref(),
            supervisor: self.around.supervisor.clone(),
            line_bytes_max: LINE_BYTES_MAX,
        };
        let mut stream = Stream::new(provider);
        let within = self.within();
        let mut check = ToolCheck::new(provider, launch, &self.cancel);
        let (stop, mut exceeded) = (check.stop(), None);
        let running = process::run(start, within, &stop, |line| {
            check.line(line);
            for event in stream.line(line) {
                if let AgentEvent::Usage(usage) = &event
                    && exceeded.is_none()
                {
                    exceeded = limits.exceeded(usage);
                    exceeded.iter().for_each(|_| stop.cancel());
                }
                self.around.watch.step_said(record, &event);
            }
        });
        let exit = running.await.map_err(|error| {
            let program = launch.program.display();
            Failure::new(Code::AgentFailed, format!("cannot start '{program}': {error}"))
        })?;
        check.end().map_err(failed)?;
        let (code, stopped) = match exit.end {
            ProcessEnd::Cancelled => (None, Some(Failure::cancelled())),
            ProcessEnd::TimedOut => (None, Some(Failure::timed_out(within))),
            ProcessEnd::Exited(status) => (status.code(), None),
        };
        let stopped = exceeded.map(|words| Failure::new(Code::AgentLimit, words)).or(stopped);
        Ok(ProgramRun { code, stderr: exit.stderr, report: stream.end(), stopped })
    }
}

/// The end of a program's run.
struct ProgramRun {
    code: Option<i32>,
    stderr: String,
    report: Result<AgentReport, AgentFailure>,
    /// The reason that we ended it.
    stopped: Option<Failure>,
}

/// Returns the program to start; `None` if this process calls the model itself.
fn program(provider: workflow::Provider) -> Option<Provider> {
    match provider {
        workflow::Provider::Claude => Some(Provider::Claude),
        workflow::Provider::Gemini => Some(Provider::Gemini),
        workflow::Provider::Codex => Some(Provider::Codex),
        workflow::Provider::OpenCode => Some(Provider::OpenCode),
        workflow::Provider::OpenAiCompatible => None,
    }
}

/// Resolves `options.command`: a path relative to the run's folder, or a name to find on `PATH`.
pub fn command_in(dir: &Path, command: &str) -> PathBuf {
    let command = Path::new(command);
    if command.components().count() > 1 { dir.join(command) } else { command.to_owned() }
}

/// Returns the tools that a step's agent gets.
pub fn tools(proxy: &Proxy) -> AgentTools {
    match (proxy.enable, proxy.intercept_builtins) {
        (false, _) => AgentTools::None,
        (true, true) => AgentTools::Only,
        (true, false) => AgentTools::Beside,
    }
}

pub(super) fn isolation(tools: AgentTools, reached: &Isolation) -> &'static str {
    match (tools, reached) {
        (AgentTools::None | AgentTools::Beside, _) => "none",
        (AgentTools::Only, Isolation::Full) => "full",
        (AgentTools::Only, Isolation::Coexistence { .. }) => "coexistence",
    }
}

/// The folders of a step.
pub struct StepFolders {
    /// The folder in which the tools work.
    pub work: PathBuf,
    /// The folder for the files of the agent's program.
    pub private: PathBuf,
}

/// Builds the request for an agent's program.
pub fn request(
    agent: &ResolvedAgent,
    server: AgentServer,
    tools: AgentTools,
    folders: StepFolders,
    call_timeout: Duration,
) -> AgentRequest {
    let options = &agent.options;
    AgentRequest {
        prompt: agent.prompt.clone(),
        system_prompt: agent.system_prompt.clone(),
        model: options.model.clone(),
        args: options.args.clone(),
        env: options.env.clone(),
        config: options.config.clone().map(serde_json::Value::Object),
        dir: folders.work,
        private: folders.private,
        server,
        tools,
        max_cost_usd: options.max_cost_usd,
        call_timeout,
    }
}

/// Returns the environment the agent's program inherits, with the changes of the launch.
fn environment(inherited: &[(OsString, OsString)], launch: &Launch) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsString| {
        let name = name.to_string_lossy();
        !name.starts_with("COUNTERSIGN_") && !launch.env_remove.iter().any(|gone| *gone == name)
    };
    let kept = inherited.iter().filter(|(name, _)| is_kept(name)).cloned();
    let added = launch.env.iter().map(|(name, value)| (name.into(), value.into()));
    kept.chain(added).collect()
}

fn failed(error: AgentError) -> Failure {
    Failure::new(error.code(), error.to_string())
}

fn say(span: &mut dyn Span, record: &StepRecord, made: &Result<StepOutcome, Failure>) {
    if let Some(model) = &record.model {
        span.set("model", Value::Text(model));
    }
    let tokens = match made {
        Ok(outcome) => outcome.tokens,
        Err(failure) => {
            span.fail(failure.code.as_str());
            failure.outcome.tokens
        }
    };
    if let Some(tokens) = tokens {
        span.set("tokens_used", Value::Integer(tokens.cast_signed()));
    }
}
