//! The sessions of the page. A link carries a code that works once. It is exchanged for a cookie
//! and a token, which are valid only together. A browser sends the cookie to every port of this
//! machine and shows it to no script; only one tab knows and sends the token.

use std::sync::{Mutex, MutexGuard, PoisonError};

use access::tokens::{digest, secret};
use domain::Refusal;
use jiff::{SignedDuration, Timestamp};
use redact::Credential;
use tokio_util::sync::CancellationToken;

use super::address::GateAddress;

/// The lifetime of a code: enough to go from the terminal to the browser.
pub const CODE_LIFETIME: SignedDuration = SignedDuration::from_mins(10);

/// The lifetime of a session: a working day. After that the user needs another link.
pub const SESSION_LIFETIME: SignedDuration = SignedDuration::from_hours(12);

/// The number of unused codes; one more invalidates the oldest.
pub const CODES_MAX: usize = 32;

/// The number of tabs signed in at once; one more signs the oldest out.
pub const SESSIONS_MAX: usize = 64;

/// The hash of a secret; the secret itself is not kept.
type SecretHash = [u8; 32];

/// The codes and sessions of one listener. They live in memory: a restart, which a new admin key
/// requires, ends them all.
pub struct PageSessions {
    address: GateAddress,
    held: Mutex<Entrances>,
}

#[derive(Default)]
struct Entrances {
    /// Oldest first, like the sessions.
    codes: Vec<Code>,
    sessions: Vec<Session>,
}

struct Code {
    code: SecretHash,
    until: Timestamp,
}

struct Session {
    cookie: SecretHash,
    token: SecretHash,
    opened: OpenSession,
}

/// A link that signs one browser in.
pub struct PageLink {
    pub url: String,
    pub expires_at: Timestamp,
}

/// The credentials that a browser gets for its code.
pub(crate) struct BrowserPass {
    pub(crate) cookie: String,
    pub(crate) token: String,
    pub(crate) until: Timestamp,
}

/// A valid session.
#[derive(Clone)]
pub(crate) struct OpenSession {
    pub(crate) until: Timestamp,
    /// Cancelled when the session is ended before it expires.
    pub(crate) ended: CancellationToken,
}

impl PageSessions {
    pub fn new(address: GateAddress) -> PageSessions {
        PageSessions { address, held: Mutex::default() }
    }

    /// Returns the origins of the gate.
    pub fn address(&self) -> &GateAddress {
        &self.address
    }

    /// Makes a link. The code follows `#`, which browsers do not send: it is in no request line.
    pub fn link(&self, now: Timestamp) -> Result<PageLink, Refusal> {
        let origin = self.address.page()?;
        let code = secret(Credential::PageCode)?;
        let until = now + CODE_LIFETIME;
        let mut held = self.lock(now);
        push(&mut held.codes, CODES_MAX, Code { code: digest(&code), until });
        Ok(PageLink { url: format!("{origin}/#code={code}"), expires_at: until })
    }

    /// Redeems a code, if it is valid. A browser that already has the cookie of another tab keeps
    /// it, so that the other tab stays signed in.
    pub(crate) fn enter(
        &self,
        code: &str,
        cookie: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<BrowserPass>, Refusal> {
        let mut held = self.lock(now);
        let shown = digest(code);
        let Some(place) = held.codes.iter().position(|known| known.code == shown) else {
            return Ok(None);
        };
        held.codes.remove(place);
        let is_known = |cookie: &&str| {
            let cookie = digest(cookie);
            held.sessions.iter().any(|session| session.cookie == cookie)
        };
        let cookie = match cookie.filter(is_known) {
            Some(cookie) => cookie.to_owned(),
            None => secret(Credential::PageCookie)?,
        };
        let token = secret(Credential::PageToken)?;
        let until = now + SESSION_LIFETIME;
        let opened = OpenSession { until, ended: CancellationToken::new() };
        let session = Session { cookie: digest(&cookie), token: digest(&token), opened };
        if let Some(oldest) = push(&mut held.sessions, SESSIONS_MAX, session) {
            oldest.opened.ended.cancel();
        }
        Ok(Some(BrowserPass { cookie, token, until }))
    }

    /// Returns the session for which a request has both halves.
    pub(crate) fn find(&self, cookie: &str, token: &str, now: Timestamp) -> Option<OpenSession> {
        let (cookie, token) = (digest(cookie), digest(token));
        let held = self.lock(now);
        let fits = |session: &&Session| session.cookie == cookie && session.token == token;
        held.sessions.iter().find(fits).map(|session| session.opened.clone())
    }

    /// Ends every session and returns their number.
    pub(crate) fn end_all(&self, now: Timestamp) -> usize {
        let ended = std::mem::take(&mut self.lock(now).sessions);
        ended.iter().for_each(|session| session.opened.ended.cancel());
        ended.len()
    }

    /// Locks the state after removing all that has expired.
    fn lock(&self, now: Timestamp) -> MutexGuard<'_, Entrances> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.codes.retain(|code| now < code.until);
        held.sessions.retain(|session| now < session.opened.until);
        held
    }
}

