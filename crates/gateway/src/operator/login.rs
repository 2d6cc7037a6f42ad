//! Signing in to servers, and out. A sign-in that was begun is kept in memory until its response
//! arrives, which is recognised by its `state` alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use access::sign_in::{
    DeviceLogin, GrantHolder, LOGIN_LIFETIME, SignIn, SignIns, StartedLogin, TokenLogin,
    forget_grants,
};
use domain::caller::TokenId;
use domain::upstream::UpstreamState;
use domain::{Caller, Catalog, Code, Refusal};
use futures_util::future::join_all;
use mcp::authorization::{CallbackParameters, DevicePoll, redirect_port};
use mcp::task;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::operator::decision::{DecisionSource, DecisionSubject};
use crate::operator::refusal::conflict;
use crate::upstream::Upstream;
use crate::{Gateway, limits};

/// The sign-ins that were begun.
#[derive(Default)]
pub(crate) struct Logins {
    pending: Mutex<Vec<PendingLogin>>,
    /// The state of the last sign-in of each kind.
    progress: Mutex<HashMap<LoginTarget, LoginProgress>>,
}

/// The server to sign in to, and the agent token to do it for, where each signs in for itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoginTarget {
    pub server: String,
    pub token: Option<String>,
}

struct PendingLogin {
    target: LoginTarget,
    by: DecisionSource,
    begun: Instant,
    login: StartedLogin,
}

/// The state of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginProgress {
    Pending,
    Done,
    Failed(String),
}

impl LoginProgress {
    pub const WORDS: [&'static str; 4] = ["none", "pending", "done", "failed"];

    pub fn as_str(&self) -> &'static str {
        match self {
            LoginProgress::Pending => "pending",
            LoginProgress::Done => "done",
            LoginProgress::Failed(_) => "failed",
        }
    }
}

/// A sign-in that waits for a person.
#[derive(Clone, Debug)]
pub struct LoginInvitation {
    /// The address to open in a browser.
    pub address: String,
    /// The code to enter there, in the device flow.
    pub user_code: Option<String>,
    pub lifetime: Duration,
}

impl LoginTarget {
    /// Returns the details of a decision about it.
    fn details(&self, decision: &str) -> Value {
        let mut details = json!({"decision": decision});
        if let Some(token) = &self.token {
            details["token"] = token.as_str().into();
        }
        details
    }
}

impl Logins {
    fn pending(&self) -> MutexGuard<'_, Vec<PendingLogin>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, login: PendingLogin) {
        let mut pending = self.pending();
        pending.retain(|known| known.begun.elapsed() < LOGIN_LIFETIME);
        let excess = (pending.len() + 1).saturating_sub(limits::LOGINS_PENDING_MAX);
        pending.drain(..excess);
        self.report(&login.target, LoginProgress::Pending);
        pending.push(login);
    }

    /// Takes the sign-in that a response belongs to. It can be taken once.
    fn take(&self, state: Option<&str>) -> Option<PendingLogin> {
        let state = state?;
        let mut pending = self.pending();
        pending.retain(|known| known.begun.elapsed() < LOGIN_LIFETIME);
        let place = pending.iter().position(|known| known.login.state() == state)?;
        Some(pending.remove(place))
    }

    fn report(&self, target: &LoginTarget, progress: LoginProgress) {
        let mut known = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(target.clone(), progress);
    }
}

fn failed(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::SignInFailed, message)
}

impl Gateway {
    /// Begins a sign-in in a browser, which returns to `redirect` on this machine.
    pub async fn start_login(
        &self,
        by: DecisionSource,
        target: &LoginTarget,
        redirect: &str,
    ) -> Result<LoginInvitation, Refusal> {
        if redirect_port(redirect).is_none() {
            let message = "a sign-in returns to an address like http://127.0.0.1:PORT/callback";
            return Err(
                Refusal::new(Code::InvalidRequest, message).with(json!({"field": "redirect_uri"}))
            );
        }
        let (_, sign_in) = self.signing_in(target).await?;
        let login = sign_in.begin(redirect).await.map_err(|error| failed(error.to_string()))?;
        let address = login.address().to_owned();
        let begun = Instant::now();
        self.shared.logins.add(PendingLogin { target: target.clone(), by, begun, login });
        Ok(LoginInvitation { address, user_code: None, lifetime: LOGIN_LIFETIME })
    }

