//! The sign-in to a server: supplies the token of each request, renews it, and knows when a person
//! must sign in. One process at a time renews, and what it was issued is stored before it is used.

mod grant;
mod holder;
mod login;
mod sign_ins;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use domain::config::{OAuth, OAuthGrant, TokenAuth};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use jiff::Timestamp;
use mcp::authorization::{
    AuthorizationError, ClientAuth, ClientChoice, ClientIdentity, ProtectedServer, SecretText,
    TokenEndpoint,
};
use mcp::http::Challenge;
use mcp::http::credentials::{Credentials, TokenRefusal};
use tokio::sync::Notify;
use tokio::time::Instant;

pub use holder::GrantHolder;
pub use login::{DeviceLogin, StartedLogin};
pub use sign_ins::{SignIns, TokenLogin, forget_grants, login_granted, login_needed, no_token};

use crate::limits;
use crate::secrets::{SecretSupply, SecretValues};
use grant::{Grant, GrantClient, GrantPlace, GrantTokens};

/// One grant of a server: everybody's, or that of one agent token.
pub struct SignIn {
    server: Arc<SignInServer>,
    holder: GrantHolder,
    place: GrantPlace,
    held: Mutex<HeldGrant>,
    /// One task at a time renews. The others then find a new token.
    renewing: tokio::sync::Mutex<()>,
    /// A person must sign in.
    needed: Notify,
}

/// The server that all its sign-ins are to.
struct SignInServer {
    name: Arc<str>,
    oauth: OAuth,
    target: ArcSwapOption<SignInTarget>,
    /// The server's last words about how to be authorized.
    challenge: Mutex<Challenge>,
    /// The reason that a sign-in to it is impossible, and when it was found out.
    lack: tokio::sync::Mutex<Option<(Instant, String)>>,
}

/// The server as the last connection reached it.
struct SignInTarget {
    url: String,
    choice: ClientChoice,
}

#[derive(Default)]
struct HeldGrant {
    grant: Option<Arc<Grant>>,
    is_loaded: bool,
    /// The time at which the grant was stored, if it was noticed.
    stored_at: Option<Timestamp>,
    need: Option<LoginNeed>,
    /// The earliest time of another attempt to renew, after one that failed.
    retry_at: Option<Instant>,
    /// Secrets of the grant before this one, which may still occur in late responses.
    outdated: Vec<String>,
}

/// The reason that a person must sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginNeed {
    /// The server accepts no token that the gate has.
    Token,
    /// A request needs scopes that the token does not have.
    Scope,
}

impl SignIn {
    fn new(server: &Arc<SignInServer>, holder: GrantHolder, secrets: &SecretSupply) -> Arc<SignIn> {
        let (vault, known) = (secrets.vault().clone(), secrets.known().clone());
        let name = holder.grant_name(&server.name);
        Arc::new(SignIn {
            server: server.clone(),
            holder,
            place: GrantPlace { vault, known, name },
            held: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            needed: Notify::new(),
        })
    }

    pub fn holder(&self) -> &GrantHolder {
        &self.holder
    }

    /// Prepares for a connection to the server at this address.
    pub fn prepare(&self, url: &str, secrets: &SecretValues) -> Result<(), String> {
        let secret = |template: &Option<_>| {
            let value = template.as_ref().map(|template| secrets.expand(template)).transpose();
            value.map_err(|error| error.to_string()).map(|value| value.map(SecretText::new))
        };
        let oauth = &self.server.oauth;
        let choice = ClientChoice {
            id: oauth.client_id.clone(),
            secret: secret(&oauth.client_secret)?,
            private_key: secret(&oauth.private_key)?,
            auth: oauth.auth_method.map(|method| match method {
                TokenAuth::None => ClientAuth::None,
                TokenAuth::Basic => ClientAuth::Basic,
                TokenAuth::Post => ClientAuth::Post,
            }),
        };
        for secret in choice.secret.iter().chain(&choice.private_key) {
            self.place.known.add(secret.expose());
        }
        self.server.target.store(Some(Arc::new(SignInTarget { url: url.to_owned(), choice })));
        let mut held = self.held();
        held.need = None;
        if held.grant.as_ref().is_some_and(|grant| grant.server != url) {
            held.grant = None;
        }
        // Another process may have renewed or replaced it since.
        held.is_loaded = false;
        Ok(())
    }