/// Adds to a bounded list; returns the oldest item if it had to be removed.
fn push<T>(list: &mut Vec<T>, max: usize, item: T) -> Option<T> {
    let oldest = (list.len() >= max).then(|| list.remove(0));
    list.push(item);
    oldest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use domain::config::Config;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn after(span: SignedDuration) -> Timestamp {
        now() + span
    }

    fn sessions() -> PageSessions {
        let listening = "127.0.0.1:7420".parse().unwrap();
        PageSessions::new(GateAddress::of(&Config::default(), listening, None).unwrap())
    }

    fn code(sessions: &PageSessions) -> String {
        let url = sessions.link(now()).unwrap().url;
        let (origin, code) = url.split_once("/#code=").unwrap();
        assert_eq!(origin, sessions.address.page().unwrap());
        code.to_owned()
    }

    fn entered(sessions: &PageSessions, cookie: Option<&str>) -> BrowserPass {
        sessions.enter(&code(sessions), cookie, now()).unwrap().unwrap()
    }

    #[test]
    fn a_code_works_once_and_for_ten_minutes() {
        let sessions = sessions();
        let first = code(&sessions);
        assert!(sessions.enter("csl_wrong", None, now()).unwrap().is_none());
        assert!(sessions.enter(&first, None, now()).unwrap().is_some());
        assert!(sessions.enter(&first, None, now()).unwrap().is_none());
        let (second, third) = (code(&sessions), code(&sessions));
        let late = after(CODE_LIFETIME);
        let just = late - SignedDuration::from_nanos(1);
        assert!(sessions.enter(&second, None, just).unwrap().is_some());
        assert!(sessions.enter(&third, None, late).unwrap().is_none());
    }

    #[test]
    fn cookie_and_token_must_be_of_the_same_session() {
        let sessions = sessions();
        let (one, other) = (entered(&sessions, None), entered(&sessions, None));
        for (cookie, token, good) in [
            (&*one.cookie, &*one.token, true),
            (&*other.cookie, &*other.token, true),
            (&*one.cookie, &*other.token, false),
            (&*one.token, &*one.cookie, false),
            (&*one.cookie, "", false),
            ("", &*one.token, false),
        ] {
            assert_eq!(sessions.find(cookie, token, now()).is_some(), good);
        }
    }

    #[test]
    fn a_session_ends_after_twelve_hours() {
        let sessions = sessions();
        let one = entered(&sessions, None);
        assert_eq!(one.until, after(SESSION_LIFETIME));
        let just = one.until - SignedDuration::from_nanos(1);
        assert!(sessions.find(&one.cookie, &one.token, just).is_some());
        assert!(sessions.find(&one.cookie, &one.token, one.until).is_none());
    }

    #[test]
    fn tabs_share_a_cookie_and_unknown_cookies_are_replaced() {
        let sessions = sessions();
        let one = entered(&sessions, None);
        let other = entered(&sessions, Some(&one.cookie));
        assert!(one.cookie == other.cookie && one.token != other.token);
        let stranger = entered(&sessions, Some("chosen by another page"));
        assert!(stranger.cookie.starts_with("csc_") && stranger.cookie != one.cookie);
    }

    #[test]
    fn codes_and_sessions_are_bounded_and_the_oldest_go() {
        let sessions = sessions();
        let first = code(&sessions);
        for _ in 0..CODES_MAX {
            code(&sessions);
        }
        assert!(sessions.enter(&first, None, now()).unwrap().is_none());
        let oldest = entered(&sessions, None);
        let opened = sessions.find(&oldest.cookie, &oldest.token, now()).unwrap();
        let last = (0..SESSIONS_MAX).map(|_| entered(&sessions, None)).last().unwrap();
        assert!(sessions.find(&oldest.cookie, &oldest.token, now()).is_none());
        assert!(opened.ended.is_cancelled(), "its streams end with it");
        assert!(sessions.find(&last.cookie, &last.token, now()).is_some());
        assert_eq!(sessions.end_all(now()), SESSIONS_MAX);
        assert!(sessions.find(&last.cookie, &last.token, now()).is_none());
    }
}