    /// Begins a sign-in with a code, which completes in the background.
    pub async fn start_device_login(
        &self,
        by: DecisionSource,
        target: &LoginTarget,
    ) -> Result<LoginInvitation, Refusal> {
        let (_, sign_in) = self.signing_in(target).await?;
        let login = sign_in.begin_device().await.map_err(|error| failed(error.to_string()))?;
        let code = &login.code;
        let invitation = LoginInvitation {
            address: code.whole_address.clone().unwrap_or_else(|| code.address.clone()),
            user_code: Some(code.user_code.clone()),
            lifetime: code.lifetime,
        };
        self.shared.logins.report(target, LoginProgress::Pending);
        let (gateway, target) = (self.clone(), target.clone());
        task::spawn_tracked(&self.shared.retiring, async move {
            let draining = gateway.draining();
            tokio::select! {
                () = gateway.await_device(&by, &target, login) => {}
                () = draining.cancelled() => {}
            }
        });
        Ok(invitation)
    }

    async fn await_device(
        &self,
        by: &DecisionSource,
        target: &LoginTarget,
        mut login: DeviceLogin,
    ) {
        let until = Instant::now() + login.code.lifetime;
        let mut wait = login.code.interval;
        let outcome = loop {
            if Instant::now() + wait >= until {
                break Err("nobody entered the code in time".to_owned());
            }
            tokio::time::sleep(wait).await;
            match login.endpoint.poll(&mut login.code).await {
                Ok(DevicePoll::Wait(longer)) => wait = longer,
                Ok(DevicePoll::Issued(issued)) => {
                    let recorded = match self.check_holder(target, login.holder()).await {
                        Ok(()) => self.record_login(by, target).await,
                        Err(refusal) => Err(refusal),
                    };
                    if let Err(refusal) = recorded {
                        break Err(refusal.message);
                    }
                    break login.finish(issued).await;
                }
                Err(error) => break Err(error.to_string()),
            }
        };
        let _ = self.ended_login(target, outcome).await;
    }

    /// Ends the sign-in that a response belongs to; returns the name of the server. A response to no
    /// sign-in changes nothing.
    pub async fn finish_login(&self, response: &str) -> Result<String, Refusal> {
        let response = CallbackParameters::parse(response);
        let response = response.map_err(|error| failed(error.to_string()))?;
        let Some(pending) = self.shared.logins.take(response.state.as_deref()) else {
            return Err(failed(
                "no sign-in waits for this response: it has ended, or is older than ten minutes",
            ));
        };
        let PendingLogin { target, by, login, .. } = pending;
        if let Err(refusal) = self.check_holder(&target, login.holder()).await {
            let failed = LoginProgress::Failed(refusal.message.clone());
            self.shared.logins.report(&target, failed);
            return Err(refusal);
        }
        self.record_login(&by, &target).await?;
        let outcome = login.finish(&response).await;
        self.ended_login(&target, outcome).await?;
        Ok(target.server)
    }

    /// Checks that a sign-in is still for the token that it was begun for: that one may have been
    /// revoked since, and another may have its name.
    async fn check_holder(&self, target: &LoginTarget, of: &GrantHolder) -> Result<(), Refusal> {
        let (_, sign_in) = self.signing_in(target).await?;
        if sign_in.holder() == of {
            return Ok(());
        }
        Err(failed("the token was revoked since, or the server's 'login' has changed"))
    }

    async fn record_login(&self, by: &DecisionSource, target: &LoginTarget) -> Result<(), Refusal> {
        self.record_decision(by, DecisionSubject::server(&target.server), target.details("login"))
            .await
    }

