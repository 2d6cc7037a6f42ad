//! The announcements of a stateless server: changes of its lists, and of the resources that clients
//! are subscribed to. They come on a stream that is opened for them, and opened again for others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp::error::HttpRefusal;
use mcp::handshake::Welcome;
use mcp::message::{Notification, to_raw};
use mcp::object::ObjectMembers;
use mcp::peer::{Ask, Peer, RequestError};
use mcp::stateless::{ACKNOWLEDGED, LISTEN};
use mcp::task;
use serde::Deserialize;
use serde_json::{Map, json};
use tokio::sync::watch;
use tokio::sync::watch::error::RecvError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::limits;
use crate::upstream::server_side::LISTS_CHANGED;

/// The lists whose changes are announced, by capability, and their names in a request.
const LISTS: [(&str, &str); 3] = [
    ("tools", "toolsListChanged"),
    ("prompts", "promptsListChanged"),
    ("resources", "resourcesListChanged"),
];

/// The stream of one connection.
pub(super) struct Subscriptions {
    /// The resources whose updates clients want.
    wanted: watch::Sender<BTreeSet<String>>,
    answered: watch::Receiver<Option<AgreedStream>>,
    _keeping: AbortOnDropHandle<()>,
}

/// The resources that a server was asked about, and those that it agreed to.
struct AgreedStream {
    asked: BTreeSet<String>,
    agreed: BTreeSet<String>,
}

impl Subscriptions {
    pub(super) fn begin(peer: &Peer, welcome: &Welcome) -> Subscriptions {
        let (wanted, asked) = watch::channel(BTreeSet::new());
        let (answer, answered) = watch::channel(None);
        let lists = LISTS.into_iter().filter(|(capability, _)| announces(welcome, capability));
        let lists = lists.map(|(_, list)| list).collect();
        let keeper = Keeper { peer: peer.clone(), lists, asked, answer };
        let keeping = AbortOnDropHandle::new(task::spawn(keeper.keep()));
        Subscriptions { wanted, answered, _keeping: keeping }
    }

    /// Changes the resources whose updates are wanted.
    pub(super) fn want(&self, uris: BTreeSet<String>) {
        self.wanted.send_if_modified(|wanted| {
            let is_new = *wanted != uris;
            *wanted = uris;
            is_new
        });
    }

    /// Waits until the server was asked for the updates of a wanted resource; reports whether it
    /// sends them.
    pub(super) async fn agrees(&self, uri: &str, within: Duration) -> bool {
        let mut answered = self.answered.clone();
        let is_answered =
            |it: &Option<AgreedStream>| it.as_ref().is_some_and(|it| it.asked.contains(uri));
        let answer = tokio::time::timeout(within, answered.wait_for(is_answered)).await;
        let answer = answer.ok().and_then(Result::ok);
        answer.is_some_and(|it| it.as_ref().is_some_and(|it| it.agreed.contains(uri)))
    }
}

