//! A collector for tests: takes spans by OTLP over gRPC or over HTTP, and keeps them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use prost::Message;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tonic::transport::server::TcpIncoming;

use crate::client::PATIENCE;

/// A collector that listens on its own port until it is dropped.
pub struct Collector {
    pub url: String,
    taken: Arc<CollectorState>,
    serving: JoinHandle<()>,
    /// The TLS proxy before it, if any.
    front: Option<JoinHandle<()>>,
}

/// The authority that signed the certificate of a collector behind TLS, as PEM.
pub const AUTHORITY: &str = include_str!("../testdata/tls/ca.pem");

#[derive(Default)]
struct CollectorState {
    spans: Mutex<Vec<ExportedSpan>>,
    /// Everything received, unchanged, to check that it holds no secrets.
    text: Mutex<String>,
    headers: Mutex<Vec<BTreeMap<String, String>>>,
}

/// A span as it was exported; ids in hex digits.
#[derive(Clone, Debug)]
pub struct ExportedSpan {
    pub name: String,
    pub kind: SpanKind,
    pub trace_id: String,
    pub span_id: String,
    /// Empty for the first of a trace.
    pub parent_id: String,
    pub trace_state: String,
    pub attributes: Value,
    /// The message of a failed span.
    pub error: Option<String>,
    /// The attributes of the sender.
    pub resource: Value,
}

impl Collector {
    /// Starts a collector for gRPC.
    pub async fn grpc() -> Collector {
        let (listener, url) = listen().await;
        let taken = Arc::<CollectorState>::default();
        let service = TraceServiceServer::new(Grpc(taken.clone()));
        let incoming = TcpIncoming::from(listener);
        let serving = tokio::spawn(async move {
            let server = tonic::transport::Server::builder().add_service(service);
            server.serve_with_incoming(incoming).await.unwrap();
        });
        Collector { url, taken, serving, front: None }
    }

    /// Starts a collector for POSTs of protobuf on `/v1/traces`.
    pub async fn http() -> Collector {
        let (listener, url) = listen().await;
        let taken = Arc::<CollectorState>::default();
        let taking = taken.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_http(stream, taking.clone()));
            }
        });
        Collector { url, taken, serving, front: None }
    }

    /// Accepts connections and never responds.
    pub async fn silent() -> Collector {
        let (listener, url) = listen().await;
        let serving = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                held.push(stream);
            }
        });
        Collector { url, taken: Arc::default(), serving, front: None }
    }

    /// Puts the collector behind TLS, on a separate port. Only [`AUTHORITY`] vouches for its
    /// certificate, which is valid for 127.0.0.1.
    pub async fn behind_tls(mut self) -> Collector {
        let inner = self.url.trim_start_matches("http://").to_owned();
        let (listener, url) = listen().await;
        self.url = url.replacen("http", "https", 1);
        let acceptor = tls_acceptor();
        self.front = Some(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, inner) = (acceptor.clone(), inner.clone());
                tokio::spawn(async move {
                    let mut outside = acceptor.accept(stream).await.ok()?;
                    let mut inside = TcpStream::connect(inner).await.ok()?;
                    tokio::io::copy_bidirectional(&mut outside, &mut inside).await.ok()
                });
            }
        }));
        self
    }

    /// Returns an address where nothing listens.
    pub async fn gone() -> String {
        listen().await.1
    }

    /// Waits for this many spans, and returns those received so far.
    pub async fn spans(&self, count: usize) -> Vec<ExportedSpan> {
        let coming = async {
            loop {
                let spans = self.so_far();
                if spans.len() >= count {
                    return spans;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, coming).await;
        came.unwrap_or_else(|_| panic!("expected {count} spans, received: {:#?}", self.so_far()))
    }

    pub fn so_far(&self) -> Vec<ExportedSpan> {
        self.taken.spans.lock().unwrap().clone()
    }

    /// Returns everything that was exported, as text.
    pub fn text(&self) -> String {
        self.taken.text.lock().unwrap().clone()
    }

    /// Returns the headers of each request.
    pub fn headers(&self) -> Vec<BTreeMap<String, String>> {
        self.taken.headers.lock().unwrap().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
        if let Some(front) = &self.front {
            front.abort();
        }
    }
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

fn tls_acceptor() -> TlsAcceptor {
    let certificate = include_bytes!("../testdata/tls/server.pem");
    let key = include_bytes!("../testdata/tls/server-key.pem");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate).unwrap()],
            PrivateKeyDer::from_pem_slice(key).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

struct Grpc(Arc<CollectorState>);

#[tonic::async_trait]
impl TraceService for Grpc {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, tonic::Status> {
        let headers = request.metadata().clone().into_headers();
        let headers = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("").to_owned()));
        self.0.headers.lock().unwrap().push(headers.collect());
        self.0.take(request.into_inner());
        Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
    }
}

/// Serves as much of HTTP as an exporter needs: POSTs with a length, one after the other.
async fn serve_http(stream: TcpStream, taken: Arc<CollectorState>) {
    let mut stream = BufReader::new(stream);
    while let Some((first, headers)) = read_head(&mut stream).await {
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let kind = headers.get("content-type").map(String::as_str);
        let status = match (first.as_str(), kind) {
            ("POST /v1/traces HTTP/1.1", Some("application/x-protobuf")) => {
                taken.headers.lock().unwrap().push(headers);
                taken.take(ExportTraceServiceRequest::decode(&*body).unwrap());
                "200 OK"
            }
            _ => "404 Not Found",
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// Reads the first line and the headers; returns none at the end of the connection.
async fn read_head(
    stream: &mut BufReader<TcpStream>,
) -> Option<(String, BTreeMap<String, String>)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |line: &String| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Some((lines.first()?.clone(), lines.iter().skip(1).filter_map(header).collect()))
}

impl CollectorState {
    fn take(&self, request: ExportTraceServiceRequest) {
        self.text.lock().unwrap().push_str(&format!("{request:?}\n"));
        for resource_spans in request.resource_spans {
            let resource = resource_spans.resource.unwrap_or_default();
            let resource = attributes(&resource.attributes);
            let spans = resource_spans.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.spans.lock().unwrap().extend(spans.map(|span| seen(&span, &resource)));
        }
    }
}

fn seen(span: &Span, resource: &Value) -> ExportedSpan {
    let status = span.status.clone().unwrap_or_default();
    ExportedSpan {
        name: span.name.clone(),
        kind: span.kind(),
        trace_id: hex(&span.trace_id),
        span_id: hex(&span.span_id),
        parent_id: hex(&span.parent_span_id),
        trace_state: span.trace_state.clone(),
        attributes: attributes(&span.attributes),
        error: (status.code() == StatusCode::Error).then_some(status.message),
        resource: resource.clone(),
    }
}

fn attributes(pairs: &[KeyValue]) -> Value {
    let value = |pair: &KeyValue| match pair.value.clone().and_then(|value| value.value) {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::IntValue(number)) => json!(number),
        Some(Any::DoubleValue(number)) => json!(number),
        Some(Any::BoolValue(flag)) => json!(flag),
        other => panic!("{}: unexpected attribute value {other:?}", pair.key),
    };
    let mut members = serde_json::Map::new();
    for pair in pairs {
        let before = members.insert(pair.key.clone(), value(pair));
        assert_eq!(before, None, "{} occurs twice", pair.key);
    }
    members.into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
