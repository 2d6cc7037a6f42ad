//! Maps tokens to callers. Tokens are stored and compared as hashes, so that neither memory nor
//! timing reveals one.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use aws_lc_rs::digest::{self, SHA256};
use domain::caller::{Profile, Role, Scope, TokenId};
use domain::{Caller, Code, Refusal};
use jiff::Timestamp;
use redact::Credential;
use store::state::TokenRecord;
use tokio::sync::watch;

use crate::limits::TOKEN_BYTES;

/// All known tokens: those made at the first start, and those issued since.
#[derive(Default)]
pub struct Tokens {
    first: RwLock<Vec<([u8; 32], Arc<Caller>)>>,
    made: ArcSwap<TokenIndex>,
    changed: watch::Sender<()>,
}

/// The part of the config that decides on tokens.
#[derive(Clone, Copy)]
pub struct TokenRules<'a> {
    pub profiles: &'a HashMap<String, Arc<Profile>>,
    /// The default token is valid.
    pub agent_token: bool,
}

#[derive(Default)]
struct TokenIndex {
    by_hash: HashMap<[u8; 32], Arc<Token>>,
    /// Every name a token has ever had; `None` once that token is no longer valid.
    by_name: HashMap<String, Option<Arc<Token>>>,
}

struct Token {
    hash: [u8; 32],
    caller: Arc<Caller>,
    expires_at: Option<Timestamp>,
}

impl Token {
    fn valid(&self) -> Option<Arc<Caller>> {
        self.lasts().map(|_| self.caller.clone())
    }

    fn lasts(&self) -> Option<Duration> {
        let Some(at) = self.expires_at else {
            return Some(Duration::MAX);
        };
        let left = Duration::try_from(at.duration_since(Timestamp::now())).ok()?;
        (!left.is_zero()).then_some(left)
    }
}

impl Tokens {
    /// Adds a token made at the first start, in place of an earlier one of this name. It is never
    /// revoked, but an agent's can be switched off.
    pub fn know(&self, token: &str, caller: Caller) {
        let hash = digest(token);
        let caller = match caller.role {
            Role::Admin => caller,
            Role::Agent => caller.with_token(TokenId(hash)),
        };
        let mut first = self.first.write().unwrap_or_else(PoisonError::into_inner);
        first.retain(|(_, known)| known.token != caller.token);
        first.push((hash, Arc::new(caller)));
    }

    /// Replaces all issued tokens. A token whose scope cannot be parsed grants nothing.
    pub fn set(&self, records: &[TokenRecord], rules: TokenRules<'_>) {
        let TokenRules { profiles, agent_token } = rules;
        let mut made = TokenIndex::default();
        // Listed with the issued ones, since it can end like them.
        for (hash, caller) in self.first().iter().filter(|(_, c)| c.role == Role::Agent) {
            let token = Token { hash: *hash, caller: caller.clone(), expires_at: None };
            let token = agent_token.then(|| Arc::new(token));
            if let Some(token) = &token {
                made.by_hash.insert(*hash, token.clone());
            }
            made.by_name.insert(caller.token.to_string(), token);
        }
        for record in records {
            let name = record.name.clone();
            match token(record, profiles) {
                Some(token) => {
                    made.by_hash.insert(record.hash, token.clone());
                    made.by_name.insert(name, Some(token));
                }
                // Another token may have this name by now.
                None => drop(made.by_name.entry(name).or_default()),
            }
        }
        self.made.store(Arc::new(made));
        self.changed.send_replace(());
    }

    /// Reports whether a token of the first start has this name, which no new token may take.
    pub fn is_reserved(&self, name: &str) -> bool {
        self.first().iter().any(|(_, caller)| &*caller.token == name)
    }

    pub fn caller(&self, token: &str) -> Option<Arc<Caller>> {
        let shown = digest(token);
        let made = self.made.load();
        let is_off = |caller: &Caller| matches!(made.by_name.get(&*caller.token), Some(None));
        let first = self.first();
        let first = first.iter().find(|(known, c)| *known == shown && !is_off(c));
        let first = first.map(|(_, caller)| caller.clone());
        first.or_else(|| made.by_hash.get(&shown)?.valid())
    }

