//! The relay that other ways are compared with: hyper on both sides, whole bodies, no parsing.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::upstream;

/// Runs the smallest possible intermediary: it reads a whole message, forwards it, reads the whole
/// response and returns it. Each connection has one behind it, so it needs no pool.
pub(crate) async fn relay(target: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    upstream::announce(&listener);
    let accepting = async {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(relay_connection(stream, target.to_owned()));
        }
    };
    tokio::select! {
        () = accepting => {}
        () = upstream::parent_gone() => {}
    }
}

async fn relay_connection(stream: TcpStream, target: String) {
    let behind = TcpStream::connect(target).await.expect("the upstream listens");
    for side in [&stream, &behind] {
        side.set_nodelay(true).expect("a TCP socket");
    }
    let (sender, connection) = handshake(TokioIo::new(behind)).await.expect("HTTP");
    tokio::spawn(connection);
    let sender = Arc::new(tokio::sync::Mutex::new(sender));
    let service = service_fn(move |request| relay_message(sender.clone(), request));
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn relay_message(
    sender: Arc<tokio::sync::Mutex<SendRequest<Full<Bytes>>>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("a whole message").to_bytes();
    let request = Request::from_parts(parts, Full::from(body));
    let response = sender.lock().await.send_request(request).await.expect("an answer");
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a whole answer").to_bytes();
    Ok(Response::from_parts(parts, Full::from(body)))
}
