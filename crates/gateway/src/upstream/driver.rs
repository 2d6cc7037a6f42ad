//! Executes the actions of the connection's state machine: connects, waits, lists, closes,
//! publishes.

use std::sync::Arc;

use access::secrets::SecretSupply;
use access::sign_in::{SignIns, login_granted, login_needed};
use arc_swap::{ArcSwap, ArcSwapOption};
use domain::catalog::{Listing, Server, UnknownToolName};
use domain::config::Start;
use domain::policy::ServerRules;
use domain::upstream::{Effect, UpstreamEvent, UpstreamFailure, UpstreamMachine, UpstreamState};
use mcp::child::StderrTail;
use mcp::handshake::Welcome;
use mcp::message::raw;
use mcp::task;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use touch::targets::UnfitTargetRule;

use crate::catalogs::Publisher;
use crate::question::QuestionOrigin;
use crate::spec::ServerSpec;
use crate::trust::{ApprovalTerms, Extras, ListScope, Offer, Review, Reviewer, ToolList};
use crate::upstream::connection::Opening;
use crate::upstream::link::{LinkHandle, ServerLink, ServerLists};
use crate::upstream::listeners::Listeners;
use crate::upstream::own::OwnConnections;
use crate::upstream::pace::RelistPace;
use crate::upstream::refused_questions::RefusalLog;
use crate::upstream::server_side::SharedSide;
use crate::{GateSettings, limits};

pub(crate) enum DriverCommand {
    /// A caller needs the server: a lazy one starts now.
    Start,
    Restart,
    /// Only the shared connection starts over: that of a token that has signed in again.
    Relink,
    /// The operator's decisions may have changed; answered once they are in effect.
    Decided(Box<ServerSpec>, oneshot::Sender<()>),
    /// A person wants to see the list of a server that otherwise may not start.
    Inspect,
    Stop,
}

/// The state the driver shares with its handle.
pub(super) struct Wiring {
    pub(super) secrets: SecretSupply,
    pub(super) sign_ins: Option<Arc<SignIns>>,
    pub(super) publisher: Publisher,
    pub(super) settings: Arc<ArcSwap<GateSettings>>,
    pub(super) link: Arc<ArcSwapOption<LinkHandle>>,
    pub(super) own: Arc<OwnConnections>,
    pub(super) listeners: Arc<Listeners>,
    pub(super) welcome: Arc<ArcSwapOption<Welcome>>,
    pub(super) state: watch::Sender<UpstreamState>,
    pub(super) stderr: StderrTail,
    pub(super) reviewer: Reviewer,
}

pub(super) struct Driver {
    spec: ServerSpec,
    rules: Arc<ServerRules>,
    wiring: Wiring,
    /// Started for an inspection, regardless of the rules.
    inspected: bool,
    /// The gate's end of every connection this driver makes.
    side: Arc<SharedSide>,
    machine: UpstreamMachine,
    review: Review,
    /// The extras reviewed with it; `None` if the list did not come from a connection.
    extras: Option<Extras>,
    /// The unknown tool names in the config that were already reported.
    misnamed: Vec<UnknownToolName>,
    unfit: Vec<UnfitTargetRule>,
    link: Option<ServerLink>,
    attempt: Option<JoinHandle<ConnectResult>>,
    /// The list request under way, which may take a while.
    relisting: Option<JoinHandle<Result<ServerLists, UpstreamFailure>>>,
    retry_at: Option<Instant>,
    relist_at: Option<Instant>,
    /// The connections of single clients outlive the next disconnect: only the token that lists the
    /// tools changes.
    spares_own: bool,
    pace: RelistPace,
    sweep_at: Instant,
}

/// A link with the server's lists, or the reason there is none.
type ConnectResult = Result<(ServerLink, ServerLists), UpstreamFailure>;

/// The events the driver waits for.
enum Wakeup {
    Command(Option<DriverCommand>),
    ListChanged,
    Attempt(Box<ConnectResult>),
    Relisted(Result<ServerLists, UpstreamFailure>),
    Lost(UpstreamFailure),
    LoginNeeded,
    /// Somebody has signed in.
    LoginGranted,
    RetryDue,
    RelistDue,
    SweepDue,
}

impl Driver {
    pub(super) fn new(spec: ServerSpec, wiring: Wiring, known: Arc<Listing>) -> Driver {
        let log = RefusalLog {
            store: wiring.reviewer.store().clone(),
            settings: wiring.settings.clone(),
            origin: QuestionOrigin::of_server(&spec.name),
        };
        let listeners = wiring.listeners.clone();
        Driver {
            review: Review { listing: known, ..Review::default() },
            extras: None,
            misnamed: Vec::new(),
            unfit: Vec::new(),
            inspected: false,
            rules: Arc::new(spec.rules.clone()),
            spec,
            wiring,
            side: Arc::new(SharedSide::new(log, listeners)),
            machine: UpstreamMachine::default(),
            link: None,
            attempt: None,
            relisting: None,
            retry_at: None,
            relist_at: None,
            spares_own: false,
            pace: RelistPace::default(),
            sweep_at: Instant::now() + limits::OWN_CONNECTION_IDLE,
        }
    }

