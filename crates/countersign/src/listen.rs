//! Accepts connections and serves HTTP on them, with limits on what a client may send before its
//! request is complete. A connection may be upgraded to a plain stream of MCP lines.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The maximum number of open connections on one listener; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 1024;

/// The time within which the head of a request must arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum number of headers of a request; more get a 431 response.
const HEADERS_MAX: usize = 100;

/// The maximum size of a request's head.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// The pause after a failed accept, most likely for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

/// A source of connections.
pub(crate) trait Accept: Send + 'static {
    fn accept(&self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>>;
}

impl Accept for TcpListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        async {
            let (stream, _) = TcpListener::accept(self).await?;
            // Small responses must not wait for the acknowledgement of earlier ones.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        }
        .boxed()
    }
}

impl Accept for UnixListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        async {
            let (stream, _) = UnixListener::accept(self).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        }
        .boxed()
    }
}

/// Serves until `stop`, then lets open requests finish. The tracker counts the connections.
pub(crate) async fn serve(
    listener: impl Accept,
    router: Router,
    connections: TaskTracker,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else {
            return;
        };
        let stream = tokio::select! {
            stream = listener.accept() => stream,
            () = stop.cancelled() => return,
        };
        match stream {
            Ok(stream) => {
                let connection = connection(stream, router.clone(), stop.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: Box<dyn Stream>, router: Router, stop: CancellationToken) {
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    tokio::pin!(serving);
    let result = tokio::select! {
        result = &mut serving => result,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "connection failed");
    }
}