    /// Returns why a person must sign in, if that is so.
    pub fn need(&self) -> Option<LoginNeed> {
        self.held().need
    }

    /// Waits until a connection that is up needs a sign-in.
    pub async fn needed(&self) {
        loop {
            self.needed.notified().await;
            if self.need() == Some(LoginNeed::Token) {
                return;
            }
        }
    }

    /// Waits until somebody has signed in, in whichever process.
    pub async fn granted(&self) {
        loop {
            tokio::time::sleep(limits::LOGIN_LOOK_EVERY).await;
            let stored_at = self.place.stored_at().await;
            if let Ok(stored_at @ Some(_)) = stored_at
                && stored_at != self.held().stored_at
            {
                return;
            }
        }
    }

    /// Returns the words for callers about a need.
    pub fn words(&self, need: LoginNeed) -> String {
        let what = match need {
            LoginNeed::Token => "it needs a sign-in",
            LoginNeed::Scope => "it needs a sign-in with more rights",
        };
        let command = self.holder.login_command(&self.server.name);
        format!("{what}: a person must run '{command}'")
    }

    fn is_machine(&self) -> bool {
        self.server.oauth.grant == OAuthGrant::Machine
    }

    fn challenge(&self) -> MutexGuard<'_, Challenge> {
        self.server.challenge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, HeldGrant> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn target(&self) -> Result<Arc<SignInTarget>, String> {
        let target = self.server.target.load_full();
        target.ok_or_else(|| "no connection to it was attempted yet".to_owned())
    }

    /// Returns the value for a request, if it is known without any work.
    fn ready(&self) -> Option<Option<HeaderValue>> {
        let held = self.held();
        match held.grant.as_ref().and_then(|grant| grant.tokens.as_ref()) {
            Some(tokens) if tokens.is_fresh() => Some(tokens.header()),
            Some(_) => None,
            None => (held.is_loaded || self.is_machine()).then_some(None),
        }
    }

    /// Reads the stored grant, and keeps it if it is of this server and client.
    async fn load(&self) -> Result<(), String> {
        if self.is_machine() {
            return Ok(());
        }
        let target = self.target()?;
        let stored_at = self.place.stored_at().await?;
        let grant = self.place.read().await?.filter(|grant| self.is_usable(grant, &target));
        self.adopt(grant, stored_at);
        Ok(())
    }

    fn is_usable(&self, grant: &Grant, target: &SignInTarget) -> bool {
        let is_client = match &grant.client {
            GrantClient::Registered { .. } => true,
            GrantClient::Configured { id } => target.choice.id.as_ref() == Some(id),
        };
        grant.server == target.url && is_client
    }

    fn adopt(&self, grant: Option<Grant>, stored_at: Option<Timestamp>) {
        let mut held = self.held();
        let texts = |grant: &Option<Arc<Grant>>| -> Vec<String> {
            grant.iter().flat_map(|it| it.secrets()).map(str::to_owned).collect()
        };
        let before = texts(&held.grant);
        held.grant = grant.map(Arc::new);
        (held.is_loaded, held.stored_at, held.retry_at) = (true, stored_at, None);
        let now = texts(&held.grant);
        if now != before {
            let outdated = std::mem::replace(&mut held.outdated, before);
            let gone =
                outdated.iter().filter(|it| !held.outdated.contains(it) && !now.contains(it));
            gone.for_each(|secret| self.place.known.remove(secret));
        }
    }

    /// Returns the words for callers about a refusal without a token. A person is asked to sign in
    /// only where the way to do that was found; otherwise this request alone fails.
    async fn unauthorized(&self) -> String {
        if self.need() != Some(LoginNeed::Token)
            && let Some(reason) = self.lack_of_login().await
        {
            return format!("it requires authorization (HTTP 401): {reason}");
        }
        self.must_login(LoginNeed::Token)
    }