    /// Returns the caller behind an `Authorization: Bearer …` header.
    pub fn bearer(&self, headers: &http::HeaderMap) -> Option<Arc<Caller>> {
        let header = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = header.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| self.caller(token.trim()))?
    }

    /// Returns the caller's current permissions, which may be narrower than when its session began;
    /// `None` if the token is no longer valid, even if another has its name.
    pub fn now(&self, caller: &Arc<Caller>) -> Option<Arc<Caller>> {
        match self.made.load().by_name.get(&*caller.token) {
            Some(token) => {
                let is_same = |now: &Arc<Caller>| {
                    caller.token_id.is_none() || now.token_id == caller.token_id
                };
                token.as_ref()?.valid().filter(is_same)
            }
            None => Some(caller.clone()),
        }
    }

    /// Returns the holder of the agent token of this name, if it is valid.
    pub fn named(&self, name: &str) -> Option<Arc<Caller>> {
        self.made.load().by_name.get(name)?.as_ref()?.valid()
    }

    /// Returns the holders of all valid agent tokens, in the order of their names.
    pub fn agents(&self) -> Vec<Arc<Caller>> {
        let made = self.made.load();
        let valid = made.by_name.values().flatten().filter_map(|token| token.valid());
        let mut agents: Vec<Arc<Caller>> = valid.collect();
        agents.sort_by(|one, other| one.token.cmp(&other.token));
        agents
    }

    /// Reports whether the token can end while the gate runs; the admin key cannot.
    pub fn may_end(&self, caller: &Caller) -> bool {
        self.made.load().by_name.contains_key(&*caller.token)
    }

    /// Returns the hash of the caller's token unless it is revoked. It tells tokens of the same
    /// name apart: a name is free again once its token is revoked.
    pub fn hash(&self, caller: &Caller) -> Option<[u8; 32]> {
        self.made.load().by_name.get(&*caller.token)?.as_ref().map(|token| token.hash)
    }

    /// Returns how long this token remains valid; `None` if it no longer is.
    pub fn lasts(&self, hash: &[u8; 32]) -> Option<Duration> {
        self.made.load().by_hash.get(hash)?.lasts()
    }

    /// Notifies when tokens are issued or revoked.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn first(&self) -> std::sync::RwLockReadGuard<'_, Vec<([u8; 32], Arc<Caller>)>> {
        self.first.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds a token that has not been revoked; it may still expire.
fn token(record: &TokenRecord, profiles: &HashMap<String, Arc<Profile>>) -> Option<Arc<Token>> {
    if record.revoked_at.is_some() {
        return None;
    }
    let read = serde_json::from_str::<Scope>(&record.scope);
    let told = |error: &serde_json::Error| {
        let why = text::json::explain(error);
        tracing::error!(token = record.name, "token rejected: cannot read its scope: {why}");
    };
    let scope = read.inspect_err(told).ok()?;
    let profile = scope.profile.as_ref().and_then(|name| profiles.get(name));
    let caller = Caller::from_scope(&record.name, &scope, profile.cloned());
    let caller = Arc::new(caller.with_token(TokenId(record.hash)));
    Some(Arc::new(Token { hash: record.hash, caller, expires_at: record.expires_at }))
}

/// Returns the hash that is stored in place of a secret.
pub fn digest(token: &str) -> [u8; 32] {
    let hash = digest::digest(&SHA256, token.as_bytes());
    hash.as_ref().try_into().expect("a SHA-256 hash has 32 bytes")
}

/// Generates an unguessable credential of this kind.
pub fn secret(kind: Credential) -> Result<String, Refusal> {
    Ok(kind.text(&random::<TOKEN_BYTES>()?))
}

