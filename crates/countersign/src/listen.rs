//! Accepts connections and serves HTTP on them, with limits on what a client may send before its
//! request is complete and on how long it may not read. A connection may be upgraded to a plain
//! stream of MCP lines.

pub(crate) mod bind;
pub(crate) mod lanes;
mod stall;
mod strict;
pub(crate) mod tls;

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::front::http::FrontDoor;
use gateway::front::visitor::{Visitor, Visitors};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::lanes::{Lanes, Pulse};
use self::stall::StallGuard;
use self::strict::StrictRequests;
use self::tls::Tls;

/// The time within which the head of a request must arrive, and before it the TLS handshake.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The time that a connection may wait for its next request. Clients that pool connections close
/// idle ones themselves, usually within 90 seconds; a POST sent just as we close one would fail.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// The maximum size of a request's head; a larger one gets a 431 response.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The pause after a failed accept, most likely for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// A new connection and the address it comes from.
type Accepted = (NewStream, Option<IpAddr>);

/// A connection that no runtime watches yet.
pub(crate) enum NewStream {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl NewStream {
    /// Lets the runtime that this runs on watch it.
    fn watched(self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            NewStream::Tcp(stream) => Box::new(StallGuard::new(TcpStream::from_std(stream)?)),
            NewStream::Unix(stream) => Box::new(StallGuard::new(UnixStream::from_std(stream)?)),
        })
    }
}

/// A source of connections.
pub(crate) trait Accept: Send + 'static {
    fn accept(&self) -> BoxFuture<'_, io::Result<Accepted>>;
}

impl Accept for TcpListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<Accepted>> {
        async {
            let (stream, address) = TcpListener::accept(self).await?;
            // Small responses must not wait for the acknowledgement of earlier ones.
            stream.set_nodelay(true)?;
            Ok((NewStream::Tcp(stream.into_std()?), Some(address.ip())))
        }
        .boxed()
    }
}

impl Accept for UnixListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<Accepted>> {
        async {
            let (stream, _) = UnixListener::accept(self).await?;
            Ok((NewStream::Unix(stream.into_std()?), None))
        }
        .boxed()
    }
}

/// Plain HTTP on a Unix socket, which connections may leave for another protocol, or HTTP on a
/// network, plain or over TLS.
#[derive(Clone)]
pub(crate) enum Wire {
    Local,
    Plain,
    Tls(Arc<Tls>),
}

/// The service of a listener.
#[derive(Clone)]
pub(crate) struct Listening {
    pub(crate) door: FrontDoor,
    pub(crate) visitors: Visitors,
    pub(crate) wire: Wire,
    pub(crate) lanes: Lanes,
    pub(crate) stop: CancellationToken,
}

impl Listening {
    /// Serves until it is stopped, then lets open requests finish. The tracker counts the
    /// connections.
    pub(crate) async fn serve(self, listener: impl Accept, connections: TaskTracker) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.stop.cancelled() => return,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let visitor = tokio::select! {
                visitor = self.visitors.enter(address) => visitor,
                () = self.stop.cancelled() => return,
            };
            let service = self.clone();
            self.lanes.serve(&connections, |pulse| async move {
                tokio::select! {
                    () = service.connection(stream, visitor.clone(), pulse) => {}
                    () = visitor.evicted() => {}
                }
            });
        }
    }

    async fn connection(self, stream: NewStream, visitor: Visitor, pulse: Arc<Pulse>) {
        let stream = match stream.watched() {
            Ok(stream) => stream,
            Err(error) => return tracing::warn!(%error, "cannot serve a connection"),
        };
        let tls = match &self.wire {
            Wire::Local => return self.http(stream, visitor, pulse).await,
            Wire::Plain => return self.http(strict(stream), visitor, pulse).await,
            Wire::Tls(tls) => tls.acceptor(),
        };
        match tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.http(strict(Box::new(stream)), visitor, pulse).await,
            Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
            Err(_) => tracing::debug!("the TLS handshake took too long"),
        }
    }

    async fn http(self, stream: Box<dyn Stream>, visitor: Visitor, pulse: Arc<Pulse>) {
        let (door, visitor) = (&self.door, &visitor);
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            pulse.note();
            let request = request.map(Body::new);
            async move { Ok::<_, Infallible>(door.answer(request, visitor).await) }
        });
        // A request with more than 100 headers gets a 431 response: the library's own limit, since
        // setting it costs each request the initialization of as many.
        let serving = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::pin!(serving);
        let result = tokio::select! {
            result = &mut serving => result,
            () = self.stop.cancelled() => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, "connection failed");
        }
    }
}

fn strict(stream: Box<dyn Stream>) -> Box<dyn Stream> {
    Box::new(StrictRequests::new(stream))
}
