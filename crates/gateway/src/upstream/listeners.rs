//! The clients that want to hear from a server between their calls: the resources they subscribed to
//! and the log level they set. On the connection that all clients share, each update and each log
//! message goes to those who asked for it, and the server keeps what any of them wants.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp::message::{Notification, to_raw};
use mcp::object::ObjectMembers;
use mcp::peer::{Ask, Peer};
use mcp::task;
use provider::AskClient;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::catalogs::Publisher;
use crate::limits;

pub(super) const MESSAGE: &str = "notifications/message";
pub(super) const UPDATED: &str = "notifications/resources/updated";

/// The log levels of the protocol, the most detailed first.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// A log level by its place among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogLevel(usize);

impl LogLevel {
    pub(super) fn parse(word: &str) -> Option<LogLevel> {
        LEVELS.iter().position(|level| *level == word).map(LogLevel)
    }

    pub(super) fn as_str(self) -> &'static str {
        LEVELS[self.0]
    }

    /// Returns the level of a log message.
    pub(super) fn of_message(message: &Notification) -> Option<LogLevel> {
        LogLevel::parse(&member(message, "level")?)
    }
}

/// The connection that carries a client's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Shared,
    Own,
}

pub(super) struct Listeners {
    server: Arc<str>,
    publisher: Publisher,
    by_session: Mutex<HashMap<Arc<str>, Listener>>,
}

/// One client.
struct Listener {
    lane: Lane,
    queue: ClientQueue,
    subscribed: BTreeSet<String>,
    level: Option<LogLevel>,
}

/// The subscriptions and the level that a server must be asked for, or freed of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    subscribed: BTreeSet<String>,
    level: Option<LogLevel>,
}

/// A client that has as many subscriptions as it may have.
#[derive(Debug)]
pub(super) struct TooManySubscriptions;

impl Listeners {
    pub(super) fn new(server: &Arc<str>, publisher: Publisher) -> Listeners {
        Listeners { server: server.clone(), publisher, by_session: Mutex::default() }
    }

    /// Subscribes a client; reports whether it was not subscribed before.
    pub(super) fn subscribe(
        &self,
        session: &Arc<str>,
        client: &Arc<dyn AskClient>,
        lane: Lane,
        uri: &str,
    ) -> Result<bool, TooManySubscriptions> {
        let mut by_session = self.lock();
        let listener = self.listener(&mut by_session, session, client, lane);
        if listener.subscribed.len() >= limits::SUBSCRIPTIONS_MAX {
            return Err(TooManySubscriptions);
        }
        Ok(listener.subscribed.insert(uri.to_owned()))
    }

    /// Ends a subscription; reports whether no other client of the shared connection has it.
    pub(super) fn unsubscribe(&self, session: &str, uri: &str) -> bool {
        let mut by_session = self.lock();
        if let Some(listener) = by_session.get_mut(session) {
            listener.subscribed.remove(uri);
        }
        !is_wanted(&by_session, uri)
    }

    /// Sets a client's level; returns the most detailed one on its connection.
    pub(super) fn set_level(
        &self,
        session: &Arc<str>,
        client: &Arc<dyn AskClient>,
        lane: Lane,
        level: LogLevel,
    ) -> LogLevel {
        let mut by_session = self.lock();
        self.listener(&mut by_session, session, client, lane).level = Some(level);
        match lane {
            Lane::Own => level,
            Lane::Shared => most_detailed(&by_session).unwrap_or(level),
        }
    }

    pub(super) fn level(&self, session: &str) -> Option<LogLevel> {
        self.lock().get(session)?.level
    }

    /// Reports whether a client waits for notifications.
    pub(super) fn listens(&self, session: &str) -> bool {
        self.lock().get(session).is_some_and(|listener| !listener.subscribed.is_empty())
    }

    /// Forgets a client; returns what the shared connection no longer needs, and the level that is
    /// left.
    pub(super) fn leave(&self, session: &str) -> Wishes {
        let mut by_session = self.lock();
        let Some(gone) = by_session.remove(session).filter(|gone| gone.lane == Lane::Shared) else {
            return Wishes::default();
        };
        let is_over = |uri: &String| !is_wanted(&by_session, uri);
        let subscribed = gone.subscribed.into_iter().filter(is_over).collect();
        let level = most_detailed(&by_session).filter(|left| Some(*left) > gone.level);
        Wishes { subscribed, level }
    }

    /// Returns what the clients of the shared connection want.
    pub(super) fn wishes(&self) -> Wishes {
        let by_session = self.lock();
        let shared = by_session.values().filter(|listener| listener.lane == Lane::Shared);
        let subscribed = shared.flat_map(|listener| listener.subscribed.iter().cloned()).collect();
        Wishes { subscribed, level: most_detailed(&by_session) }
    }

    /// Returns what one client wants on its own connection.
    pub(super) fn wishes_of(&self, session: &str) -> Wishes {
        let mut by_session = self.lock();
        let Some(listener) = by_session.get_mut(session) else { return Wishes::default() };
        listener.lane = Lane::Own;
        Wishes { subscribed: listener.subscribed.clone(), level: listener.level }
    }

