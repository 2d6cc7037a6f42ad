//! A server's requests to the gate. On the connection that all clients share, almost none are
//! allowed, since they could not be attributed to one client. On a client's own connection, the
//! server may ask what that client declared: for sampling and elicitation a few times within a
//! running call, for roots at any time. Refused questions are recorded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::method::Method;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use mcp::ErrorObject;
use mcp::message::{Notification, Raw, Request, raw};
use mcp::peer::{Peer, RequestContext, RequestError, Service};
use provider::{AskClient, Call, CallContext};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::limits;
use crate::place::ClientRoots;
use crate::question::AskingCall;
use crate::upstream::listeners::{ClientQueue, Listeners};
use crate::upstream::refused_questions::{QuestionRefusal, RefusalCounts, RefusalLog};

/// The capabilities of a client that let a server ask it something.
pub(super) const CLIENT_CAPABILITIES: [&str; 3] = ["sampling", "elicitation", "roots"];

/// The capabilities that say which of its own features a client uses.
pub(super) const CLIENT_EXTENSIONS: [&str; 2] = ["experimental", "extensions"];

const SAMPLING: &str = "sampling/createMessage";
const ELICITATION: &str = "elicitation/create";
const ROOTS: &str = "roots/list";

/// Placeholder for any custom method of a server where refused questions are counted.
const CUSTOM: &str = "custom method";

const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";

/// Announcements of lists that the gate reads and reviews itself.
pub(super) const LISTS_CHANGED: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/prompts/list_changed", RESOURCES_CHANGED];

/// Signals that a server announced a change of its lists.
#[derive(Default)]
pub(super) struct Announcements {
    changed: Notify,
    resources: AtomicU64,
}

impl Announcements {
    /// Takes an announcement; returns any other notification.
    fn take(&self, notification: Notification) -> Option<Notification> {
        if !LISTS_CHANGED.contains(&notification.method.as_str()) {
            return Some(notification);
        }
        if notification.method == RESOURCES_CHANGED {
            self.resources.fetch_add(1, Ordering::Relaxed);
        }
        self.changed.notify_one();
        None
    }

    pub(super) async fn notified(&self) {
        self.changed.notified().await;
    }
}

/// The gate's end of the shared connection.
pub(super) struct SharedSide {
    pub(super) list_changed: Announcements,
    listeners: Arc<Listeners>,
    refused: Mutex<RefusalCounts>,
    log: RefusalLog,
}

impl SharedSide {
    pub(super) fn new(log: RefusalLog, listeners: Arc<Listeners>) -> SharedSide {
        let list_changed = Announcements::default();
        SharedSide { list_changed, listeners, refused: Mutex::default(), log }
    }

    /// Returns how often the server announced other resources.
    pub(super) fn resources_changed(&self) -> u64 {
        self.list_changed.resources.load(Ordering::Relaxed)
    }

    fn answer(&self, request: &Request) -> Result<Raw, ErrorObject> {
        let asked = [SAMPLING, ELICITATION, ROOTS].into_iter().find(|name| *name == request.method);
        let Some(method) = asked else {
            return own_answer(request);
        };
        let refusal = QuestionRefusal::Shared;
        let mut counts = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        self.log.add(&mut counts, refusal, method);
        Err(refusal.error(method))
    }
}

impl Drop for SharedSide {
    fn drop(&mut self) {
        let refused = self.refused.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.log.finish(None, std::mem::take(refused));
    }
}

impl Service for SharedSide {
    fn request(
        &self,
        request: Request,
        _incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        async move { self.answer(&request) }.boxed()
    }

    fn notification(&self, notification: Notification, _peer: Peer) {
        if let Some(notification) = self.list_changed.take(notification) {
            self.listeners.hear(&notification);
        }
    }

    fn renewed(&self, peer: Peer) {
        self.listeners.wishes().ask(peer, limits::QUESTION_WAIT);
    }
}

fn own_answer(request: &Request) -> Result<Raw, ErrorObject> {
    match request.method.as_str() {
        "ping" => Ok(raw("{}".to_owned())),
        other => Err(ErrorObject::method_not_found(other)),
    }
}

/// The gate's end of a client's own connection.
pub(super) struct ClientSide {
    known: Mutex<ClientState>,
    /// Limits concurrent requests for roots.
    roots: Semaphore,
    server: Arc<str>,
    session: Arc<str>,
    listeners: Arc<Listeners>,
    pub(super) list_changed: Announcements,
    log: RefusalLog,
}