    async fn ended_login(
        &self,
        target: &LoginTarget,
        outcome: Result<(), String>,
    ) -> Result<(), Refusal> {
        let logins = &self.shared.logins;
        if let Err(reason) = outcome {
            logins.report(target, LoginProgress::Failed(reason.clone()));
            return Err(failed(reason));
        }
        self.take_login(target).await;
        logins.report(target, LoginProgress::Done);
        Ok(())
    }

    /// Lets calls use what was granted. The connections of other tokens stay.
    async fn take_login(&self, target: &LoginTarget) {
        if target.token.is_some()
            && let Ok((upstream, sign_in)) = self.signing_in(target).await
        {
            self.login_changed(&upstream, &sign_in).await;
            if upstream.is_ready() {
                return;
            }
        }
        self.reconnected(&target.server).await;
    }

    /// Returns the state of the last sign-in of this kind; `None` if there was none.
    pub fn login_progress(&self, target: &LoginTarget) -> Result<Option<LoginProgress>, Refusal> {
        self.known_server(&target.server)?;
        let known = &self.shared.logins.progress;
        Ok(known.lock().unwrap_or_else(PoisonError::into_inner).get(target).cloned())
    }

    /// Returns the redirect address that the gate is registered for at the server, if any.
    pub async fn login_redirect(&self, target: &LoginTarget) -> Result<Option<String>, Refusal> {
        let (_, sign_in) = self.signing_in(target).await?;
        Ok(sign_in.registered_redirect().await)
    }

    /// Returns the agent tokens that may use a server, and which of them have signed in; `None` if
    /// they share one sign-in.
    pub async fn token_logins(&self, name: &str) -> Option<Vec<TokenLogin>> {
        self.shared.registry.upstream(name)?.sign_ins()?.token_logins().await
    }

    /// Returns the catalog as a caller can use it: a server that it must sign in to first is in
    /// that state, even if others have signed in.
    pub(crate) async fn with_logins(
        &self,
        mut catalog: Arc<Catalog>,
        caller: &Caller,
    ) -> Arc<Catalog> {
        for upstream in self.shared.registry.upstreams() {
            let Some(server) = catalog.server(upstream.name()).cloned() else { continue };
            let is_up = matches!(server.state, UpstreamState::Ready | UpstreamState::NeedsLogin(_));
            if is_up
                && caller.sees(&server.name)
                && let Some(words) = upstream.missing_login(caller).await
            {
                let state = UpstreamState::NeedsLogin(words.into());
                catalog = Arc::new(catalog.with(server.with_state(state)));
            }
        }
        catalog
    }

    /// Reports whether each agent token signs in to a server for itself.
    pub fn has_login_per_token(&self, name: &str) -> bool {
        let upstream = self.shared.registry.upstream(name);
        upstream.is_some_and(|it| it.sign_ins().is_some_and(|sign_ins| sign_ins.is_per_token()))
    }

    /// Forgets what a server granted: to one token, or to all. Returns false if there was nothing.
    pub async fn logout(&self, by: &DecisionSource, target: &LoginTarget) -> Result<bool, Refusal> {
        let (upstream, sign_ins) = self.remote(&target.server)?;
        let sign_in = match &target.token {
            Some(_) => Some(self.sign_in_of(&sign_ins, target)?),
            None => None,
        };
        let subject = DecisionSubject::server(&target.server);
        self.record_decision(by, subject, target.details("logout")).await?;
        let was_there = match &sign_in {
            Some(sign_in) => sign_in.forget().await,
            None => sign_ins.forget_all().await,
        };
        let was_there =
            was_there.map_err(|reason| Refusal::new(Code::SecretsUnavailable, reason))?;
        match sign_in {
            Some(sign_in) if sign_ins.is_per_token() => {
                self.login_changed(&upstream, &sign_in).await;
            }
            Some(_) | None => self.reconnected(&target.server).await,
        }
        Ok(was_there)
    }

    /// Makes calls of an agent token use what it was granted, or no longer.
    async fn login_changed(&self, upstream: &Upstream, sign_in: &SignIn) {
        let within = self.settings().connect_timeout;
        let _ = tokio::time::timeout(within, upstream.login_changed(sign_in.holder())).await;
    }

