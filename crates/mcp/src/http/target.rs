//! One address that requests are sent to, over kept connections: its host, the proxy in front of
//! it, and the headers of every request. Follows no redirects and knows nothing of MCP.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use percent_encoding::percent_decode_str;
use url::{Position, Url};

use super::address::AddressRule;
use super::dial::Dial;
use super::failure::root_cause;
use super::pool::{Pool, PooledResponse};
use crate::delivery::Delivery;

pub struct HttpTarget {
    pool: Arc<Pool>,
    url: Url,
    /// The request target: the path, or the whole URL if a proxy takes the request.
    uri: Uri,
    headers: HeaderMap,
}

impl HttpTarget {
    /// Creates a target for an http or https URL with a host. `headers` are sent with every
    /// request.
    pub fn new(url: Url, headers: HeaderMap) -> Result<HttpTarget, String> {
        HttpTarget::within(AddressRule::Any, url, headers)
    }

    /// Creates a target whose host may only have some addresses. A proxy in front of it is not
    /// bound by that.
    pub fn within(
        addresses: AddressRule,
        mut url: Url,
        mut headers: HeaderMap,
    ) -> Result<HttpTarget, String> {
        let dial = Dial::new(&url, addresses)?;
        if let Some(login) = take_login(&mut url)
            && !headers.contains_key(AUTHORIZATION)
        {
            headers.insert(AUTHORIZATION, login);
        }
        let unfit = || "the URL cannot be requested".to_owned();
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
        headers.insert(HOST, host.map_err(|_| unfit())?);
        let from = match dial.relayed() {
            Some(authorization) => {
                headers.extend(authorization.cloned().map(|value| (PROXY_AUTHORIZATION, value)));
                Position::BeforeScheme
            }
            None => Position::BeforePath,
        };
        let uri = url[from..Position::AfterQuery].parse().map_err(|_| unfit())?;
        Ok(HttpTarget { pool: Pool::new(dial), url, uri, headers })
    }

    /// The headers of every request, as a base for more.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or("?")
    }

    /// Sends a request and returns the response once its head has arrived; the error is a plain
    /// sentence.
    pub async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<PooledResponse, String> {
        self.send_noting(method, (headers, body), &Delivery::default()).await
    }

    /// Sends a request, and notes in its delivery whether it may have left.
    pub(super) async fn send_noting(
        &self,
        method: Method,
        (headers, body): (HeaderMap, Bytes),
        delivery: &Delivery,
    ) -> Result<PooledResponse, String> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        self.pool.send(request, delivery).await.map_err(|fault| root_cause(&*fault))
    }

    /// Returns the host that a redirect points to.
    pub fn elsewhere(&self, response: &PooledResponse) -> String {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let url = location.and_then(|location| self.url.join(location).ok());
        let host = url.as_ref().and_then(Url::host_str);
        host.unwrap_or("nowhere").to_owned()
    }
}

/// Removes user name and password from the URL and returns them as a login.
fn take_login(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let login = format!("{}:{}", plain(url.username()), plain(url.password().unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64.encode(login))).ok()?;
    value.set_sensitive(true);
    // Fails for URLs without a host, which are rejected earlier.
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    Some(value)
}
