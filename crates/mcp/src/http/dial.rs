//! Opens a connection to a server: DNS, TCP, the proxy from the environment, TLS. Returns a byte
//! stream and knows nothing of messages.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Request, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt;
use url::Url;

use super::address::{AddressRule, TOO_NEAR};
use crate::limits;
use crate::task;

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> ByteStream for T {}

pub(super) type DialFault = Box<dyn Error + Send + Sync>;

pub(super) struct Dial {
    server: Uri,
    addresses: AddressRule,
    tls: Option<Tls>,
    proxy: Option<Intercept>,
}

struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Dial {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    pub(super) fn new(url: &Url, addresses: AddressRule) -> Result<Dial, String> {
        Dial::with(url, &Matcher::from_env(), addresses)
    }

    fn with(url: &Url, proxies: &Matcher, addresses: AddressRule) -> Result<Dial, String> {
        let server: Uri = url[..url::Position::BeforePath]
            .parse()
            .map_err(|_| "the URL cannot be requested".to_owned())?;
        let tls = (url.scheme() == "https").then(|| Tls::to(&server)).transpose()?;
        let proxy = proxies.intercept(&server);
        Ok(Dial { server, addresses, tls, proxy })
    }

    /// Returns the credentials for a proxy that takes the request itself, as happens without TLS.
    pub(super) fn relayed(&self) -> Option<Option<&HeaderValue>> {
        let proxy = self.proxy.as_ref().filter(|_| self.tls.is_none())?;
        Some(proxy.basic_auth())
    }

    pub(super) async fn open(&self) -> Result<Box<dyn ByteStream>, DialFault> {
        let opening = tokio::time::timeout(limits::HTTP_CONNECT_TIMEOUT, self.connect());
        opening.await.unwrap_or_else(|_| Err("timed out while connecting".into()))
    }

    async fn connect(&self) -> Result<Box<dyn ByteStream>, DialFault> {
        let stream = match &self.proxy {
            Some(proxy) => self.through(proxy).await?,
            None => match self.addresses {
                AddressRule::Any | AddressRule::AnyOverTls => tcp(self.server.clone()).await?,
                rule @ (AddressRule::Private | AddressRule::Public) => {
                    checked_tcp(&self.server, rule).await?
                }
            },
        };
        match &self.tls {
            Some(tls) => tls.wrap(stream).await,
            None => Ok(stream),
        }
    }

    async fn through(&self, proxy: &Intercept) -> Result<Box<dyn ByteStream>, DialFault> {
        let stream = tcp(proxy.uri().clone()).await?;
        let stream = match proxy.uri().scheme_str() {
            Some("http") => stream,
            Some("https") => Tls::to(proxy.uri())?.wrap(stream).await?,
            _ => return Err("only http and https proxies are supported".into()),
        };
        match self.tls {
            Some(_) => tunnel(stream, &self.server, proxy.basic_auth()).await,
            None => Ok(stream),
        }
    }
}

impl Tls {
    fn to(server: &Uri) -> Result<Tls, String> {
        let bare = bare_host(server.host().unwrap_or_default());
        let name = ServerName::try_from(bare.to_owned())
            .map_err(|_| "the URL's host is not a valid name for TLS".to_owned())?;
        Ok(Tls { config: tls_config()?, name })
    }

    async fn wrap(&self, stream: Box<dyn ByteStream>) -> Result<Box<dyn ByteStream>, DialFault> {
        let connector = TlsConnector::from(self.config.clone());
        Ok(Box::new(connector.connect(self.name.clone(), stream).await?))
    }
}

/// The configuration shared by the process, created on first use: the system's trusted certificates
/// are read once.
fn tls_config() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let make = || -> Result<Arc<ClientConfig>, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = rustls_platform_verifier::Verifier::new(provider.clone())?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    };
    CONFIG.get_or_init(|| make().map_err(|error| error.to_string())).clone()
}

