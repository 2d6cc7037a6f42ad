//! All sign-ins to a server: one for everybody, or one for each agent token. Where each token has its
//! own, one of them lists the server's tools for all; calls never use that connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use domain::Caller;
use domain::caller::TokenId;
use domain::config::{LoginScope, OAuth};
use jiff::Timestamp;
use vault::{Space, Vault, VaultError};

use super::holder::{is_of_server, is_of_token};
use super::{GrantHolder, LoginNeed, SignIn, SignInServer};
use crate::limits;
use crate::secrets::{SecretSupply, on_own_thread};
use crate::tokens::Tokens;

pub struct SignIns {
    server: Arc<SignInServer>,
    secrets: SecretSupply,
    /// The sign-in of all callers, or one without a holder if each token has its own.
    common: Arc<SignIn>,
    /// The tokens that sign in, each for itself; `None` if all callers share one sign-in.
    tokens: Option<Arc<Tokens>>,
    by_token: Mutex<HashMap<TokenId, Arc<SignIn>>>,
    listing: Mutex<ListingState>,
}

/// The sign-in that lists the server's tools, where each token has its own.
#[derive(Default)]
struct ListingState {
    /// `None` until the next connection attempt chooses one.
    lister: Option<Arc<SignIn>>,
    /// The grants that there were when it was chosen.
    seen: Vec<StoredGrant>,
    /// Grants with which the server could not be listed.
    spent: Vec<StoredGrant>,
}

/// The grant of a valid token, by the time at which it was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StoredGrant {
    token: TokenId,
    at: Timestamp,
}

/// An agent token that may use a server, and whether somebody has signed in for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenLogin {
    pub token: String,
    pub is_signed_in: bool,
}

impl SignIns {
    /// Returns the sign-ins to a server over HTTP, with the settings that the config has for them.
    pub fn new(
        server: &Arc<str>,
        oauth: Option<&OAuth>,
        scope: LoginScope,
        secrets: &SecretSupply,
        tokens: &Arc<Tokens>,
    ) -> Arc<SignIns> {
        let server = Arc::new(SignInServer {
            name: server.clone(),
            oauth: oauth.cloned().unwrap_or_default(),
            target: ArcSwapOption::empty(),
            challenge: Mutex::default(),
            lack: tokio::sync::Mutex::default(),
        });
        let (holder, tokens) = match scope {
            LoginScope::Shared => (GrantHolder::Everybody, None),
            LoginScope::PerToken => (GrantHolder::Nobody, Some(tokens.clone())),
        };
        Arc::new(SignIns {
            common: SignIn::new(&server, holder, secrets),
            server,
            secrets: secrets.clone(),
            tokens,
            by_token: Mutex::default(),
            listing: Mutex::default(),
        })
    }

    pub fn is_per_token(&self) -> bool {
        self.tokens.is_some()
    }

    /// Returns the sign-in that a caller's requests use, or why there is none.
    pub fn of_caller(&self, caller: &Caller) -> Result<Arc<SignIn>, String> {
        if !self.is_per_token() {
            return Ok(self.common.clone());
        }
        let id = caller.token_id.ok_or_else(no_token)?;
        Ok(self.of_token(&caller.token, id))
    }

    /// Returns the sign-in that all callers share.
    pub fn everybody(&self) -> Arc<SignIn> {
        self.common.clone()
    }

    pub fn of_token(&self, name: &Arc<str>, id: TokenId) -> Arc<SignIn> {
        let mut by_token = lock(&self.by_token);
        if let Some(known) = by_token.get(&id) {
            return known.clone();
        }
        if let Some(tokens) = &self.tokens {
            by_token.retain(|id, _| tokens.lasts(&id.0).is_some());
        }
        let holder = GrantHolder::Token { name: name.clone(), id };
        let sign_in = SignIn::new(&self.server, holder, &self.secrets);
        by_token.insert(id, sign_in.clone());
        sign_in
    }

