//! Accepts connections and serves HTTP on them, with limits on what a client may send before its
//! request is complete and on how long it may not read. A connection may be upgraded to a plain
//! stream of MCP lines.

pub(crate) mod bind;
mod stall;
mod strict;
pub(crate) mod tls;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway::front::visitor::{Visitor, Visitors};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mcp::task;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use self::stall::StallGuard;
use self::strict::StrictRequests;
use self::tls::Tls;

/// The time within which the head of a request must arrive, and before it the TLS handshake.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The time that a connection may wait for its next request. Clients that pool connections close
/// idle ones themselves, usually within 90 seconds; a POST sent just as we close one would fail.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// The maximum number of headers of a request; more get a 431 response.
const HEADERS_MAX: usize = 100;

/// The maximum size of a request's head; a larger one gets a 431 response.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The pause after a failed accept, most likely for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// A new connection and the address it comes from.
type Accepted = (Box<dyn Stream>, Option<IpAddr>);

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
            Ok((Box::new(stream) as Box<dyn Stream>, Some(address.ip())))
        }
        .boxed()
    }
}

impl Accept for UnixListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<Accepted>> {
        async {
            let (stream, _) = UnixListener::accept(self).await?;
            Ok((Box::new(stream) as Box<dyn Stream>, None))
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
    pub(crate) router: Router,
    pub(crate) visitors: Visitors,
    pub(crate) wire: Wire,
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
            task::spawn_tracked(&connections, async move {
                tokio::select! {
                    () = service.connection(stream, visitor.clone()) => {}
                    () = visitor.evicted() => {}
                }
            });
        }
    }

    async fn connection(self, stream: Box<dyn Stream>, visitor: Visitor) {
        let stream: Box<dyn Stream> = Box::new(StallGuard::new(stream));
        let tls = match &self.wire {
            Wire::Local => return self.http(stream, visitor).await,
            Wire::Plain => return self.http(strict(stream), visitor).await,
            Wire::Tls(tls) => tls.acceptor(),
        };
        match tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.http(strict(Box::new(stream)), visitor).await,
            Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
            Err(_) => tracing::debug!("the TLS handshake took too long"),
        }
    }

    async fn http(self, stream: Box<dyn Stream>, visitor: Visitor) {
        let router = self.router;
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(visitor.clone());
            router.clone().oneshot(request)
        });
        let serving = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .max_headers(HEADERS_MAX)
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