async fn tcp(server: Uri) -> Result<Box<dyn ByteStream>, DialFault> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    Ok(Box::new(connector.oneshot(server).await?.into_inner()))
}

/// Connects to a server whose addresses must all be allowed. Those that were checked are those that
/// are used.
async fn checked_tcp(server: &Uri, rule: AddressRule) -> Result<Box<dyn ByteStream>, DialFault> {
    let port = if server.scheme_str() == Some("https") { 443 } else { 80 };
    let host = bare_host(server.host().unwrap_or_default());
    let found = tokio::net::lookup_host((host, server.port_u16().unwrap_or(port))).await?;
    let found: Vec<SocketAddr> = found.collect();
    if found.iter().any(|address| !rule.allows(address.ip())) {
        return Err(TOO_NEAR.into());
    }
    let stream = TcpStream::connect(&found[..]).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}

/// Returns a host without the brackets of an IPv6 address.
fn bare_host(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Asks a proxy to tunnel bytes to the server.
async fn tunnel(
    stream: Box<dyn ByteStream>,
    server: &Uri,
    authorization: Option<&HeaderValue>,
) -> Result<Box<dyn ByteStream>, DialFault> {
    let host = server.host().unwrap_or_default();
    let target = format!("{host}:{}", server.port_u16().unwrap_or(443));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let _connection = AbortOnDropHandle::new(task::spawn(connection.with_upgrades()));
    let mut request = Request::connect(&target).header(HOST, &target);
    if let Some(authorization) = authorization {
        request = request.header(PROXY_AUTHORIZATION, authorization);
    }
    let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    if !response.status().is_success() {
        return Err(format!("the proxy answered HTTP {}", response.status()).into());
    }
    Ok(Box::new(TokioIo::new(hyper::upgrade::on(response).await?)))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    fn dial(url: &str, proxy: &str) -> Dial {
        let proxies = Matcher::builder().all(proxy.to_owned()).no("near.example").build();
        Dial::with(&Url::parse(url).unwrap(), &proxies, AddressRule::Any).unwrap()
    }

    #[tokio::test]
    async fn https_is_tunnelled_through_the_proxy() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://me:pw@{}", listener.local_addr().unwrap());
        let dial = dial("https://far.example/mcp", &proxy);
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let head = head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nthrough").await.unwrap();
            head
        });
        let mut stream = dial.through(dial.proxy.as_ref().unwrap()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "through");
        let head = asked.await.unwrap().to_ascii_lowercase();
        assert!(head.starts_with("connect far.example:443 http/1.1\r\n"), "{head}");
        assert!(head.contains("proxy-authorization: basic"), "{head}");
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_is_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let dial = dial("https://far.example/", &proxy);
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
        });
        let fault = dial.open().await.err().unwrap().to_string();
        assert!(fault.contains("the proxy answered HTTP 403"), "{fault}");
    }

    #[tokio::test]
    async fn a_name_may_not_lead_nearer_than_its_rule_allows() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["localhost", "127.0.0.1"] {
            let url = Url::parse(&format!("http://{host}:{port}/")).unwrap();
            let proxies = Matcher::builder().build();
            for rule in [AddressRule::Public, AddressRule::Private] {
                let fault = Dial::with(&url, &proxies, rule).unwrap().open().await;
                assert_eq!(fault.err().unwrap().to_string(), TOO_NEAR, "{host}");
            }
            let open = Dial::with(&url, &proxies, AddressRule::Any).unwrap().open().await;
            assert!(open.is_ok(), "{host}");
        }
    }

    #[test]
    fn plain_http_is_relayed_by_the_proxy_unless_it_is_bypassed() {
        let proxy = "http://me:pw@proxy.example:3128";
        assert!(dial("http://far.example/", proxy).relayed().unwrap().is_some());
        assert!(dial("https://far.example/", proxy).relayed().is_none());
        assert!(dial("http://near.example/", proxy).relayed().is_none());
    }
}