    /// Chooses the sign-in for a connection that lists the server's tools: where each token has its
    /// own, the last one that served, or the first with a grant.
    pub async fn lister(&self) -> Arc<SignIn> {
        if !self.is_per_token() {
            return self.common.clone();
        }
        let stored = self.stored().await;
        let (last, spent) = {
            let listing = self.listing();
            let last = listing.lister.as_ref().and_then(|it| it.holder.token_id());
            (last, listing.spent.clone())
        };
        let mut open: Vec<&(Arc<SignIn>, StoredGrant)> =
            stored.iter().filter(|(_, grant)| !spent.contains(grant)).collect();
        open.sort_by_key(|(_, grant)| Some(grant.token) != last);
        let mut chosen = self.common.clone();
        for (sign_in, _) in open {
            if sign_in.is_granted().await {
                chosen = sign_in.clone();
                break;
            }
        }
        chosen.held().need = None;
        let mut listing = self.listing();
        listing.seen = stored.into_iter().map(|(_, grant)| grant).collect();
        listing.lister = Some(chosen.clone());
        chosen
    }

    /// Returns why the connection that lists the tools needs a sign-in, in words; `None` if it needs
    /// none.
    pub fn need(&self) -> Option<String> {
        let lister = self.current()?;
        lister.need().map(|need| lister.words(need))
    }

    /// Gives up the token that lists the tools, if it is one whose grant does not serve; the next
    /// connection attempt then chooses another.
    pub fn drops_lister(&self) -> bool {
        let mut listing = self.listing();
        let Some(lister) = listing.lister.clone() else { return false };
        let Some(token) = lister.holder.token_id() else { return false };
        let is_valid = self.tokens.as_ref().is_some_and(|it| it.lasts(&token.0).is_some());
        let (need, at) = {
            let held = lister.held();
            (held.need, held.stored_at)
        };
        if is_valid && need.is_none() {
            return false;
        }
        listing.spent.retain(|grant| grant.token != token);
        listing.spent.extend(at.map(|at| StoredGrant { token, at }));
        listing.lister = None;
        true
    }

    /// Reports whether the server's tools are listed with the grant of this holder.
    pub fn is_listed_by(&self, holder: &GrantHolder) -> bool {
        self.current().is_some_and(|lister| lister.holder == *holder)
    }

    /// Makes new connections of a token use the grant that was stored last.
    pub fn replaced(&self, holder: &GrantHolder) {
        if let Some(token) = holder.token_id() {
            lock(&self.by_token).remove(&token);
        }
    }

    /// Waits until a connection that is up needs a sign-in, or another one.
    async fn needed(&self) {
        let Some(lister) = self.current() else { return std::future::pending().await };
        let token = lister.holder.token_id();
        let Some((tokens, token)) = self.tokens.as_ref().zip(token) else {
            return lister.needed().await;
        };
        let mut changes = tokens.changes();
        while let Some(left) = tokens.lasts(&token.0) {
            tokio::select! {
                () = lister.needed() => return,
                _ = changes.changed() => {}
                () = tokio::time::sleep(left.min(limits::TOKEN_LOOK_EVERY)) => {}
            }
        }
    }

    /// Waits until somebody has signed in, in whichever process.
    async fn granted(&self) {
        if !self.is_per_token() {
            return self.common.granted().await;
        }
        loop {
            tokio::time::sleep(limits::LOGIN_LOOK_EVERY).await;
            let stored: Vec<StoredGrant> =
                self.stored().await.into_iter().map(|(_, grant)| grant).collect();
            if !stored.is_empty() && stored != self.listing().seen {
                return;
            }
        }
    }

    /// Returns the command for a caller that must sign in first; `None` if it need not, or shares the
    /// sign-in with others.
    pub async fn missing(&self, caller: &Caller) -> Option<String> {
        if !self.is_per_token() {
            return None;
        }
        match self.of_caller(caller) {
            Ok(sign_in) if sign_in.is_granted().await => None,
            Ok(sign_in) => Some(sign_in.words(LoginNeed::Token)),
            Err(reason) => Some(reason),
        }
    }

    /// Returns the tokens that may use the server; `None` if they share one sign-in.
    pub async fn token_logins(&self) -> Option<Vec<TokenLogin>> {
        self.tokens.as_ref()?;
        let stored = self.stored().await;
        let mut logins = Vec::new();
        for agent in self.agents() {
            let of_agent =
                |(_, grant): &&(Arc<SignIn>, StoredGrant)| Some(grant.token) == agent.token_id;
            let is_signed_in = match stored.iter().find(of_agent) {
                Some((sign_in, _)) => sign_in.is_granted().await,
                None => false,
            };
            logins.push(TokenLogin { token: agent.token.to_string(), is_signed_in });
        }
        Some(logins)
    }