    pub(super) fn spawn(mut self, receiver: mpsc::Receiver<DriverCommand>) -> JoinHandle<()> {
        self.publish();
        task::spawn(self.run(receiver))
    }

    async fn run(mut self, mut receiver: mpsc::Receiver<DriverCommand>) {
        if !self.spec.may_start() {
            self.review = self.wiring.reviewer.remembered().await;
            self.publish();
        } else if self.is_eager() {
            self.feed(UpstreamEvent::Start).await;
        }
        while *self.machine.state() != UpstreamState::Stopped {
            let wakeup = self.next(&mut receiver).await;
            if let Some(event) = self.event(wakeup).await {
                self.feed(event).await;
                self.spares_own = false;
            }
        }
    }

    async fn event(&mut self, wakeup: Wakeup) -> Option<UpstreamEvent> {
        match wakeup {
            Wakeup::Command(Some(command)) => self.command(command).await,
            Wakeup::Command(None) => Some(UpstreamEvent::Stop),
            Wakeup::ListChanged => {
                let due = self.pace.announced(Instant::now());
                self.relist_at = Some(self.relist_at.map_or(due, |at| at.min(due)));
                None
            }
            Wakeup::RelistDue => {
                self.relist();
                None
            }
            Wakeup::Relisted(listed) => self.relisted(listed).await,
            Wakeup::SweepDue => {
                self.sweep_at = Instant::now() + limits::OWN_CONNECTION_IDLE;
                self.wiring.own.sweep().await;
                None
            }
            Wakeup::Attempt(attempt) => Some(match *attempt {
                Ok((link, lists)) => self.adopt(link, lists).await,
                Err(failure) => self.failed(failure),
            }),
            Wakeup::Lost(failure) => Some(self.failed(failure)),
            Wakeup::LoginNeeded => self.login_event(),
            Wakeup::LoginGranted => Some(UpstreamEvent::Restart),
            Wakeup::RetryDue => Some(UpstreamEvent::RetryDue),
        }
    }

    async fn command(&mut self, command: DriverCommand) -> Option<UpstreamEvent> {
        match command {
            DriverCommand::Start | DriverCommand::Restart | DriverCommand::Relink
                if !self.may_run() =>
            {
                None
            }
            DriverCommand::Start => Some(UpstreamEvent::Start),
            DriverCommand::Decided(spec, done) => {
                self.rules = Arc::new(spec.rules.clone());
                self.spec = *spec;
                self.review_again().await;
                self.publish();
                let _ = done.send(());
                None
            }
            DriverCommand::Inspect => {
                self.inspected |= !self.spec.may_start();
                Some(UpstreamEvent::Restart)
            }
            DriverCommand::Restart => Some(UpstreamEvent::Restart),
            DriverCommand::Relink => {
                self.spares_own = true;
                Some(UpstreamEvent::Restart)
            }
            DriverCommand::Stop => Some(UpstreamEvent::Stop),
        }
    }

    async fn next(&mut self, receiver: &mut mpsc::Receiver<DriverCommand>) -> Wakeup {
        let (retry_at, sweep_at) = (self.retry_at, self.sweep_at);
        let relist_at = self.relist_at.filter(|_| self.relisting.is_none());
        let needs_login = matches!(self.machine.state(), UpstreamState::NeedsLogin(_));
        let sign_ins = self.wiring.sign_ins.as_ref();
        tokio::select! {
            command = receiver.recv() => Wakeup::Command(command),
            () = self.side.list_changed.notified() => Wakeup::ListChanged,
            attempt = finished(&mut self.attempt) => {
                self.attempt = None;
                Wakeup::Attempt(Box::new(attempt))
            }
            listed = finished(&mut self.relisting) => {
                self.relisting = None;
                Wakeup::Relisted(listed)
            }
            failure = lost(&mut self.link) => Wakeup::Lost(failure),
            () = due(retry_at) => {
                self.retry_at = None;
                Wakeup::RetryDue
            }
            () = due(relist_at) => {
                self.relist_at = None;
                Wakeup::RelistDue
            }
            () = due(Some(sweep_at)) => Wakeup::SweepDue,
            () = login_needed(sign_ins) => Wakeup::LoginNeeded,
            () = login_granted(sign_ins, needs_login) => Wakeup::LoginGranted,
        }
    }

