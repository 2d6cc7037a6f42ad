//! Signing in to servers, and out. A sign-in that was begun is kept in memory until its response
//! arrives, which is recognised by its `state` alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use domain::{Code, Refusal};
use mcp::authorization::{CallbackParameters, DevicePoll, redirect_port};
use serde_json::json;
use tokio::time::Instant;

use crate::operator::decision::{DecisionSource, DecisionSubject};
use crate::operator::refusal::conflict;
use crate::upstream::Upstream;
use crate::upstream::sign_in::{DeviceLogin, LOGIN_LIFETIME, SignIn, StartedLogin};
use crate::{Gateway, limits};

/// The sign-ins that were begun.
#[derive(Default)]
pub(crate) struct Logins {
    pending: Mutex<Vec<PendingLogin>>,
    /// The state of the last sign-in to each server.
    progress: Mutex<HashMap<String, LoginProgress>>,
}

struct PendingLogin {
    server: String,
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

impl Logins {
    fn pending(&self) -> MutexGuard<'_, Vec<PendingLogin>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, login: PendingLogin) {
        let mut pending = self.pending();
        pending.retain(|known| known.begun.elapsed() < LOGIN_LIFETIME);
        let excess = (pending.len() + 1).saturating_sub(limits::LOGINS_PENDING_MAX);
        pending.drain(..excess);
        self.report(&login.server, LoginProgress::Pending);
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

    fn report(&self, server: &str, progress: LoginProgress) {
        let mut known = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(server.to_owned(), progress);
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
        name: &str,
        redirect: &str,
    ) -> Result<LoginInvitation, Refusal> {
        if redirect_port(redirect).is_none() {
            let message = "a sign-in returns to an address like http://127.0.0.1:PORT/callback";
            return Err(
                Refusal::new(Code::InvalidRequest, message).with(json!({"field": "redirect_uri"}))
            );
        }
        let (_, sign_in) = self.signing_in(name).await?;
        let login = sign_in.begin(redirect).await.map_err(|error| failed(error.to_string()))?;
        let address = login.address().to_owned();
        let begun = Instant::now();
        self.shared.logins.add(PendingLogin { server: name.to_owned(), by, begun, login });
        Ok(LoginInvitation { address, user_code: None, lifetime: LOGIN_LIFETIME })
    }

    /// Begins a sign-in with a code. It ends by itself.
    pub async fn start_device_login(
        &self,
        by: DecisionSource,
        name: &str,
    ) -> Result<LoginInvitation, Refusal> {
        let (_, sign_in) = self.signing_in(name).await?;
        let login = sign_in.begin_device().await.map_err(|error| failed(error.to_string()))?;
        let code = &login.code;
        let invitation = LoginInvitation {
            address: code.whole_address.clone().unwrap_or_else(|| code.address.clone()),
            user_code: Some(code.user_code.clone()),
            lifetime: code.lifetime,
        };
        self.shared.logins.report(name, LoginProgress::Pending);
        let (gateway, server) = (self.clone(), name.to_owned());
        self.shared.retiring.spawn(async move {
            let draining = gateway.draining();
            tokio::select! {
                () = gateway.await_device(&by, &server, login) => {}
                () = draining.cancelled() => {}
            }
        });
        Ok(invitation)
    }

    async fn await_device(&self, by: &DecisionSource, server: &str, mut login: DeviceLogin) {
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
                    if let Err(refusal) = self.record_login(by, server).await {
                        break Err(refusal.message);
                    }
                    break login.finish(issued).await;
                }
                Err(error) => break Err(error.to_string()),
            }
        };
        let _ = self.ended_login(server, outcome).await;
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
        let PendingLogin { server, by, login, .. } = pending;
        self.record_login(&by, &server).await?;
        let outcome = login.finish(&response).await;
        self.ended_login(&server, outcome).await?;
        Ok(server)
    }

    async fn record_login(&self, by: &DecisionSource, server: &str) -> Result<(), Refusal> {
        let details = json!({"decision": "login"});
        self.record_decision(by, DecisionSubject::server(server), details).await
    }

    async fn ended_login(&self, server: &str, outcome: Result<(), String>) -> Result<(), Refusal> {
        let logins = &self.shared.logins;
        if let Err(reason) = outcome {
            logins.report(server, LoginProgress::Failed(reason.clone()));
            return Err(failed(reason));
        }
        self.reconnected(server).await;
        logins.report(server, LoginProgress::Done);
        Ok(())
    }

    /// Returns the state of the last sign-in to a server; `None` if there was none.
    pub fn login_progress(&self, name: &str) -> Result<Option<LoginProgress>, Refusal> {
        self.known_server(name)?;
        let known = &self.shared.logins.progress;
        Ok(known.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned())
    }

    /// Returns the redirect address that the gate is registered for at the server, if any.
    pub async fn login_redirect(&self, name: &str) -> Result<Option<String>, Refusal> {
        let (_, sign_in) = self.signing_in(name).await?;
        Ok(sign_in.registered_redirect().await)
    }

    /// Forgets what a server granted. Returns false if there was nothing.
    pub async fn logout(&self, by: &DecisionSource, name: &str) -> Result<bool, Refusal> {
        let (_, sign_in) = self.remote(name)?;
        let details = json!({"decision": "logout"});
        self.record_decision(by, DecisionSubject::server(name), details).await?;
        let was_there = sign_in.forget().await;
        let was_there =
            was_there.map_err(|reason| Refusal::new(Code::SecretsUnavailable, reason))?;
        self.reconnected(name).await;
        Ok(was_there)
    }

    /// Reconnects to a server, and waits for the outcome.
    async fn reconnected(&self, name: &str) {
        if let Some(upstream) = self.shared.registry.upstream(name) {
            let within = self.settings().connect_timeout;
            let _ = tokio::time::timeout(within, upstream.reconnected()).await;
        }
    }

    /// Returns a server that a person may sign in to, once a connection to it was tried.
    async fn signing_in(&self, name: &str) -> Result<(Arc<Upstream>, Arc<SignIn>), Refusal> {
        let server = self.known_server(name)?;
        if server.rules.disabled {
            return Err(conflict(format!("server '{name}' is disabled: enable it first")));
        }
        let (upstream, sign_in) = self.remote(name)?;
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

    fn remote(&self, name: &str) -> Result<(Arc<Upstream>, Arc<SignIn>), Refusal> {
        self.known_server(name)?;
        let upstream = self.shared.registry.upstream(name);
        let sign_in = upstream.as_ref().and_then(|upstream| upstream.sign_in().cloned());
        upstream.zip(sign_in).ok_or_else(|| {
            conflict(format!(
                "server '{name}' takes no sign-in: it has no 'url', or has its own token in 'headers'"
            ))
        })
    }
}