/// Generates random bytes, as hexadecimal digits.
pub fn random_digits<const BYTES: usize>() -> Result<String, Refusal> {
    Ok(text::hex::encode(&random::<BYTES>()?))
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], Refusal> {
    let mut random = [0; BYTES];
    getrandom::fill(&mut random).map_err(|error| {
        Refusal::new(Code::LedgerUnavailable, format!("cannot generate a secret: {error}"))
    })?;
    Ok(random)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use http::{HeaderMap, HeaderValue};
    use jiff::SignedDuration;

    use super::*;

    fn set(tokens: &Tokens, records: &[TokenRecord], agent_token: bool) {
        tokens.set(records, TokenRules { profiles: &HashMap::new(), agent_token });
    }

    fn record(name: &str, secret: &str, expires_in: Option<i64>) -> TokenRecord {
        let now = Timestamp::now();
        let expires_at = expires_in.map(|s| now.checked_add(SignedDuration::from_secs(s)).unwrap());
        TokenRecord {
            name: name.to_owned(),
            hash: digest(secret),
            scope: r#"{"operations":["read"]}"#.to_owned(),
            created_at: now,
            expires_at,
            revoked_at: None,
        }
    }

    #[test]
    fn only_known_tokens_open() {
        let tokens = Tokens::default();
        tokens.know("secret", Caller::agent("agent"));
        let bearer = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("authorization", HeaderValue::from_str(value).unwrap());
            tokens.bearer(&headers).map(|caller| caller.token.to_string())
        };
        assert_eq!(bearer("Bearer secret").as_deref(), Some("agent"));
        assert_eq!(bearer("bearer  secret").as_deref(), Some("agent"));
        for wrong in
            ["Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret"]
        {
            assert_eq!(bearer(wrong), None, "{wrong}");
        }
        assert!(tokens.bearer(&HeaderMap::new()).is_none());
    }

    #[test]
    fn a_token_ends_with_its_time_and_with_its_revocation() {
        let tokens = Tokens::default();
        tokens.know("first", Caller::agent("agent-token"));
        let mut revoked = record("revoked", "c", None);
        revoked.revoked_at = Some(Timestamp::now());
        let spoiled = TokenRecord { scope: "{}".to_owned(), ..record("spoiled", "d", None) };
        let good = record("good", "a", Some(60));
        set(&tokens, &[good, record("over", "b", Some(-1)), revoked, spoiled], true);
        let opens = ["first", "a", "b", "c", "d"].map(|token| tokens.caller(token).is_some());
        assert_eq!(opens, [true, true, false, false, false]);
        let good = tokens.caller("a").unwrap();
        assert!(tokens.now(&good).is_some());
        let hash = tokens.hash(&good).unwrap();
        assert!(tokens.lasts(&hash).unwrap() <= Duration::from_secs(60));
        assert!(tokens.may_end(&good) && !tokens.may_end(&Caller::admin()));
        let changes = tokens.changes();
        let revoked_at = Some(Timestamp::now());
        let revoked = TokenRecord { revoked_at, ..record("good", "a", None) };
        set(&tokens, std::slice::from_ref(&revoked), true);
        assert!(tokens.now(&good).is_none(), "a session does not outlive its token");
        assert!(tokens.lasts(&hash).is_none() && changes.has_changed().unwrap());
        assert!(tokens.may_end(&good) && tokens.hash(&good).is_none());
        set(&tokens, &[revoked, record("good", "e", None)], true);
        assert!(tokens.lasts(&hash).is_none(), "another token has its name");
        assert!(tokens.now(&good).is_none(), "and its sessions do not become those of the other");
        let agents = tokens.agents();
        let names: Vec<&str> = agents.iter().map(|agent| &*agent.token).collect();
        assert_eq!(names, ["agent-token", "good"]);
        let other = tokens.named("good").unwrap();
        assert!(other.token_id.is_some() && other.token_id != good.token_id);
        assert!(tokens.now(&Arc::new(Caller::agent("agent-token"))).is_some());
    }

    #[test]
    fn the_default_token_can_be_switched_off_and_on() {
        let tokens = Tokens::default();
        tokens.know("key", Caller::admin());
        tokens.know("first", Caller::agent("agent-token"));
        for agent_token in [true, false, true] {
            set(&tokens, &[], agent_token);
            assert_eq!(tokens.caller("first").is_some(), agent_token);
            let agent = Arc::new(Caller::agent("agent-token"));
            assert_eq!(tokens.now(&agent).is_some(), agent_token, "its sessions end too");
            assert!(tokens.may_end(&agent));
            assert!(tokens.caller("key").is_some(), "the admin key stays");
        }
    }
}