    async fn feed(&mut self, event: UpstreamEvent) {
        for effect in self.machine.on(event) {
            match effect {
                Effect::Connect => self.connect(),
                Effect::Disconnect => self.disconnect().await,
                Effect::RetryAfter(wait) => self.retry_at = Some(Instant::now() + wait),
                Effect::Publish => self.publish(),
            }
        }
    }

    fn connect(&mut self) {
        let (server, spec) = (self.spec.name.clone(), self.spec.clone());
        let sign_ins = self.wiring.sign_ins.clone();
        let (secrets, stderr) = (self.wiring.secrets.clone(), self.wiring.stderr.clone());
        let service = self.side.clone();
        let timeout = self.settings().connect_timeout;
        self.attempt = Some(task::spawn(async move {
            let sign_in = match &sign_ins {
                Some(sign_ins) => Some(sign_ins.lister().await),
                None => None,
            };
            let opening = Opening {
                server: &server,
                spec: &spec,
                sign_in: sign_in.as_ref(),
                secrets: &secrets,
                service,
                capabilities: raw("{}".to_owned()),
                stderr: &stderr,
                timeout,
            };
            ServerLink::open(opening).await
        }));
    }

    async fn adopt(&mut self, link: ServerLink, lists: ServerLists) -> UpstreamEvent {
        let is_late = lists.resources.is_none() && matches!(link, ServerLink::Server(_));
        self.take(lists, link.instructions(), link.info()).await;
        let handle = link.handle();
        if let LinkHandle::Server { peer, welcome, .. } = &handle {
            self.wiring.welcome.store(Some(welcome.clone()));
            self.wiring.listeners.wishes().ask(peer.clone(), self.settings().connect_timeout);
        }
        self.wiring.link.store(Some(Arc::new(handle)));
        self.link = Some(link);
        // Nothing waits for a slow list of resources, so that it is requested once more.
        let next =
            if is_late { limits::RELIST_PAUSE_MAX } else { self.settings().refresh_interval };
        self.relist_at = Some(Instant::now() + next);
        UpstreamEvent::Connected
    }

    fn relist(&mut self) {
        let timeout = self.settings().connect_timeout;
        self.relisting = self.link.as_ref().map(|link| {
            let handle = link.handle();
            task::spawn(async move { handle.list(timeout).await })
        });
    }

    async fn relisted(
        &mut self,
        listed: Result<ServerLists, UpstreamFailure>,
    ) -> Option<UpstreamEvent> {
        let link = self.link.as_mut()?;
        let lists = match listed {
            Ok(lists) => lists,
            Err(failure) => {
                let failure = link.explain(failure).await;
                return Some(self.failed(failure));
            }
        };
        let (instructions, info) = (link.instructions(), link.info());
        self.take(lists, instructions, info).await;
        // A change announced in the meantime is still due.
        let refresh_at = Instant::now() + self.settings().refresh_interval;
        self.relist_at.get_or_insert(refresh_at);
        self.publish();
        None
    }

    /// Reviews the server's current offer.
    async fn take(
        &mut self,
        lists: ServerLists,
        instructions: Option<String>,
        info: Option<Arc<str>>,
    ) {
        let ServerLists { tools, others, resources } = lists;
        let resources_changed = self.side.resources_changed();
        let known = || Some(self.review.listing.offer()?.resources().clone());
        let resources = match self.is_per_token() {
            // The resources of one person are not shown to another.
            true => Arc::default(),
            false => resources.or_else(known).unwrap_or_default(),
        };
        let extras = Extras { instructions, lists: others, resources, resources_changed };
        let extras = extras.bounded(&self.spec.name);
        let is_known = self.review.listing.is_of(&tools);
        let is_planned = self.review.listing.plan_source().info == info;
        // It was reviewed on arrival, and again after each decision.
        let is_kept = self.review.is_kept && self.extras.as_ref() == Some(&extras);
        if is_known && is_planned && is_kept {
            return;
        }
        self.extras = Some(extras.clone());
        let tools = if is_known {
            ToolList::Same(self.review.listing.clone())
        } else {
            ToolList::New(tools)
        };
        let offer = Offer { tools, extras, info };
        self.review = self.wiring.reviewer.review(offer, ListScope::Shared).await;
    }

    /// Reviews the list again after a decision about the server or its items.
    async fn review_again(&mut self) {
        let Wiring { publisher, reviewer, .. } = &self.wiring;
        reviewer.set_terms(ApprovalTerms::of(&self.spec), self.spec.rules.targets.clone());
        self.review = match self.link {
            Some(_) => {
                let tools = ToolList::Again(self.review.listing.clone());
                let info = self.review.listing.plan_source().info.clone();
                let offer = Offer { tools, extras: self.extras.clone().unwrap_or_default(), info };
                reviewer.review(offer, ListScope::Shared).await
            }
            None => {
                self.extras = None;
                reviewer.remembered().await
            }
        };
        for own in publisher.own_lists() {
            let tools = ToolList::Again(own.listing.clone());
            let info = own.listing.plan_source().info.clone();
            let offer = Offer { tools, extras: Extras::of_listing(&own.listing), info };
            let review = reviewer.review(offer, ListScope::Own).await;
            publisher.review_own(&own, review.listing);
        }
    }