    /// Returns the reason that a sign-in to the server is impossible now, if there is one. A server
    /// that publishes no metadata is not asked for it again at once; what could not be read is.
    async fn lack_of_login(&self) -> Option<String> {
        let target = self.target().ok()?;
        let mut found = self.server.lack.lock().await;
        if let Some((at, reason)) = &*found
            && at.elapsed() < limits::LOGIN_LACK_KEPT
        {
            return Some(reason.clone());
        }
        let search = async { self.discover(&self.protected(&target.url).await?).await };
        let error = search.await.err()?;
        let reason = error.to_string();
        *found = error.is_lack().then(|| (Instant::now(), reason.clone()));
        Some(reason)
    }

    fn must_login(&self, need: LoginNeed) -> String {
        self.held().need = Some(need);
        self.needed.notify_one();
        self.words(need)
    }

    /// Obtains another token in place of `used`, or of one that expires.
    async fn renew(&self, used: Option<&HeaderValue>) -> Result<(), String> {
        let _one_at_a_time = self.renewing.lock().await;
        if self.is_renewed(used) {
            return Ok(());
        }
        if self.held().retry_at.is_some_and(|at| Instant::now() < at) {
            return self.postponed();
        }
        if self.is_machine() {
            return self.obtain().await;
        }
        let _one_process = self.place.lock().await?;
        self.load().await?;
        if self.is_renewed(used) {
            return Ok(());
        }
        let grant = self.held().grant.clone();
        let Some(grant) = grant else {
            return Err(self.must_login(LoginNeed::Token));
        };
        let refresh = grant.tokens.as_ref().and_then(|tokens| tokens.refresh.clone());
        let Some(refresh) = refresh else {
            return self.end(&grant).await;
        };
        let issued = async { self.endpoint(&grant).await?.refresh(&refresh).await };
        match issued.await {
            Ok(issued) => {
                let tokens = Some(GrantTokens::issued(issued, Some(&refresh)));
                self.keep(Grant { tokens, ..(*grant).clone() }).await
            }
            Err(error) if error.ends_grant() => {
                tracing::warn!(server = %self.server.name, %error, "the sign-in has ended");
                if error.ends_client() {
                    let _ = self.place.remove().await;
                }
                self.end(&grant).await
            }
            Err(error) => {
                tracing::warn!(server = %self.server.name, %error, "cannot renew the token");
                self.held().retry_at = Some(Instant::now() + limits::RENEWAL_RETRY);
                self.postponed()
            }
        }
    }

    /// Reports whether there is a token other than the one that was used, or a fresh one.
    fn is_renewed(&self, used: Option<&HeaderValue>) -> bool {
        let held = self.held();
        let Some(tokens) = held.grant.as_ref().and_then(|grant| grant.tokens.as_ref()) else {
            return false;
        };
        match used {
            Some(used) => tokens.header().as_ref() != Some(used),
            None => tokens.is_fresh(),
        }
    }

    /// Continues with the existing token while it is valid.
    fn postponed(&self) -> Result<(), String> {
        let held = self.held();
        let tokens = held.grant.as_ref().and_then(|grant| grant.tokens.as_ref());
        match tokens {
            Some(tokens) if !tokens.is_expired() => Ok(()),
            Some(_) | None => Err("its token has expired and cannot be renewed now".to_owned()),
        }
    }

    /// Forgets tokens that are of no use any more.
    async fn end(&self, grant: &Grant) -> Result<(), String> {
        let ended = Grant { tokens: None, ..grant.clone() };
        if self.place.stored_at().await?.is_some() {
            self.place.write(&ended).await?;
        }
        let stored_at = self.place.stored_at().await?;
        self.adopt(Some(ended), stored_at);
        Err(self.must_login(LoginNeed::Token))
    }

    /// Stores a grant, and only then uses it.
    async fn keep(&self, grant: Grant) -> Result<(), String> {
        self.place.write(&grant).await?;
        let stored_at = self.place.stored_at().await?;
        self.adopt(Some(grant), stored_at);
        Ok(())
    }

    async fn protected(&self, url: &str) -> Result<ProtectedServer, AuthorizationError> {
        ProtectedServer::new(url, self.server.oauth.metadata_url.as_deref()).await
    }

    /// Returns the token endpoint of a grant.
    async fn endpoint(&self, grant: &Grant) -> Result<TokenEndpoint, AuthorizationError> {
        let server = self.protected(&grant.server).await?;
        let known = (grant.token_endpoint.as_str(), grant.issuer.as_str());
        TokenEndpoint::known(&server, known, self.client(grant), grant.resource.clone())
    }

