//! The client's end of HTTP+SSE, the transport before streamable HTTP: everything that the server
//! says arrives over one event stream, whose first event names the address for what we say. The
//! connection ends with the stream.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use url::Url;

use super::client::{ConnectError, Endpoint, ParsedEndpoint, StreamPosition, take_events};
use super::failure::HttpFailure;
use super::outbound::{EventReader, Outbound};
use crate::delivery::Dispatch;
use crate::id::Id;
use crate::limits;
use crate::lines::batch_line;
use crate::message::{Message, Response};
use crate::peer::{ConnectionClosed, MessageRoute, Outbox, Peer, Service, WeakPeer};
use crate::task;

/// The event that names the address.
const ENDPOINT: &str = "endpoint";

/// Creates the peer and begins to open the stream. Must be called within a runtime.
pub fn connect(endpoint: Endpoint, service: Arc<dyn Service>) -> Result<Peer, ConnectError> {
    let endpoint = endpoint.parsed()?;
    let stream = Outbound::new(endpoint.clone()).map_err(ConnectError::Client)?;
    let (named, address) = watch::channel(None);
    let outbox = Arc::new(LegacyOutbox { address, peer: OnceLock::new() });
    let peer = Peer::new(outbox.clone(), service);
    let _ = outbox.peer.set(peer.downgrade());
    let (weak, closing) = (peer.downgrade(), peer.closing());
    task::spawn(async move {
        tokio::select! {
            () = closing.cancelled() => {}
            ended = listen(&stream, endpoint, &named, &weak) => {
                let reason = match ended {
                    Ok(()) => "the server ended the stream".to_owned(),
                    Err(failure) => failure.to_string(),
                };
                if let Some(peer) = weak.upgrade() {
                    peer.close(&reason);
                }
            }
        }
    });
    Ok(peer)
}

/// Reads the stream to its end.
async fn listen(
    stream: &Outbound,
    endpoint: ParsedEndpoint,
    named: &watch::Sender<Option<Arc<Outbound>>>,
    peer: &WeakPeer,
) -> Result<(), HttpFailure> {
    let mut events = EventReader::new(stream.get(None, None).await?);
    loop {
        let Some(event) = events.next().await? else {
            return Err(HttpFailure::NoAddress);
        };
        if event.event.as_deref() == Some(ENDPOINT) && event.skipped.is_none() {
            let url = resolved(&endpoint.url, &event.data)?;
            let address = Outbound::new(ParsedEndpoint { url, ..endpoint });
            let address = address.map_err(HttpFailure::BadAddress)?;
            named.send_replace(Some(Arc::new(address)));
            break;
        }
    }
    take_events(peer, &mut events, None, &mut StreamPosition::default()).await?;
    Ok(())
}

/// Returns the address that the server names. It must be on the same host, or our headers and
/// everything we say would go elsewhere.
fn resolved(url: &Url, named: &str) -> Result<Url, HttpFailure> {
    let invalid = |words: &str| HttpFailure::BadAddress(words.to_owned());
    let address = url.join(named.trim()).map_err(|_| invalid("it is not a URL"))?;
    if address.origin() != url.origin() {
        return Err(invalid("it is on another host"));
    }
    Ok(address)
}

struct LegacyOutbox {
    /// The address for our messages, once the server has named it.
    address: watch::Receiver<Option<Arc<Outbound>>>,
    peer: OnceLock<WeakPeer>,
}

impl Outbox for LegacyOutbox {
    fn send(
        &self,
        message: Message,
        _route: MessageRoute,
    ) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
        async move {
            let delivery = Arc::default();
            self.post(message, Dispatch { delivery: &delivery, trace: None }).await
        }
        .boxed()
    }

    fn dispatch<'a>(
        &'a self,
        message: Message,
        _route: MessageRoute,
        dispatch: Dispatch<'a>,
    ) -> BoxFuture<'a, Result<(), ConnectionClosed>> {
        self.post(message, dispatch).boxed()
    }

    fn send_batch(&self, responses: Vec<Response>) -> BoxFuture<'_, Result<(), ConnectionClosed>> {
        async move {
            let delivery = Arc::default();
            let dispatch = Dispatch { delivery: &delivery, trace: None };
            let posted = self.deliver(batch_line(responses).into(), dispatch).await;
            posted.map_err(|failure| ConnectionClosed(failure.to_string()))
        }
        .boxed()
    }
}

impl LegacyOutbox {
    async fn post(&self, message: Message, dispatch: Dispatch<'_>) -> Result<(), ConnectionClosed> {
        let id = match &message {
            Message::Request(request) => Some(request.id.clone()),
            Message::Notification(_) | Message::Response(_) => None,
        };
        let Err(failure) = self.deliver(message.to_line().into(), dispatch).await else {
            return Ok(());
        };
        match id {
            // The server refused this one; others may pass.
            Some(Id::Number(id)) => {
                if let Some(peer) = self.peer.get().and_then(WeakPeer::upgrade) {
                    peer.fail(id, failure.into_request_error(id, dispatch.delivery));
                }
                Ok(())
            }
            Some(Id::Text(_)) | None => Err(ConnectionClosed(failure.to_string())),
        }
    }

    /// Sends the bytes and waits until the server has accepted them.
    async fn deliver(&self, line: Bytes, dispatch: Dispatch<'_>) -> Result<(), HttpFailure> {
        let delivering = async {
            let mut address = self.address.clone();
            let known = address.wait_for(Option::is_some).await;
            match known.ok().and_then(|known| known.clone()) {
                Some(known) => known.post(line, None, dispatch).await.map(drop),
                // The stream has failed, and the peer is about to be closed for that reason.
                None => std::future::pending().await,
            }
        };
        let delivered = tokio::time::timeout(limits::HTTP_POST_TIMEOUT, delivering).await;
        delivered.unwrap_or(Err(HttpFailure::Timeout))
    }
}