#[derive(Default)]
struct ClientState {
    /// The client's running calls by number, the latest last.
    running: BTreeMap<u64, RunningState>,
    entered: u64,
    /// The client itself: a server may request roots at any time.
    client: Option<Arc<dyn AskClient>>,
    /// Carries notifications to the client between its calls.
    queue: Option<ClientQueue>,
    /// The client's last answer to a request for roots.
    roots: ClientRoots,
    /// Questions that were refused, except for those that a call counts.
    refused: RefusalCounts,
}

struct RunningState {
    /// The call's context; cancelled when the call ends.
    ctx: CallContext,
    /// Questions asked within the call.
    asked: usize,
    call: AskingCall,
    refused: RefusalCounts,
}

impl ClientSide {
    pub(super) fn new(
        server: &Arc<str>,
        session: &Arc<str>,
        listeners: &Arc<Listeners>,
        log: RefusalLog,
    ) -> ClientSide {
        ClientSide {
            session: session.clone(),
            listeners: listeners.clone(),
            known: Mutex::default(),
            roots: Semaphore::new(limits::ROOTS_REQUESTS_MAX),
            server: server.clone(),
            list_changed: Announcements::default(),
            log,
        }
    }

    /// Returns how often the server announced other resources to this client.
    pub(super) fn resources_changed(&self) -> u64 {
        self.list_changed.resources.load(Ordering::Relaxed)
    }

    /// Registers the client before its connection is opened.
    pub(super) fn meet(&self, ctx: &CallContext) {
        let mut known = self.lock();
        if known.client.is_none() {
            known.client = ctx.ask_client.as_ref().map(|client| client.between_calls());
            let client = known.client.clone();
            known.queue = client.map(|client| ClientQueue::new(&self.server, client));
        }
    }