    fn client(&self, grant: &Grant) -> ClientIdentity {
        match &grant.client {
            GrantClient::Registered { identity, .. } => identity.clone(),
            GrantClient::Configured { id } => {
                let choice =
                    self.server.target.load_full().map(|it| it.choice.clone()).unwrap_or_default();
                let (secret, auth) = match (choice.private_key, choice.secret) {
                    (Some(key), _) => (Some(key), ClientAuth::PrivateKeyJwt),
                    (None, Some(secret)) => {
                        (Some(secret), choice.auth.unwrap_or(ClientAuth::Basic))
                    }
                    (None, None) => (None, ClientAuth::None),
                };
                ClientIdentity { id: id.clone(), secret, auth }
            }
        }
    }

    /// Obtains a token for the gate itself. It is not stored: another is obtained as easily.
    async fn obtain(&self) -> Result<(), String> {
        match self.issued_to_machine().await {
            Ok(grant) => {
                grant.secrets().into_iter().for_each(|secret| self.place.known.add(secret));
                self.adopt(Some(grant), None);
                Ok(())
            }
            Err(error) => {
                tracing::warn!(server = %self.server.name, %error, "cannot obtain a token");
                self.held().retry_at = Some(Instant::now() + limits::RENEWAL_RETRY);
                let expired = self.postponed();
                expired.map_err(|_| "the gate cannot obtain a token for it; see the log".to_owned())
            }
        }
    }

    async fn issued_to_machine(&self) -> Result<Grant, AuthorizationError> {
        let unready = |_| AuthorizationError::Unsupported("connection yet");
        let target = self.target().map_err(unready)?;
        let server = self.protected(&target.url).await?;
        let found = self.discover(&server).await?;
        let client = target.choice.identity(&found.server);
        let client = client.ok_or(AuthorizationError::NoRegistration)?;
        let requested = self.scopes(&found, None);
        let scope = requested.join(" ");
        let grant = self.begun(&target, &found, GrantClient::Configured { id: client.id.clone() });
        let endpoint = server.endpoint(&found, client, grant.resource.clone());
        let issued = endpoint.client_credentials(Some(&*scope).filter(|it| !it.is_empty())).await?;
        Ok(Grant { tokens: Some(GrantTokens::issued(issued, None)), requested, ..grant })
    }

    /// Handles a token that is valid, but not for the request.
    async fn wants_scope(&self, challenge: &Challenge) -> Result<(), String> {
        let _one_at_a_time = self.renewing.lock().await;
        let wanted = challenge.scope.as_deref().unwrap_or_default();
        let mut wanted: Vec<String> = wanted.split_ascii_whitespace().map(str::to_owned).collect();
        wanted.truncate(mcp::limits::SCOPES_MAX);
        let grant = self.held().grant.clone();
        let Some(grant) = grant.filter(|_| !self.is_machine()) else {
            return Err("it refuses the gate's token for this request".to_owned());
        };
        if wanted.iter().all(|scope| grant.requested.contains(scope)) {
            // Another sign-in would ask for the same.
            return Err("it refuses this request, although the sign-in asked for the scopes that \
                        it names"
                .to_owned());
        }
        tracing::warn!(server = %self.server.name, scopes = ?wanted, "the server wants more scopes");
        if grant.wanted != wanted {
            let _one_process = self.place.lock().await?;
            self.keep(Grant { wanted, ..(*grant).clone() }).await?;
        }
        Err(self.must_login(LoginNeed::Scope))
    }

    async fn was_refused(&self, refusal: TokenRefusal<'_>) -> Result<(), String> {
        let TokenRefusal { sent, is_insufficient, challenge, is_second } = refusal;
        if is_insufficient {
            return self.wants_scope(&challenge).await;
        }
        *self.challenge() = challenge;
        let is_current = !self.is_renewed(sent);
        if is_second && is_current {
            // A token that is refused as soon as it was issued is not worth another.
            let need = if self.is_machine() { None } else { Some(LoginNeed::Token) };
            return Err(need.map_or_else(
                || "it refuses the token that the gate obtained".to_owned(),
                |need| self.must_login(need),
            ));
        }
        match sent {
            Some(_) => self.renew(sent).await,
            None if self.is_machine() => self.renew(None).await,
            None => {
                // Somebody may have signed in since.
                self.load().await?;
                match self.ready() {
                    Some(Some(_)) => Ok(()),
                    None => self.renew(None).await,
                    Some(None) => Err(self.unauthorized().await),
                }
            }
        }
    }
}

