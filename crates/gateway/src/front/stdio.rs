//! A client on a pair of byte streams: this process's stdio, or a socket.

use std::sync::Arc;

use mcp::{Service, lines, task};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

/// Serves one client until it closes its end or `stop` is cancelled.
pub async fn serve(
    service: Arc<dyn Service>,
    reader: impl AsyncRead + Unpin + Send + 'static,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    stop: CancellationToken,
) {
    let ended = CancellationToken::new();
    let _end = ended.clone().drop_guard();
    let started = |peer: mcp::Peer| {
        task::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => peer.close("the gate is shutting down"),
                () = ended.cancelled() => {}
            }
        });
    };
    lines::serve(reader, writer, service, started).await;
}
