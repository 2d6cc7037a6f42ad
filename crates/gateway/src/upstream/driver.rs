//! Performs what the connection's machine asks for: connects, waits, lists, closes, publishes.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use domain::catalog::{Misnamed, Server};
use domain::config::Start;
use domain::policy::ServerRules;
use domain::upstream::{Effect, Event, Machine, State};
use mcp::child::StderrTail;
use mcp::message::Raw;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::trust::{Reviewed, Reviewer, Said, Terms, Told, Tools, Whose};
use crate::upstream::endpoint::ServerSpec;
use crate::upstream::kept::{Kept, Listed};
use crate::upstream::own::OwnConnections;
use crate::upstream::server_side::SharedSide;
use crate::upstream::{Context, Live};
use crate::{Settings, limits};

pub(crate) enum Command {
    /// Somebody needs the server: a lazy one starts now.
    Wanted,
    ListChanged,
    Restart,
    /// What people decided may have changed; answered when it is in effect.
    Decided(Box<ServerSpec>, oneshot::Sender<()>),
    /// A person wants to see what a server lists that is not to be started otherwise.
    Inspect,
    Stop,
}

/// What the driver shares with the handle that others hold.
pub(super) struct Shared {
    pub(super) context: Context,
    pub(super) live: Arc<ArcSwapOption<Live>>,
    pub(super) own: Arc<OwnConnections>,
    pub(super) state: watch::Sender<State>,
    pub(super) stderr: StderrTail,
    pub(super) reviewer: Reviewer,
}

pub(super) struct Driver {
    spec: ServerSpec,
    rules: Arc<ServerRules>,
    shared: Shared,
    /// Started for an inspection, whatever the rules say.
    inspected: bool,
    commands: mpsc::WeakSender<Command>,
    machine: Machine,
    reviewed: Reviewed,
    /// What was reviewed with it; none where it was not told on a connection.
    said: Option<Said>,
    /// What was told of names in the config.
    misnamed: Vec<Misnamed>,
    connection: Option<Kept>,
    attempt: Option<JoinHandle<Attempt>>,
    /// The list that was asked for again; it may take its time.
    relisting: Option<JoinHandle<Result<Listed, String>>>,
    retry_at: Option<Instant>,
    relist_at: Option<Instant>,
    sweep_at: Instant,
}

/// A connection with what it listed, or why there is none.
type Attempt = Result<(Kept, Listed), String>;

/// What the driver waits for.
enum Happening {
    Command(Option<Command>),
    Attempt(Box<Attempt>),
    Relisted(Result<Listed, String>),
    Lost(String),
    RetryDue,
    RelistDue,
    SweepDue,
}

impl Driver {
    pub(super) fn new(
        spec: ServerSpec,
        shared: Shared,
        commands: mpsc::WeakSender<Command>,
    ) -> Driver {
        Driver {
            reviewed: Reviewed { listing: shared.context.known.clone(), ..Reviewed::default() },
            said: None,
            misnamed: Vec::new(),
            inspected: false,
            rules: Arc::new(spec.rules.clone()),
            spec,
            shared,
            commands,
            machine: Machine::default(),
            connection: None,
            attempt: None,
            relisting: None,
            retry_at: None,
            relist_at: None,
            sweep_at: Instant::now() + limits::OWN_CONNECTION_IDLE,
        }
    }

    pub(super) fn spawn(mut self, receiver: mpsc::Receiver<Command>) -> JoinHandle<()> {
        self.publish();
        tokio::spawn(self.run(receiver))
    }

    async fn run(mut self, mut receiver: mpsc::Receiver<Command>) {
        if !self.spec.may_start() {
            self.reviewed = self.shared.reviewer.remembered().await;
            self.publish();
        } else if self.is_eager() {
            self.feed(Event::Start).await;
        }
        while *self.machine.state() != State::Stopped {
            let happening = self.next(&mut receiver).await;
            if let Some(event) = self.event(happening).await {
                self.feed(event).await;
            }
        }
    }