impl SignIn {
    /// Returns the value for the next request, under the sign-in that all callers share. Without one,
    /// the request goes out without a token: most servers need none.
    async fn common_token(&self) -> Result<Option<HeaderValue>, String> {
        if let Some(ready) = self.ready() {
            return Ok(ready);
        }
        if !self.held().is_loaded {
            // One that does need a token refuses the request, and then its caller learns that the
            // grant cannot be read.
            if self.load().await.is_err() {
                return Ok(None);
            }
            if let Some(ready) = self.ready() {
                return Ok(ready);
            }
        }
        self.renew(None).await?;
        let grant = self.held().grant.clone();
        Ok(grant.and_then(|grant| grant.tokens.as_ref()?.header()))
    }

    /// Returns the value for the next request of an agent token. Nothing is sent without one.
    async fn own_token(&self) -> Result<Option<HeaderValue>, String> {
        match self.ready() {
            Some(Some(value)) => return Ok(Some(value)),
            // Somebody may have signed in since.
            Some(None) => self.load().await?,
            None if !self.held().is_loaded => self.load().await?,
            None => {}
        }
        if self.ready().is_none() {
            self.renew(None).await?;
        }
        let grant = self.held().grant.clone();
        let value = grant.and_then(|grant| grant.tokens.as_ref()?.header());
        value.map(Some).ok_or_else(|| self.must_login(LoginNeed::Token))
    }

    /// Reports whether there is a grant with tokens for this server, without using it.
    async fn is_granted(&self) -> bool {
        let grant = self.place.read().await.ok().flatten();
        let target = self.server.target.load_full();
        let is_usable = |grant: &Grant| target.is_none_or(|it| self.is_usable(grant, &it));
        grant.filter(|grant| grant.tokens.is_some()).is_some_and(|grant| is_usable(&grant))
    }
}

impl Credentials for SignIn {
    fn token(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>> {
        match self.holder {
            GrantHolder::Everybody | GrantHolder::Nobody => self.common_token().boxed(),
            GrantHolder::Token { .. } => self.own_token().boxed(),
        }
    }

    fn refused<'a>(&'a self, refusal: TokenRefusal<'a>) -> BoxFuture<'a, Result<(), String>> {
        self.was_refused(refusal).boxed()
    }
}

/// The lifetime of a sign-in that somebody began.
pub const LOGIN_LIFETIME: Duration = Duration::from_mins(10);

#[cfg(test)]
mod tests {
    use redact::KnownSecrets;
    use vault::Vault;

    use super::*;

    /// Most servers need no token, and a vault that cannot be read must not stop them.
    #[tokio::test]
    async fn a_damaged_vault_is_reported_only_by_a_server_that_wants_a_token() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("secrets")).unwrap();
        std::fs::write(home.path().join("secrets/vault.json"), "{").unwrap();
        let vault = Vault::of_home(home.path());
        let target =
            SignInTarget { url: "https://h/mcp".to_owned(), choice: ClientChoice::default() };
        let server = Arc::new(SignInServer {
            name: "h".into(),
            oauth: OAuth::default(),
            target: ArcSwapOption::from_pointee(target),
            challenge: Mutex::default(),
            lack: tokio::sync::Mutex::default(),
        });
        let secrets = SecretSupply::new(&vault, &KnownSecrets::default());
        let sign_in = SignIn::new(&server, GrantHolder::Everybody, &secrets);
        assert_eq!(sign_in.token().await, Ok(None));
        let (challenge, is_insufficient, is_second) = (Challenge::default(), false, false);
        let refusal = TokenRefusal { sent: None, is_insufficient, challenge, is_second };
        let reason = sign_in.refused(refusal).await.unwrap_err();
        assert!(reason.contains("damaged"), "{reason}");
    }
}