    /// Forgets what servers granted to an agent token that was revoked.
    pub(crate) async fn forget_token(&self, name: &str, id: TokenId) -> Result<(), String> {
        let upstreams = self.shared.registry.upstreams();
        let forgetting = upstreams.iter().filter_map(|upstream| {
            let sign_ins = upstream.sign_ins().filter(|sign_ins| sign_ins.is_per_token())?;
            let sign_in = sign_ins.of_token(&name.into(), id);
            Some(async move {
                let forgotten = sign_in.forget().await;
                self.login_changed(upstream, &sign_in).await;
                forgotten
            })
        });
        for forgotten in join_all(forgetting).await {
            forgotten?;
        }
        // Those of servers that are not in the config now.
        forget_grants(self.shared.store.vault(), name, id).await
    }

    /// Reconnects to a server, and waits for the outcome.
    async fn reconnected(&self, name: &str) {
        if let Some(upstream) = self.shared.registry.upstream(name) {
            let within = self.settings().connect_timeout;
            let _ = tokio::time::timeout(within, upstream.reconnected()).await;
        }
    }

    /// Returns a server that a person may sign in to, once a connection to it was tried.
    async fn signing_in(
        &self,
        target: &LoginTarget,
    ) -> Result<(Arc<Upstream>, Arc<SignIn>), Refusal> {
        let name = target.server.as_str();
        let server = self.known_server(name)?;
        if server.rules.disabled {
            return Err(conflict(format!("server '{name}' is disabled: enable it first")));
        }
        let (upstream, sign_ins) = self.remote(name)?;
        let sign_in = self.sign_in_of(&sign_ins, target)?;
        if !upstream.spec().may_start() {
            let message = format!(
                "server '{name}' is not approved: run 'countersign upstream approve {name}' first"
            );
            return Err(conflict(message));
        }
        let within = self.settings().connect_timeout;
        let _ = tokio::time::timeout(within, upstream.settled()).await;
        Ok((upstream, sign_in))
    }

    /// Returns the sign-in of the token that is meant, or the one that all share.
    fn sign_in_of(&self, sign_ins: &SignIns, target: &LoginTarget) -> Result<Arc<SignIn>, Refusal> {
        let LoginTarget { server, token } = target;
        let field = json!({"field": "token"});
        let caller = match (token, sign_ins.is_per_token()) {
            (None, false) => return Ok(sign_ins.everybody()),
            (Some(_), false) => {
                let message = format!("all tokens share one sign-in to server '{server}'");
                return Err(conflict(format!("{message}: leave the token out")));
            }
            (None, true) => {
                let agents = self.tokens().agents();
                let names: Vec<&str> = agents.iter().map(|agent| &*agent.token).collect();
                let message = format!(
                    "each token signs in to server '{server}' for itself: name one with --token \
                     ({})",
                    names.join(", ")
                );
                return Err(Refusal::new(Code::InvalidRequest, message).with(field));
            }
            (Some(name), true) => self.tokens().named(name).ok_or_else(|| {
                let message = format!("there is no valid agent token '{name}'");
                Refusal::new(Code::InvalidRequest, message).with(field)
            })?,
        };
        if !caller.sees(server) {
            let message = format!("token '{}' may not use server '{server}'", caller.token);
            return Err(conflict(message));
        }
        sign_ins.of_caller(&caller).map_err(conflict)
    }

    fn remote(&self, name: &str) -> Result<(Arc<Upstream>, Arc<SignIns>), Refusal> {
        self.known_server(name)?;
        let upstream = self.shared.registry.upstream(name);
        let sign_ins = upstream.as_ref().and_then(|upstream| upstream.sign_ins().cloned());
        upstream.zip(sign_ins).ok_or_else(|| {
            conflict(format!(
                "server '{name}' takes no sign-in: it has no 'url', or has its own token in 'headers'"
            ))
        })
    }
}