    /// Forgets every grant of the server, if there is one: otherwise the vault is only read.
    pub async fn forget_stored(&self) -> Result<(), String> {
        let (vault, server) = (self.secrets.vault().clone(), self.server.name.clone());
        let is_any = on_own_thread(move || {
            let names = vault.names(Space::Grant).map_err(|error| error.to_string())?;
            Ok(names.iter().any(|it| *it.name == *server || is_of_server(&it.name, &server)))
        });
        if is_any.await? {
            self.forget_all().await?;
        }
        Ok(())
    }

    /// Forgets every grant of the server. Returns false if there was none.
    pub async fn forget_all(&self) -> Result<bool, String> {
        if !self.is_per_token() {
            return self.common.forget().await;
        }
        let mut was_there = false;
        for (sign_in, _) in self.stored().await {
            was_there |= sign_in.forget().await?;
        }
        // Grants of tokens that have expired are no use to anybody.
        let server = self.server.name.clone();
        let left = remove_grants(self.secrets.vault(), move |name| is_of_server(name, &server));
        Ok(left.await? > 0 || was_there)
    }

    /// Returns the grants of valid tokens that may use the server, with or without access tokens.
    async fn stored(&self) -> Vec<(Arc<SignIn>, StoredGrant)> {
        let vault = self.secrets.vault().clone();
        let names =
            on_own_thread(move || vault.names(Space::Grant).map_err(|error| error.to_string()));
        let names = names.await.unwrap_or_default();
        let stored = self.agents().into_iter().filter_map(|agent| {
            let token = agent.token_id?;
            let sign_in = self.of_token(&agent.token, token);
            let found = names.iter().find(|it| it.name == sign_in.place.name)?;
            Some((sign_in, StoredGrant { token, at: found.set_at }))
        });
        stored.collect()
    }

    fn agents(&self) -> Vec<Arc<Caller>> {
        let agents = self.tokens.as_ref().map(|tokens| tokens.agents()).unwrap_or_default();
        agents.into_iter().filter(|agent| agent.sees(&self.server.name)).collect()
    }

    fn current(&self) -> Option<Arc<SignIn>> {
        if self.is_per_token() { self.listing().lister.clone() } else { Some(self.common.clone()) }
    }

    fn listing(&self) -> MutexGuard<'_, ListingState> {
        lock(&self.listing)
    }
}

/// Waits until a person must sign in, if there is a sign-in at all.
pub async fn login_needed(sign_ins: Option<&Arc<SignIns>>) {
    match sign_ins {
        Some(sign_ins) => sign_ins.needed().await,
        None => std::future::pending().await,
    }
}

/// Waits until somebody has signed in, if there is a sign-in at all.
pub async fn login_granted(sign_ins: Option<&Arc<SignIns>>, is_awaited: bool) {
    match sign_ins.filter(|_| is_awaited) {
        Some(sign_ins) => sign_ins.granted().await,
        None => std::future::pending().await,
    }
}

/// Removes every grant of an agent token.
pub async fn forget_grants(vault: &Vault, name: &str, id: TokenId) -> Result<(), String> {
    let name = name.to_owned();
    remove_grants(vault, move |grant| is_of_token(grant, &name, &id)).await.map(drop)
}

/// Removes the grants with such a name; returns how many there were.
async fn remove_grants(
    vault: &Vault,
    is_meant: impl Fn(&str) -> bool + Send + 'static,
) -> Result<usize, String> {
    let vault = vault.clone();
    on_own_thread(move || {
        let words = |error: VaultError| error.to_string();
        let names = vault.names(Space::Grant).map_err(words)?;
        let mut count = 0;
        for grant in names.iter().filter(|it| is_meant(&it.name)) {
            count += usize::from(vault.remove(Space::Grant, &grant.name).map_err(words)?);
        }
        Ok(count)
    })
    .await
}

/// Says that a call without an agent token has no sign-in.
pub fn no_token() -> String {
    "each agent token signs in to it for itself, and this call is not made with one".to_owned()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