    async fn event(&mut self, happening: Happening) -> Option<Event> {
        match happening {
            Happening::Command(Some(command)) => self.command(command).await,
            Happening::Command(None) => Some(Event::Stop),
            Happening::RelistDue => {
                self.relist();
                None
            }
            Happening::Relisted(listed) => self.relisted(listed).await,
            Happening::SweepDue => {
                self.sweep_at = Instant::now() + limits::OWN_CONNECTION_IDLE;
                self.shared.own.sweep().await;
                None
            }
            Happening::Attempt(attempt) => Some(match *attempt {
                Ok((connection, listed)) => self.adopt(connection, listed).await,
                Err(reason) => failed(reason),
            }),
            Happening::Lost(reason) => Some(failed(reason)),
            Happening::RetryDue => Some(Event::RetryDue),
        }
    }

    async fn command(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::Wanted | Command::Restart if !self.may_run() => None,
            Command::Wanted => Some(Event::Start),
            Command::ListChanged => {
                // Changes without end must not put it off without end.
                let soon = Instant::now() + limits::RELIST_PAUSE;
                self.relist_at = Some(self.relist_at.map_or(soon, |at| at.min(soon)));
                None
            }
            Command::Decided(spec, done) => {
                self.rules = Arc::new(spec.rules.clone());
                self.spec = *spec;
                self.review_again().await;
                self.publish();
                let _ = done.send(());
                None
            }
            Command::Inspect => {
                self.inspected |= !self.spec.may_start();
                Some(Event::Restart)
            }
            Command::Restart => Some(Event::Restart),
            Command::Stop => Some(Event::Stop),
        }
    }

    async fn next(&mut self, receiver: &mut mpsc::Receiver<Command>) -> Happening {
        let (retry_at, sweep_at) = (self.retry_at, self.sweep_at);
        let relist_at = self.relist_at.filter(|_| self.relisting.is_none());
        tokio::select! {
            command = receiver.recv() => Happening::Command(command),
            attempt = finished(&mut self.attempt) => {
                self.attempt = None;
                Happening::Attempt(Box::new(attempt))
            }
            listed = finished(&mut self.relisting) => {
                self.relisting = None;
                Happening::Relisted(listed)
            }
            reason = lost(&mut self.connection) => Happening::Lost(reason),
            () = due(retry_at) => {
                self.retry_at = None;
                Happening::RetryDue
            }
            () = due(relist_at) => {
                self.relist_at = None;
                Happening::RelistDue
            }
            () = due(Some(sweep_at)) => Happening::SweepDue,
        }
    }

    async fn feed(&mut self, event: Event) {
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
        let endpoint = self.spec.endpoint.clone();
        let stderr = self.shared.stderr.clone();
        let service = Arc::new(SharedSide { commands: self.commands.clone() });
        let timeout = self.settings().connect_timeout;
        self.attempt =
            Some(tokio::spawn(
                async move { Kept::open(&endpoint, service, &stderr, timeout).await },
            ));
    }

    async fn adopt(&mut self, connection: Kept, (tools, others): Listed) -> Event {
        let said = Said { instructions: connection.instructions(), others };
        self.list(tools, said).await;
        self.shared.live.store(Some(Arc::new(connection.live())));
        self.connection = Some(connection);
        self.relist_at = Some(Instant::now() + self.settings().refresh_interval);
        Event::Connected
    }

    fn relist(&mut self) {
        let timeout = self.settings().connect_timeout;
        self.relisting = self.connection.as_ref().map(|connection| {
            let live = connection.live();
            tokio::spawn(async move { live.list(timeout).await })
        });
    }

    async fn relisted(&mut self, listed: Result<Listed, String>) -> Option<Event> {
        let connection = self.connection.as_mut()?;
        let (tools, others) = match listed {
            Ok(listed) => listed,
            Err(reason) => return Some(failed(connection.reason(reason).await)),
        };
        let said = Said { instructions: connection.instructions(), others };
        self.list(tools, said).await;
        // A change that was told in the meantime stays due.
        let refresh_at = Instant::now() + self.settings().refresh_interval;
        self.relist_at.get_or_insert(refresh_at);
        self.publish();
        None
    }

    async fn list(&mut self, tools: Vec<Raw>, said: Said) {
        let is_known = self.reviewed.listing.is_of(&tools);
        // What was told was reviewed when it came, and again whenever somebody decided something.
        if is_known && self.reviewed.is_kept && self.said.as_ref() == Some(&said) {
            return;
        }
        self.said = Some(said.clone());
        let tools = if is_known {
            Tools::Same(self.reviewed.listing.clone())
        } else {
            Tools::Listed(tools)
        };
        let told = Told { tools, said };
        self.reviewed = self.shared.reviewer.review(told, Whose::Shared).await;
    }

    /// Somebody decided something about the server or what it lists.
    async fn review_again(&mut self) {
        let Shared { context, reviewer, .. } = &self.shared;
        reviewer.set_terms(Terms::of(&self.spec));
        self.reviewed = match self.connection {
            Some(_) => {
                let tools = Tools::Again(self.reviewed.listing.clone());
                let told = Told { tools, said: self.said.clone().unwrap_or_default() };
                reviewer.review(told, Whose::Shared).await
            }
            None => {
                self.said = None;
                reviewer.remembered().await
            }
        };
        for (session, listing) in context.registry.own_lists_of(&self.spec.name) {
            let told = Told { tools: Tools::Again(listing.clone()), said: Said::default() };
            let (claim, server) = (context.claim, &self.spec.name);
            let reviewed = reviewer.review(told, Whose::Own).await.listing;
            context.registry.review_own(claim, &session, server, (&listing, reviewed));
        }
    }

    async fn disconnect(&mut self) {
        self.shared.live.store(None);
        self.relist_at = None;
        if let Some(attempt) = self.attempt.take() {
            // Dropping the attempt ends the child that it may have started.
            attempt.abort();
        }
        if let Some(relisting) = self.relisting.take() {
            relisting.abort();
        }
        if let Some(connection) = self.connection.take() {
            connection.close().await;
        }
        self.shared.own.close_all().await;
    }

    fn publish(&mut self) {
        let state = if self.may_run() {
            match self.machine.state() {
                // On its way from the beginning: only a lazy one is idle.
                State::Idle if self.is_eager() => State::Connecting,
                state => state.clone(),
            }
        } else {
            // Shown, and never started: nobody has to wait for it.
            State::Stopped
        };
        if *self.shared.state.borrow() != state {
            self.log(&state);
        }
        let server = Server::new(
            self.spec.name.clone(),
            self.spec.endpoint.transport(),
            self.rules.clone(),
            state.clone(),
            self.reviewed.listing.clone(),
        )
        .with_instructions(self.reviewed.instructions.clone())
        .with_names(self.spec.endpoint.names());
        self.tell_misnamed(server.misnamed());
        let context = &self.shared.context;
        context.registry.publish(context.claim, server);
        self.shared.state.send_replace(state);
    }

    fn tell_misnamed(&mut self, misnamed: Vec<Misnamed>) {
        if misnamed != self.misnamed {
            misnamed.iter().for_each(|text| tracing::warn!(server = %self.spec.name, "{text}"));
            self.misnamed = misnamed;
        }
    }

    fn may_run(&self) -> bool {
        self.inspected || self.spec.may_start()
    }

    fn is_eager(&self) -> bool {
        self.spec.keeping.start == Start::Eager
    }

    fn settings(&self) -> Arc<Settings> {
        self.shared.context.settings.load_full()
    }

    fn log(&self, state: &State) {
        let server = &self.spec.name;
        match state {
            State::Ready => {
                tracing::info!(%server, tools = self.reviewed.listing.tools().len(), "connected")
            }
            State::Waiting(reason) => tracing::warn!(%server, reason, "unavailable"),
            State::Idle | State::Connecting | State::Stopped => {}
        }
    }
}

fn failed(reason: String) -> Event {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    Event::Failed { reason, jitter: f64::from(random) / f64::from(u32::MAX) }
}

async fn finished<T>(task: &mut Option<JoinHandle<Result<T, String>>>) -> Result<T, String> {
    match task {
        Some(task) => task.await.unwrap_or_else(|error| Err(error.to_string())),
        None => std::future::pending().await,
    }
}

async fn lost(connection: &mut Option<Kept>) -> String {
    match connection {
        Some(connection) => connection.lost().await,
        None => std::future::pending().await,
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
