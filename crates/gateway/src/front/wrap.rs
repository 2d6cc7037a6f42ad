//! One server and its one client, with the gate in between: every message is forwarded byte for
//! byte, in both directions and from the first one on; calls go through the pipeline on the way.

mod batches;
mod calls;
mod in_flight;
mod listing;
mod relay;

use std::sync::Arc;

use bytes::Bytes;
use mcp::task;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use crate::front::wrap::relay::WrappedServer;

use crate::Gateway;
use crate::front::wrap::relay::Relay;
use crate::limits::WRAP_LINES_WAITING_MAX;

/// One end of the conversation.
pub struct WrapEnd<R, W> {
    pub reader: R,
    pub writer: W,
}

/// Forwards messages until either side ends or `stop` is cancelled.
pub async fn serve<CR, CW, SR, SW>(
    gateway: &Gateway,
    wrapped: WrappedServer,
    client: WrapEnd<CR, CW>,
    server: WrapEnd<SR, SW>,
    stop: CancellationToken,
) where
    CR: AsyncRead + Unpin + Send + 'static,
    CW: AsyncWrite + Unpin + Send + 'static,
    SR: AsyncRead + Unpin + Send + 'static,
    SW: AsyncWrite + Unpin + Send + 'static,
{
    let (to_client, for_client) = mpsc::channel(WRAP_LINES_WAITING_MAX);
    let (to_server, for_server) = mpsc::channel(WRAP_LINES_WAITING_MAX);
    let writing_client = task::spawn(write(client.writer, for_client));
    let writing_server = task::spawn(write(server.writer, for_server));
    let place = wrapped.place.clone();
    let relay = Arc::new(Relay::new(gateway, wrapped, to_client, to_server));
    gateway.shared.registry.insert_fixed(&relay.name, calls::provider(&relay), place);
    let from_server = task::spawn(relay.clone().read_server(server.reader));
    tokio::select! {
        () = relay.clone().read_client(client.reader) => {}
        () = stop.cancelled() => {}
        () = relay.server_ended.cancelled() => {}
    }
    // The server's stdin closes once the running calls have been handed over.
    relay.running.close();
    relay.close_server();
    let _ = writing_server.await;
    let _ = from_server.await;
    relay.running.wait().await;
    relay.close_client();
    drop(relay);
    let _ = writing_client.await;
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Bytes>) {
    while let Some(line) = lines.recv().await {
        let mut next = Some(line);
        while let Some(line) = next {
            let written = async {
                writer.write_all(&line).await?;
                writer.write_all(b"\n").await
            };
            if written.await.is_err() {
                return;
            }
            next = lines.try_recv().ok();
        }
        if writer.flush().await.is_err() {
            return;
        }
    }
    let _ = writer.shutdown().await;
}
