//! A client on a pair of byte streams: this process's stdio, or a socket.

use std::sync::Arc;

use domain::Caller;
use mcp::lines;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::Gateway;
use crate::front::discovery::Discovery;

/// Serves one client until it closes its end or `stop` is cancelled.
pub async fn serve(
    gateway: &Gateway,
    caller: Arc<Caller>,
    reader: impl AsyncRead + Unpin + Send + 'static,
    writer: impl AsyncWrite + Unpin + Send + 'static,
    stop: CancellationToken,
) {
    let service = Arc::new(Discovery::new(gateway.clone(), caller));
    let ended = CancellationToken::new();
    let _end = ended.clone().drop_guard();
    let started = |peer: mcp::Peer| {
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => peer.close("the gate is shutting down"),
                () = ended.cancelled() => {}
            }
        });
    };
    lines::serve(reader, writer, service, started).await;
}