    /// Routes questions through this call until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>, call: &Call, ctx: &CallContext) -> RunningCall {
        let cancel = ctx.cancel.child_token();
        let state = RunningState {
            ctx: CallContext { cancel, ..ctx.clone() },
            asked: 0,
            call: AskingCall::of(call),
            refused: RefusalCounts::default(),
        };
        let mut known = self.lock();
        known.entered += 1;
        let number = known.entered;
        known.running.insert(number, state);
        RunningCall { side: self.clone(), number }
    }

    /// Returns the roots that the client named to the server.
    pub(super) fn roots(&self) -> ClientRoots {
        self.lock().roots.clone()
    }

    fn lock(&self) -> MutexGuard<'_, ClientState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, request: Request) -> Result<Raw, ErrorObject> {
        match request.method.as_str() {
            ROOTS => {
                let answer = self.ask_roots(request).await?;
                self.lock().roots = ClientRoots::of_answer(&answer);
                Ok(answer)
            }
            SAMPLING => self.ask_within_call(SAMPLING, request.params).await,
            ELICITATION => self.ask_within_call(ELICITATION, request.params).await,
            other if Method::of_request(other) == Some(Method::Custom) => {
                self.ask_custom(&request.method, request.params).await
            }
            _ => own_answer(&request),
        }
    }

    /// Asks within the client's latest call: only then does the client expect it. Nothing shows which
    /// of several calls the question belongs to, so that it lasts until all of them have ended.
    async fn ask_within_call(
        &self,
        method: &'static str,
        params: Option<Raw>,
    ) -> Result<Raw, ErrorObject> {
        let (ctx, calls) = self.admit(method).map_err(|refusal| refusal.error(method))?;
        let capability = if method == SAMPLING { "sampling" } else { "elicitation" };
        let client = ctx.ask_client.as_ref();
        let Some(client) = client.filter(|client| client.capability(capability).is_some()) else {
            return Err(ErrorObject::method_not_found(method));
        };
        let cancel = CancellationToken::new();
        let lasting = CallContext { cancel: cancel.clone(), ..ctx.clone() };
        let mut asking = client.ask(method, params, &lasting);
        let ended = join_all(calls.iter().map(CancellationToken::cancelled));
        let answer = tokio::select! {
            biased;
            answer = &mut asking => answer,
            _ = ended => {
                cancel.cancel();
                asking.await
            }
        };
        answer.map_err(unanswered)
    }

    /// Passes on a request of a method of the server's own, within the client's latest call, if the
    /// client chose the server.
    async fn ask_custom(&self, method: &str, params: Option<Raw>) -> Result<Raw, ErrorObject> {
        let (ctx, _) = self.admit(CUSTOM).map_err(|refusal| refusal.error(CUSTOM))?;
        match ctx.ask_client.as_ref().filter(|client| client.hears(&self.server)) {
            Some(client) => client.ask(method, params, &ctx).await.map_err(unanswered),
            None => Err(ErrorObject::method_not_found(method)),
        }
    }

    /// Passes a notification to the client: within its latest call if there is one, so that it
    /// arrives before the result, and otherwise outside of any.
    fn pass(&self, notification: Notification) {
        let notices = {
            let known = self.lock();
            known.running.values().next_back().and_then(|latest| latest.ctx.notices.clone())
        };
        let left = match notices {
            Some(notices) => notices(notification),
            None => Some(notification),
        };
        if let Some(notification) = left
            && let Some(queue) = &self.lock().queue
        {
            queue.push(notification);
        }
    }

    /// Counts a question; returns the context of the latest call, and the ends of all that run.
    fn admit(
        &self,
        method: &'static str,
    ) -> Result<(CallContext, Vec<CancellationToken>), QuestionRefusal> {
        let mut known = self.lock();
        let calls = known.running.values().map(|call| call.ctx.cancel.clone()).collect();
        let Some(latest) = known.running.values_mut().next_back() else {
            let refusal = QuestionRefusal::OutsideCalls;
            self.log.add(&mut known.refused, refusal, method);
            return Err(refusal);
        };
        if latest.asked >= limits::CALL_QUESTIONS_MAX {
            latest.refused.add(QuestionRefusal::CallBound, method);
            return Err(QuestionRefusal::CallBound);
        }
        latest.asked += 1;
        Ok((latest.ctx.clone(), calls))
    }

    fn refuse_roots(&self, refusal: QuestionRefusal) -> ErrorObject {
        self.log.add(&mut self.lock().refused, refusal, ROOTS);
        refusal.error(ROOTS)
    }

    /// Asks within the client's latest call, or outside of any.
    async fn ask_roots(&self, request: Request) -> Result<Raw, ErrorObject> {
        let Ok(_one_of_few) = self.roots.try_acquire() else {
            return Err(self.refuse_roots(QuestionRefusal::RootsBound));
        };
        if request.params.as_ref().is_some_and(|p| p.get().len() > limits::ROOTS_PARAMS_BYTES_MAX) {
            return Err(self.refuse_roots(QuestionRefusal::RootsSize));
        }
        let (latest, client) = {
            let known = self.lock();
            let latest = known.running.last_key_value();
            (latest.map(|(_, state)| state.ctx.clone()), known.client.clone())
        };
        let has_roots = |client: &&Arc<dyn AskClient>| client.capability("roots").is_some();
        if let Some(ctx) = latest
            && let Some(client) = ctx.ask_client.as_ref().filter(has_roots)
        {
            match client.ask(ROOTS, request.params.clone(), &ctx).await {
                // The call has ended meanwhile; the client may still be connected.
                Err(RequestError::Closed(_) | RequestError::Cancelled) => {}
                answer => return answer.map_err(unanswered),
            }
        }
        let Some(client) = client.as_ref().filter(has_roots) else {
            return Err(ErrorObject::method_not_found(ROOTS));
        };
        let ctx = CallContext::within(limits::QUESTION_WAIT);
        client.ask(ROOTS, request.params, &ctx).await.map_err(unanswered)
    }
}

fn unanswered(error: RequestError) -> ErrorObject {
    match error {
        RequestError::Refused(error) => error,
        RequestError::Cancelled => ErrorObject::internal("the call has ended"),
        other => ErrorObject::internal(format!("the client did not answer: {other}")),
    }
}

pub(super) struct RunningCall {
    side: Arc<ClientSide>,
    number: u64,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let ended = self.side.lock().running.remove(&self.number);
        if let Some(ended) = ended {
            ended.ctx.cancel.cancel();
            self.side.log.finish(Some(&ended.call), ended.refused);
        }
    }
}

impl Drop for ClientSide {
    fn drop(&mut self) {
        let refused = std::mem::take(&mut self.lock().refused);
        self.log.finish(None, refused);
    }
}

impl Service for ClientSide {
    fn request(
        &self,
        request: Request,
        _incoming: RequestContext,
    ) -> BoxFuture<'_, Result<Raw, ErrorObject>> {
        self.ask(request).boxed()
    }

    fn notification(&self, notification: Notification, _peer: Peer) {
        if let Some(notification) = self.list_changed.take(notification) {
            self.pass(notification);
        }
    }

    fn renewed(&self, peer: Peer) {
        self.listeners.wishes_of(&self.session).ask(peer, limits::QUESTION_WAIT);
    }
}
