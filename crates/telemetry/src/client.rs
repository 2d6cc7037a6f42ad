//! The HTTP client of OTLP over HTTP: one connection, kept between deliveries, with TLS if the
//! address asks for it. Every delivery has a time limit, and no redirect is followed.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::header::HOST;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use mcp::task;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response, ResponseBodyTooLarge};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tower::ServiceExt;

use crate::destination::Destination;
use crate::trust;

/// The maximum size of a response, which states at most the number of rejected spans.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for T {}

type Sender = SendRequest<Full<Bytes>>;

/// The reason the last delivery failed: the exporter reports only a network error.
#[derive(Clone, Debug, Default)]
pub(super) struct Reason(Arc<Mutex<Option<String>>>);

impl Reason {
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, reason: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
    }
}

#[derive(Debug)]
pub(super) struct Client {
    server: Uri,
    host: HeaderValue,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    timeout: Duration,
    kept: Mutex<Option<Sender>>,
    reason: Reason,
}

impl Client {
    pub(super) fn new(destination: &Destination, reason: Reason) -> Result<Client, String> {
        let bad = || format!("'{}' is no address of a collector", destination.host());
        let server: Uri = destination.endpoint.parse().map_err(|_| bad())?;
        let name = server.host().ok_or_else(bad)?;
        let host = match server.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        let tls = match server.scheme_str() {
            Some("http") => None,
            Some("https") => {
                let bare = name.trim_start_matches('[').trim_end_matches(']').to_owned();
                let name = ServerName::try_from(bare).map_err(|_| bad())?;
                Some((trust::config(destination)?, name))
            }
            _ => return Err(bad()),
        };
        Ok(Client {
            host: HeaderValue::from_str(&host).map_err(|_| bad())?,
            server,
            tls,
            timeout: destination.timeout,
            kept: Mutex::default(),
            reason,
        })
    }

    /// Delivers a request. A kept connection that proves dead before it has taken the request is
    /// replaced.
    async fn deliver(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Bytes>, HttpError> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut sender) = kept
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(request).await {
                Ok(response) => return self.read(response, sender).await,
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(failed.into_error().into()),
                },
            }
        }
        let mut sender = self.dial().await?;
        let response = sender.send_request(request).await?;
        self.read(response, sender).await
    }

    async fn dial(&self) -> Result<Sender, HttpError> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        let stream = connector.oneshot(self.server.clone()).await?.into_inner();
        let stream: Box<dyn Stream> = match &self.tls {
            Some((config, name)) => {
                let connector = TlsConnector::from(config.clone());
                Box::new(connector.connect(name.clone(), stream).await?)
            }
            None => Box::new(stream),
        };
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Ends with its sender; its errors reach the caller that waits for a response.
        task::spawn(connection);
        Ok(sender)
    }

    async fn read(
        &self,
        response: hyper::Response<Incoming>,
        sender: Sender,
    ) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = response.into_parts();
        let body = match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(Box::new(ResponseBodyTooLarge::new()));
            }
            Err(error) => return Err(error),
        };
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        Ok(Response::from_parts(head, body))
    }

    /// Returns the request as it is sent over a connection to its server.
    fn message(&self, request: Request<Bytes>) -> Request<Full<Bytes>> {
        let (mut head, body) = request.into_parts();
        let path = head.uri.path_and_query().cloned();
        head.uri = Uri::from(path.unwrap_or(PathAndQuery::from_static("/")));
        head.headers.insert(HOST, self.host.clone());
        Request::from_parts(head, Full::new(body))
    }
}

impl HttpClient for Client {
    // Written as `async_trait` would.
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let delivering =
                tokio::time::timeout(self.timeout, self.deliver(self.message(request)));
            let outcome = delivering.await.unwrap_or_else(|_| Err("no answer in time".into()));
            outcome.inspect_err(|error| self.reason.set(in_words(error.as_ref())))
        })
    }
}

/// Formats an error and its causes, without repetition.
fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_words = cause.to_string();
        if !words.contains(&cause_words) {
            words = format!("{words}: {cause_words}");
        }
        source = cause.source();
    }
    words
}