/// Reports whether a server announces changes of a list.
fn announces(welcome: &Welcome, capability: &str) -> bool {
    let declared = welcome.capability(capability);
    let members = declared.as_deref().and_then(|it| serde_json::from_str(it).ok());
    members.is_some_and(|it: ObjectMembers<'_>| it.get("listChanged") == Some("true"))
}

/// Keeps the stream open.
struct Keeper {
    peer: Peer,
    lists: Vec<&'static str>,
    asked: watch::Receiver<BTreeSet<String>>,
    answer: watch::Sender<Option<AgreedStream>>,
}

impl Keeper {
    async fn keep(mut self) {
        let mut current: Option<Stream> = None;
        let mut pause = limits::LISTEN_RETRY;
        let mut was_lost = false;
        loop {
            let asked = self.asked.borrow_and_update().clone();
            if asked.is_empty() && self.lists.is_empty() {
                current = None;
                self.answer.send_replace(None);
                if self.asked.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let stream = Stream::open(&self.peer, &self.lists, &asked);
            let agreed = stream.acknowledged(&asked).await;
            let is_open = agreed.is_some();
            let agreed = agreed.unwrap_or_default();
            self.answer.send_replace(Some(AgreedStream { asked, agreed }));
            if is_open {
                pause = limits::LISTEN_RETRY;
            }
            if is_open && std::mem::take(&mut was_lost) {
                self.announce();
            }
            // The one before is closed only now, so that no update is missed in between, and stays if
            // the server does not open this one.
            let stream = match current.take() {
                Some(before) if !is_open => current.insert(before),
                _ => current.insert(stream),
            };
            tokio::select! {
                _ = self.peer.closed() => return,
                changed = self.asked.changed() => if changed.is_err() { return },
                ended = stream.ended() => {
                    was_lost = true;
                    if self.rest(ended, pause).await.is_err() {
                        return;
                    }
                    pause = (pause * 2).min(limits::LISTEN_RETRY_MAX);
                }
            }
        }
    }

    /// Waits until a stream is worth another attempt. One that was refused is only if clients want
    /// something else.
    async fn rest(&mut self, ended: StreamEnd, pause: Duration) -> Result<(), RecvError> {
        let again = async {
            match ended {
                StreamEnd::Refused => std::future::pending().await,
                StreamEnd::Over => tokio::time::sleep(pause).await,
            }
        };
        tokio::select! {
            () = again => Ok(()),
            changed = self.asked.changed() => changed,
        }
    }

    /// Has the lists read again: changes may have been missed.
    fn announce(&self) {
        let method = LISTS_CHANGED[0].to_owned();
        self.peer.receive(Notification { method, params: None }.into());
    }
}

/// The end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
    /// The server has no such streams.
    Refused,
    Over,
}

/// A stream, which closes when it is dropped.
struct Stream {
    /// The resources that the server agreed to send updates of.
    agreed: watch::Receiver<Option<BTreeSet<String>>>,
    ended: watch::Receiver<Option<StreamEnd>>,
    _closing: tokio_util::sync::DropGuard,
}

impl Stream {
    fn open(peer: &Peer, lists: &[&'static str], uris: &BTreeSet<String>) -> Stream {
        let mut filter: Map<_, _> =
            lists.iter().map(|list| ((*list).to_owned(), json!(true))).collect();
        if !uris.is_empty() {
            filter.insert("resourceSubscriptions".to_owned(), json!(uris));
        }
        let params = to_raw(&json!({"notifications": filter}));
        let (agree, agreed) = watch::channel(None);
        let (end, ended) = watch::channel(None);
        let cancel = CancellationToken::new();
        let ask = Ask {
            cancel: cancel.clone(),
            notices: Some(Arc::new(move |notification| take(notification, &agree))),
            ..Ask::new(LISTEN, Some(params), limits::LISTEN_TIME_MAX)
        };
        let peer = peer.clone();
        task::spawn(async move {
            let over = peer.request(ask).await;
            if let Err(error) = &over {
                tracing::debug!(%error, "a stream of announcements ended");
            }
            end.send_replace(Some(match over {
                Err(RequestError::Refused(error)) if error.status().is_none_or(is_final) => {
                    StreamEnd::Refused
                }
                Ok(_) | Err(_) => StreamEnd::Over,
            }));
        });
        Stream { agreed, ended, _closing: cancel.drop_guard() }
    }

    /// Returns the resources whose updates will come, once the server says so; all that were asked
    /// for, if it keeps the stream open and says nothing. `None` if it ends the stream.
    async fn acknowledged(&self, asked: &BTreeSet<String>) -> Option<BTreeSet<String>> {
        let (mut agreed, mut ended) = (self.agreed.clone(), self.ended.clone());
        tokio::select! {
            biased;
            agreed = agreed.wait_for(Option::is_some) => {
                agreed.ok().and_then(|agreed| agreed.clone())
            }
            _ = ended.wait_for(Option::is_some) => None,
            () = tokio::time::sleep(limits::LISTEN_ACKNOWLEDGED_WAIT) => Some(asked.clone()),
        }
    }

    async fn ended(&self) -> StreamEnd {
        let mut ended = self.ended.clone();
        let ended = ended.wait_for(Option::is_some).await;
        ended.ok().and_then(|ended| *ended).unwrap_or(StreamEnd::Over)
    }
}

/// Reports whether a server that answers with this status will do so again.
fn is_final(refusal: HttpRefusal) -> bool {
    !matches!(refusal.status, 408 | 429 | 500..)
}

/// Takes the first notification of a stream; returns the others.
fn take(
    notification: Notification,
    agree: &watch::Sender<Option<BTreeSet<String>>>,
) -> Option<Notification> {
    #[derive(Deserialize)]
    struct Acknowledged {
        #[serde(default)]
        notifications: Filter,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Filter {
        #[serde(default)]
        resource_subscriptions: BTreeSet<String>,
    }
    if notification.method != ACKNOWLEDGED {
        return Some(notification);
    }
    let params = notification.params.as_deref();
    let read = params.and_then(|it| serde_json::from_str::<Acknowledged>(it.get()).ok());
    let agreed = read.map(|it| it.notifications.resource_subscriptions).unwrap_or_default();
    agree.send_replace(Some(agreed));
    None
}