    /// Passes a notification of the shared connection to the clients that asked for it. Any other
    /// could belong to one client alone, and is dropped.
    pub(super) fn hear(&self, notification: &Notification) {
        let wants: Box<dyn Fn(&Listener) -> bool> = match notification.method.as_str() {
            UPDATED => {
                let Some(uri) = member(notification, "uri") else { return };
                Box::new(move |listener| listener.subscribed.iter().any(|of| covers(of, &uri)))
            }
            MESSAGE => {
                let Some(level) = LogLevel::of_message(notification) else { return };
                Box::new(move |listener| listener.level.is_some_and(|wanted| level >= wanted))
            }
            _ => return,
        };
        let catalog = self.publisher.catalog();
        if catalog.server(&self.server).is_none_or(|server| server.is_locked()) {
            return;
        }
        for listener in self.lock().values() {
            if listener.lane == Lane::Shared && wants(listener) {
                listener.queue.push(notification.clone());
            }
        }
    }

    fn listener<'a>(
        &self,
        by_session: &'a mut HashMap<Arc<str>, Listener>,
        session: &Arc<str>,
        client: &Arc<dyn AskClient>,
        lane: Lane,
    ) -> &'a mut Listener {
        let listener = by_session.entry(session.clone()).or_insert_with(|| Listener {
            lane,
            queue: ClientQueue::new(&self.server, client.between_calls()),
            subscribed: BTreeSet::new(),
            level: None,
        });
        listener.lane = lane;
        listener
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Listener>> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wishes {
    /// Asks a server for what its clients want, on a new connection.
    pub(super) fn ask(self, peer: Peer, timeout: Duration) {
        self.send(peer, "resources/subscribe", timeout);
    }

    /// Tells a server what its clients no longer want.
    pub(super) fn withdraw(self, peer: Peer, timeout: Duration) {
        self.send(peer, "resources/unsubscribe", timeout);
    }

    fn send(self, peer: Peer, method: &'static str, timeout: Duration) {
        let subscribed = self.subscribed.into_iter().map(move |uri| (method, json!({"uri": uri})));
        let level = self.level.map(|level| ("logging/setLevel", json!({"level": level.as_str()})));
        let requests: Vec<_> = subscribed.chain(level).collect();
        if requests.is_empty() {
            return;
        }
        task::spawn(async move {
            for (method, params) in requests {
                let asked = peer.request(Ask::new(method, Some(to_raw(&params)), timeout)).await;
                if let Err(error) = asked {
                    tracing::debug!(method, %error, "a server does not keep what its clients want");
                }
            }
        });
    }
}

fn is_wanted(by_session: &HashMap<Arc<str>, Listener>, uri: &str) -> bool {
    let mut shared = by_session.values().filter(|listener| listener.lane == Lane::Shared);
    shared.any(|listener| listener.subscribed.contains(uri))
}

fn most_detailed(by_session: &HashMap<Arc<str>, Listener>) -> Option<LogLevel> {
    let shared = by_session.values().filter(|listener| listener.lane == Lane::Shared);
    shared.filter_map(|listener| listener.level).min()
}

/// Reports whether an update concerns a subscription: a server may name a part of the resource.
fn covers(subscribed: &str, updated: &str) -> bool {
    match updated.strip_prefix(subscribed) {
        Some(rest) => rest.is_empty() || rest.starts_with('/') || subscribed.ends_with('/'),
        None => false,
    }
}

fn member(notification: &Notification, name: &str) -> Option<String> {
    let members = ObjectMembers::parse(notification.params.as_deref()?).ok()?;
    serde_json::from_str(members.get(name)?).ok()
}

/// The notifications on their way to one client.
pub(super) struct ClientQueue {
    waiting: mpsc::Sender<Notification>,
    _sending: AbortOnDropHandle<()>,
}

impl ClientQueue {
    pub(super) fn new(server: &Arc<str>, client: Arc<dyn AskClient>) -> ClientQueue {
        let (waiting, mut next) = mpsc::channel(limits::NOTICES_WAITING_MAX);
        let server = server.clone();
        let sending = task::spawn(async move {
            while let Some(notification) = next.recv().await {
                client.tell(&server, notification).await;
            }
        });
        ClientQueue { waiting, _sending: AbortOnDropHandle::new(sending) }
    }

    /// Drops a notification that is too large, or that the client is too slow for.
    pub(super) fn push(&self, notification: Notification) {
        let size = notification.params.as_ref().map_or(0, |params| params.get().len());
        if size > limits::NOTICE_BYTES_MAX || self.waiting.try_send(notification).is_err() {
            tracing::debug!("dropped a notification that a client would not take");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_reaches_the_subscribers_of_the_whole() {
        for (subscribed, updated, expected) in [
            ("a://b", "a://b", true),
            ("a://b", "a://b/c", true),
            ("a://b/", "a://b/c", true),
            ("a://b", "a://bc", false),
            ("a://b/c", "a://b", false),
        ] {
            assert_eq!(covers(subscribed, updated), expected, "{subscribed} {updated}");
        }
    }

    #[test]
    fn levels_have_the_order_of_the_protocol() {
        let level = |word| LogLevel::parse(word).unwrap();
        assert!(level("debug") < level("info") && level("error") < level("emergency"));
        assert_eq!(LogLevel::parse("loud"), None);
        assert_eq!(level("notice").as_str(), "notice");
    }
}