    async fn disconnect(&mut self) {
        self.wiring.link.store(None);
        self.relist_at = None;
        if let Some(attempt) = self.attempt.take() {
            // Dropping the attempt kills the child it may have started.
            attempt.abort();
        }
        if let Some(relisting) = self.relisting.take() {
            relisting.abort();
        }
        if let Some(link) = self.link.take() {
            link.close().await;
        }
        if !self.spares_own {
            self.wiring.own.close_all().await;
        }
    }

    fn publish(&mut self) {
        let state = if self.may_run() {
            match self.machine.state() {
                // An eager server counts as connecting from the start: only a lazy one is idle.
                UpstreamState::Idle if self.is_eager() => UpstreamState::Connecting,
                state => state.clone(),
            }
        } else {
            // The server is shown but never started: no call has to wait for it.
            UpstreamState::Stopped
        };
        if *self.wiring.state.borrow() != state {
            self.log(&state);
        }
        let server = Server::new(
            self.spec.name.clone(),
            self.spec.endpoint.transport(),
            self.rules.clone(),
            state.clone(),
            self.review.listing.clone(),
        )
        .with_instructions(self.review.instructions.clone())
        .with_names(self.spec.endpoint.names());
        self.report_misnamed(server.misnamed());
        self.report_unfit(server.unfit_targets());
        self.wiring.publisher.publish(server);
        self.wiring.state.send_replace(state);
    }

    fn report_misnamed(&mut self, misnamed: Vec<UnknownToolName>) {
        if misnamed != self.misnamed {
            misnamed.iter().for_each(|text| tracing::warn!(server = %self.spec.name, "{text}"));
            self.misnamed = misnamed;
        }
    }

    fn report_unfit(&mut self, unfit: &[UnfitTargetRule]) {
        if unfit != self.unfit {
            unfit.iter().for_each(|rule| tracing::warn!(server = %self.spec.name, "{rule}"));
            self.unfit = unfit.to_vec();
        }
    }

    fn may_run(&self) -> bool {
        self.inspected || self.spec.may_start()
    }

    fn is_eager(&self) -> bool {
        self.spec.connection.start == Start::Eager
    }

    fn settings(&self) -> Arc<GateSettings> {
        self.wiring.settings.load_full()
    }

    fn log(&self, state: &UpstreamState) {
        let server = &self.spec.name;
        match state {
            UpstreamState::Ready => {
                tracing::info!(%server, tools = self.review.listing.tools().len(), "connected")
            }
            UpstreamState::Waiting(failure) | UpstreamState::NeedsLogin(failure) => {
                tracing::warn!(%server, reason = %failure, "unavailable");
            }
            UpstreamState::Idle | UpstreamState::Connecting | UpstreamState::Stopped => {}
        }
    }
}

impl Driver {
    /// Returns the event for a failure: a server that needs a sign-in is not tried again.
    fn failed(&mut self, failure: UpstreamFailure) -> UpstreamEvent {
        self.login_event().unwrap_or_else(|| failed(failure))
    }

    /// Returns the event for a sign-in that is needed. Another token may be able to list the tools.
    fn login_event(&mut self) -> Option<UpstreamEvent> {
        let sign_ins = self.wiring.sign_ins.as_ref()?;
        if sign_ins.drops_lister() {
            self.spares_own = true;
            return Some(UpstreamEvent::Restart);
        }
        Some(UpstreamEvent::LoginNeeded(sign_ins.need()?.into()))
    }

    fn is_per_token(&self) -> bool {
        self.wiring.sign_ins.as_ref().is_some_and(|sign_ins| sign_ins.is_per_token())
    }
}

fn failed(failure: UpstreamFailure) -> UpstreamEvent {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    UpstreamEvent::Failed { failure, jitter: f64::from(random) / f64::from(u32::MAX) }
}

async fn finished<T>(
    task: &mut Option<JoinHandle<Result<T, UpstreamFailure>>>,
) -> Result<T, UpstreamFailure> {
    match task {
        Some(task) => task.await.unwrap_or_else(|error| Err(error.to_string().into())),
        None => std::future::pending().await,
    }
}

async fn lost(link: &mut Option<ServerLink>) -> UpstreamFailure {
    match link {
        Some(link) => link.lost().await,
        None => std::future::pending().await,
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
